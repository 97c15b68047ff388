//! Renders the open sessions (values kept between programs) on the web page (`--ui`): for each session, the activity,
//! dates, memory and stored names.

use super::html::Html;
use crate::drawing::units::bytes;
use crate::tools::CallOwner;
use crate::tools::session::{SessionFacts, SessionTable};
use std::sync::Arc;

/// Most sessions that are shown.
const MOST: usize = 100;

/// Most characters of a title, and bytes of what a session holds.
const TITLE: usize = 200;
const HELD: usize = 4_096;

/// The view at this moment.
pub(super) fn shown(table: Option<&Arc<SessionTable>>, owner: CallOwner) -> Html {
    let mut html = Html::default();
    html.raw("<h1>Sessions</h1>\n");
    let Some(table) = table else {
        html.raw("<p>Sessions are off: this server runs without <code>--sessions</code>.</p>\n");
        return html;
    };
    html.raw("<div data-part=\"sessions\">\n");
    let sessions = table.facts(owner);
    if sessions.is_empty() {
        html.raw("<p class=\"quiet\">No session is open.</p>\n");
    }
    for session in sessions.iter().take(MOST) {
        one(&mut html, session);
    }
    if sessions.len() > MOST {
        html.raw("<p>").number((sessions.len() - MOST) as u64).raw(" more.</p>\n");
    }
    html.raw("</div>\n");
    html
}

fn one(html: &mut Html, session: &SessionFacts) {
    let SessionFacts { id, title, turn, created, used, expires, is_busy, memory_bytes, names, held } =
        session;
    html.raw("<article class=\"session\"><h2>").short(title.as_deref().unwrap_or("Session"), TITLE);
    html.raw(if *is_busy {
        " <span class=\"fine\">running</span>"
    } else {
        " <span class=\"quiet\">idle</span>"
    });
    html.raw("</h2>\n<p class=\"quiet\"><code>").line(id).raw("</code></p>\n<dl>");
    let mut row = |name: &'static str, value: &str| {
        html.raw("<dt>").raw(name).raw("</dt><dd>").line(value).raw("</dd>");
    };
    row("Programs", &turn.to_string());
    row("Names", &names.to_string());
    row("Memory", &bytes(*memory_bytes));
    row("Begun", created);
    row("Used", used);
    row("Ends", expires);
    html.raw("</dl>\n");
    if !held.is_empty() {
        html.raw("<details data-key=\"")
            .line(id)
            .raw("\"><summary>What it holds</summary><pre>")
            .cut(held, HELD)
            .raw("</pre></details>\n");
    }
    html.raw("</article>\n");
}
