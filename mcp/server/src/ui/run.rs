//! Renders the view of one run on the web page (`--ui`): its program, with the lines that make calls, and its calls on
//! an axis of time.

use super::html::Html;
use super::runs::{program, result, took};
use super::{Page, Viewer};
use crate::drawing::chart;
use crate::drawing::trace::{Trace, TraceCall, TraceRun, numbers};
use crate::drawing::units::micros;
use crate::observe::CallRecorder;
use crate::observe::entry::{RecordedCall, timestamp};
use crate::observe::live::LiveCall;
use ptc_calls::outcome::{CallRecord, CallStatus};
use ptc_calls::watcher::{OpenCallRecord, RunState};
use ptc_vm::Span;
use std::collections::BTreeMap;
use std::time::Duration;

/// Most calls that are drawn.
pub(super) const MOST_CALLS: usize = 1_000;

/// Most lines, and bytes of each, of a program that is shown.
const MOST_LINES: usize = 2_000;
const LINE_BYTES: usize = 2_000;

/// Most bytes of a message or an answer.
const TEXT_BYTES: usize = 8_192;

/// The run with this number, if it is one of the viewer's.
pub(super) fn shown(page: &Page, viewer: &Viewer, number: u64) -> Option<Html> {
    let recorder = page.recorder.as_deref()?;
    let owner = viewer.owner.0;
    let live = recorder.live.as_ref().and_then(|live| live.find(owner, number));
    match live {
        Some(call) => Some(under_way(&call, recorder)),
        // A call leaves the one table after it is in the other.
        None => recorder.ring.find(owner, number).map(|call| ended(&call, recorder)),
    }
}

fn under_way(call: &LiveCall, recorder: &CallRecorder) -> Html {
    let state = call.run.get().and_then(|run| run.look(0, MOST_CALLS));
    let mut html = Html::default();
    html.raw("<div class=\"run whole\" data-run=\"").number(call.number).raw("\">\n<h1>");
    html.line(&call.tool).raw(" #").number(call.number).raw("</h1>\n<p><span class=\"time\">");
    html.line(&took(call.begun.1.elapsed())).raw("</span> <span class=\"doing quiet\">");
    html.raw(if call.run.get().is_some() { "runs" } else { "waits to begin" });
    html.raw("</span> <span class=\"quiet\">request ").line(&call.request_id).raw("</span></p>\n");
    let (lines, calls) = match &state {
        Some(state) => (Lines::of_state(state), drawn_state(state)),
        None => Default::default(),
    };
    listing(&mut html, program(call.arguments.as_ref(), recorder.policy).as_deref(), &lines);
    html.raw("<h2>Calls</h2>\n<div class=\"chart\">");
    if let Some(state) = state {
        draw(&mut html, &trace_of(calls, micros(state.elapsed)));
    }
    html.raw("</div></div>\n");
    html
}

fn ended(call: &RecordedCall, recorder: &CallRecorder) -> Html {
    let (entry, mut html) = (&*call.entry, Html::default());
    html.raw("<h1>").line(&entry.tool).raw(" #").number(entry.number).raw("</h1>\n<p>");
    html.piece(&result(entry.is_error, entry.reason.as_deref())).raw(" <strong>").line(&took(entry.duration));
    html.raw("</strong> <time class=\"quiet\">").line(&timestamp(entry.ended));
    html.raw("</time> <span class=\"quiet\">request ").line(&entry.request_id).raw("</span></p>\n");
    let trace = trace_of_record(call);
    html.raw("<ul class=\"numbers\">");
    for number in numbers(&trace) {
        html.raw("<li>").line(&number).raw("</li>");
    }
    html.raw("</ul>\n");
    if let Some(message) = entry.run.as_ref().and_then(|run| run.message.as_deref()) {
        html.raw("<pre class=\"message\">").cut(message, TEXT_BYTES).raw("</pre>\n");
    }
    let lines = Lines::of_records(entry.calls());
    listing(&mut html, program(call.arguments.as_ref(), recorder.policy).as_deref(), &lines);
    if !trace.calls().is_empty() {
        html.raw("<h2>Calls</h2>\n<div class=\"chart\">");
        draw(&mut html, &trace);
        html.raw("</div>\n");
        failures(&mut html, entry.calls());
    }
    if let Some(answer) = &call.answer {
        html.raw("<h2>Answer</h2>\n<pre>").cut(answer, TEXT_BYTES).raw("</pre>\n");
    }
    html
}

/// The texts of calls that have failed.
fn failures(html: &mut Html, calls: &[CallRecord]) {
    const MOST: usize = 20;
    let failed = calls.iter().filter_map(|call| match &call.status {
        CallStatus::Ok => None,
        CallStatus::Error { reason, error } => Some((call, reason.name(), error)),
    });
    let mut failed = failed.take(MOST).peekable();
    if failed.peek().is_none() {
        return;
    }
    html.raw("<h2>Failures</h2>\n<ul>");
    for (call, reason, error) in failed {
        html.raw("<li><strong>").line(&call.server).raw("/").line(&call.tool);
        html.raw("</strong> <span class=\"fault\">")
            .line(reason)
            .raw("</span> ")
            .short(error, 500)
            .raw("</li>\n");
    }
    html.raw("</ul>\n");
}

