//! Renders the view of servers on the web page (`--ui`): state, login, tools, and tools that differ from their approved
//! definitions (pins).

use super::Viewer;
use super::html::Html;
use super::runs::took;
use ptc_calls::policy::{NOT_AS_PINNED, PinMode};
use ptc_engine::{Runtime, ServerStatus};
use ptc_upstream::UpstreamState;

/// Most servers, tools of each, and notes of each that are shown.
const MOST: usize = 200;
const MOST_TOOLS: usize = 300;
const MOST_NOTES: usize = 50;

/// Most characters of a text of a server.
const TEXT: usize = 300;

/// The view at this moment.
pub(super) fn shown(runtime: Option<&Runtime>, viewer: &Viewer) -> Html {
    let mut html = Html::default();
    html.raw("<h1>Servers</h1>\n<div data-part=\"servers\">\n");
    let all = runtime.map(Runtime::servers).unwrap_or_default();
    let may_see =
        |server: &ServerStatus| viewer.servers.as_ref().is_none_or(|names| names.contains(&server.name));
    let own: Vec<ServerStatus> = all.into_iter().filter(may_see).collect();
    if own.is_empty() {
        html.raw("<p class=\"quiet\">No server is configured.</p>\n");
    }
    for server in own.iter().take(MOST) {
        one(&mut html, server, runtime.and_then(Runtime::pin_mode));
    }
    if own.len() > MOST {
        html.raw("<p>").number((own.len() - MOST) as u64).raw(" more.</p>\n");
    }
    html.raw("</div>\n");
    html
}

fn one(html: &mut Html, server: &ServerStatus, pins: Option<PinMode>) {
    let ServerStatus { name, state, tools, .. } = server;
    html.raw("<article class=\"server\"><h2>").short(name, TEXT).raw(" <span class=\"");
    html.raw(match state {
        UpstreamState::Ready => "fine",
        UpstreamState::Failed | UpstreamState::BackingOff | UpstreamState::LoginRequired => "fault",
        UpstreamState::Idle | UpstreamState::Starting | UpstreamState::Stopped => "quiet",
    });
    html.raw("\">").raw(state.name()).raw("</span></h2>\n");
    if let Some(description) = &server.description {
        html.raw("<p>").short(description, TEXT).raw("</p>\n");
    }
    html.raw("<p class=\"quiet\">");
    if let Some(info) = &server.server_info {
        html.short(info, TEXT).raw(" ");
    }
    if let Some(protocol) = &server.protocol {
        html.raw("MCP ").short(protocol, 40).raw(" ");
    }
    if let Some(start) = server.start_duration {
        html.raw("started in ").line(&took(start));
    }
    html.raw("</p>\n");
    if *state == UpstreamState::LoginRequired {
        html.raw("<p>It needs a login: <code>ptc login ").short(name, TEXT).raw("</code></p>\n");
    }
    if let Some(error) = &server.error {
        html.raw("<p class=\"fault\">").short(error, TEXT).raw("</p>\n");
    }
    notes(html, &server.notes);
    if pins.is_some() && server.tools_loaded && !server.notes.iter().any(|note| note.contains(NOT_AS_PINNED))
    {
        html.raw("<p class=\"quiet\">Pins: as reviewed.</p>\n");
    }
    if server.tools_loaded {
        html.raw("<details data-key=\"").line(name).raw("\"><summary>").number(tools.len() as u64);
        html.raw(if tools.len() == 1 { " tool" } else { " tools" }).raw("</summary><ul>");
        for tool in tools.iter().take(MOST_TOOLS) {
            html.raw("<li><code>").short(&tool.name, TEXT).raw("</code> ");
            html.short(tool.description.as_deref().unwrap_or_default(), TEXT).raw("</li>\n");
        }
        if tools.len() > MOST_TOOLS {
            html.raw("<li class=\"quiet\">… more</li>");
        }
        html.raw("</ul></details>\n");
    }
    html.raw("</article>\n");
}

/// Problems of the list of tools. Those of pins are among them.
fn notes(html: &mut Html, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    html.raw("<ul class=\"notes\">");
    for note in notes.iter().take(MOST_NOTES) {
        html.raw(if note.contains(NOT_AS_PINNED) { "<li class=\"fault\">" } else { "<li>" })
            .short(note, TEXT)
            .raw("</li>\n");
    }
    if notes.len() > MOST_NOTES {
        html.raw("<li class=\"quiet\">… more</li>");
    }
    html.raw("</ul>\n");
}
