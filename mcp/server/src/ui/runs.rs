//! Renders the view of runs on the web page (`--ui`): those under way, and recent ones.

use super::html::Html;
use super::{Page, Viewer};
use crate::drawing::units::{count, micros, time};
use crate::observe::CallRecorder;
use crate::observe::entry::{CallArguments, timestamp};
use crate::observe::live::LiveCall;
use crate::observe::payload::PayloadPolicy;
use std::time::Duration;

/// Most runs under way that are shown.
pub(super) const MOST_LIVE: usize = 50;

/// Most recent runs that are shown.
const MOST_RECENT: usize = 50;

/// Most characters of a program in a list.
const EXCERPT: usize = 120;

/// The view at this moment.
pub(super) fn shown(page: &Page, viewer: &Viewer) -> Html {
    let mut html = Html::default();
    html.raw("<h1>Runs</h1>\n");
    let Some(recorder) = &page.recorder else {
        html.raw("<p>Programs run in the commands that use this process, and are shown there.</p>\n");
        return html;
    };
    let (live, all) = match &recorder.live {
        Some(live) => live.newest(viewer.owner.0, MOST_LIVE),
        None => Default::default(),
    };
    html.raw("<h2>Under way</h2>\n<p id=\"none\" class=\"quiet\"").raw(hidden_unless(live.is_empty()));
    html.raw(">Nothing runs.</p>\n<div id=\"live\">\n");
    for call in &live {
        under_way(&mut html, call, recorder.policy);
    }
    html.raw("</div>\n<p id=\"more\" class=\"quiet\"").raw(hidden_unless(all > live.len()));
    html.raw("><span>").number(all.saturating_sub(live.len()) as u64).raw("</span> more run.</p>\n");
    html.raw("<section data-part=\"recent\"><h2>Recent</h2>\n").piece(&recent(recorder, viewer));
    html.raw("</section>\n");
    html
}

fn hidden_unless(is_shown: bool) -> &'static str {
    if is_shown { "" } else { " hidden" }
}

fn under_way(html: &mut Html, call: &LiveCall, policy: PayloadPolicy) {
    html.raw("<section class=\"run\" data-run=\"").number(call.number).raw("\"><h3><a href=\"/ui/runs/");
    html.number(call.number).raw("\">").line(&call.tool).raw(" #").number(call.number);
    html.raw("</a> <span class=\"time quiet\">").line(&took(call.begun.1.elapsed()));
    html.raw("</span> <span class=\"doing quiet\"></span></h3><p class=\"excerpt\"><code>");
    html.line(&excerpt(call.arguments.as_ref(), policy));
    html.raw("</code></p><div class=\"chart compact\"></div></section>\n");
}

/// The first line of a program that is not empty, for a list.
pub(super) fn excerpt(arguments: Option<&CallArguments>, policy: PayloadPolicy) -> String {
    let program = program(arguments, policy).unwrap_or_default();
    let first = program.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.trim().chars().take(EXCERPT).collect()
}

/// The program of a call, if the policy of payloads lets it be shown.
pub(super) fn program(arguments: Option<&CallArguments>, policy: PayloadPolicy) -> Option<String> {
    arguments.filter(|_| policy != PayloadPolicy::None)?.program()
}

fn recent(recorder: &CallRecorder, viewer: &Viewer) -> Html {
    let (calls, mut html) = (recorder.ring.newest_of(viewer.owner.0, MOST_RECENT), Html::default());
    if calls.is_empty() {
        html.raw("<p class=\"quiet\">Nothing has run yet.</p>\n");
        return html;
    }
    html.raw("<table><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Ended</th><th scope=\"col\">Result</th>");
    html.raw("<th scope=\"col\">Time</th><th scope=\"col\">Calls</th><th scope=\"col\">Program</th></tr></thead><tbody>\n");
    for call in &calls {
        let entry = &call.entry;
        html.raw("<tr><td><a href=\"/ui/runs/").number(entry.number).raw("\">").line(&entry.tool).raw(" #");
        html.number(entry.number).raw("</a></td><td><time>").line(&timestamp(entry.ended));
        html.raw("</time></td><td>").piece(&result(entry.is_error, entry.reason.as_deref()));
        html.raw("</td><td>").line(&took(entry.duration)).raw("</td><td>");
        html.number(entry.totals().count()).raw("</td><td><code>");
        html.line(&excerpt(call.arguments.as_ref(), recorder.policy)).raw("</code></td></tr>\n");
    }
    html.raw("</tbody></table>\n");
    html
}

/// What came of a call.
pub(super) fn result(is_error: bool, reason: Option<&str>) -> Html {
    let mut html = Html::default();
    html.raw(if is_error { "<span class=\"fault\">" } else { "<span class=\"fine\">" });
    html.short(reason.unwrap_or(if is_error { "error" } else { "ok" }), 60).raw("</span>");
    html
}

/// A duration for people.
pub(super) fn took(duration: Duration) -> String {
    time(micros(duration))
}

/// How many calls are in flight and done.
pub(super) fn doing(open: usize, done: u64, failed: u64) -> String {
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{open} in flight, {} done{failed}", count(usize::try_from(done).unwrap_or(usize::MAX), "call"))
}