fn draw(html: &mut Html, trace: &Trace) {
    html.drawing(|out| chart::embedded(out, trace));
}

fn trace_of(mut calls: Vec<TraceCall>, micros: u64) -> Trace {
    calls.sort_by_key(|call| call.begun);
    calls.truncate(MOST_CALLS);
    Trace { micros, run: Some(TraceRun { micros, calls, ..TraceRun::default() }), ..Trace::default() }
}

fn trace_of_record(call: &RecordedCall) -> Trace {
    let Some(run) = &call.entry.run else { return Trace::default() };
    let took = micros(run.usage.duration);
    let trace = trace_of(run.calls.iter().map(TraceCall::of_record).collect(), took);
    let run = trace.run.map(|drawn| TraceRun {
        fuel: run.usage.fuel,
        peak_bytes: Some(run.usage.peak_bytes),
        ..drawn
    });
    Trace { run, answer_bytes: call.entry.run.as_ref().and_then(|run| run.result_bytes), ..trace }
}

fn drawn_state(state: &RunState) -> Vec<TraceCall> {
    let now = micros(state.elapsed);
    let open = state.open.iter().map(|call| {
        let begun = micros(call.begun);
        TraceCall {
            name: format!("{}/{}", call.server, call.tool),
            begun,
            micros: now.saturating_sub(begun),
            ..TraceCall::default()
        }
    });
    state.ended.iter().map(TraceCall::of_record).chain(open).collect()
}

/// What the lines of a program have called: the calls by where they begin in its text.
#[derive(Debug, Default)]
struct Lines(BTreeMap<u32, LineCalls>);

#[derive(Clone, Copy, Debug, Default)]
struct LineCalls {
    calls: u64,
    open: u64,
    failed: u64,
    longest: Duration,
}

impl Lines {
    fn of_records(calls: &[CallRecord]) -> Lines {
        let mut lines = Lines::default();
        for call in calls {
            lines.add(call.place, |line| {
                line.calls += 1;
                line.failed += u64::from(call.status != CallStatus::Ok);
                line.longest = line.longest.max(call.duration);
            });
        }
        lines
    }

    fn of_state(state: &RunState) -> Lines {
        let mut lines = Lines::of_records(&state.ended);
        for OpenCallRecord { place, .. } in &state.open {
            lines.add(*place, |line| {
                line.calls += 1;
                line.open += 1;
            });
        }
        lines
    }

    fn add(&mut self, place: Option<Span>, add: impl FnOnce(&mut LineCalls)) {
        if let Some(place) = place {
            add(self.0.entry(place.start).or_default());
        }
    }

    /// What the line from one offset to another has called.
    fn between(&self, begin: usize, end: usize) -> LineCalls {
        let place = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let mut sum = LineCalls::default();
        for calls in self.0.range(place(begin)..place(end)).map(|(_, calls)| calls) {
            sum.calls += calls.calls;
            sum.open += calls.open;
            sum.failed += calls.failed;
            sum.longest = sum.longest.max(calls.longest);
        }
        sum
    }
}

/// Where the lines of a program end.
pub(super) struct LineEnds(Vec<usize>);

impl LineEnds {
    pub(super) fn of(program: &str) -> LineEnds {
        LineEnds(program.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The number of the line that holds the beginning of a place, from 1.
    pub(super) fn line_of(&self, place: Span) -> u64 {
        self.0.partition_point(|end| *end < place.start as usize) as u64 + 1
    }
}

/// A program with its lines that have made calls.
fn listing(html: &mut Html, program: Option<&str>, lines: &Lines) {
    let Some(program) = program else { return };
    html.raw("<h2>Program</h2>\n<ol class=\"program\">\n");
    let mut begin = 0;
    for (at, line) in program.split_inclusive('\n').enumerate() {
        if at == MOST_LINES {
            html.raw("<li class=\"quiet\">… more lines</li>\n");
            break;
        }
        let end = begin + line.len();
        let made = lines.between(begin, end);
        begin = end;
        html.raw(match (made.calls, made.open, made.failed) {
            (0, ..) => "<li",
            (_, 1.., _) => "<li class=\"lit open\"",
            (_, _, 1..) => "<li class=\"lit bad\"",
            _ => "<li class=\"lit\"",
        });
        html.raw(" data-line=\"").number(at as u64 + 1).raw("\"><code>");
        html.cut(line.trim_end_matches(['\n', '\r']), LINE_BYTES).raw("</code><span class=\"made\">");
        if made.calls > 0 {
            html.line(&said(made));
        }
        html.raw("</span></li>\n");
    }
    html.raw("</ol>\n");
}

fn said(made: LineCalls) -> String {
    let LineCalls { calls, open, failed, longest } = made;
    let mut said = format!("{calls}×");
    if open > 0 {
        said += &format!(", {open} in flight");
    }
    if failed > 0 {
        said += &format!(", {failed} failed");
    }
    if longest > Duration::ZERO {
        said += &format!(", ≤ {}", took(longest));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_in_the_lines_that_hold_them() {
        let program = "(a)\n(é)\r\n\n(b)";
        let ends = LineEnds::of(program);
        let line = |start| ends.line_of(Span::new(start, start + 1));
        assert_eq!([0, 3, 4, 10, 11, 13, 99].map(line), [1, 1, 2, 3, 4, 4, 4]);
    }
}
