//! Renders the contents of a session for the answers of the session tools and for the web page (`--ui`).

use super::ok;
use super::table::OpenSession;
use crate::answer::outcome::call_json;
use ptc_base::secrets::Cut;
use ptc_engine::session::SessionContents;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The views of `lisp_session_inspect`.
pub(super) const VIEWS: [&str; 6] = ["overview", "memory", "prints", CALLS, "history", "limits"];

/// The view that has the calls of programs, with what servers said of those that failed.
pub(super) const CALLS: &str = "tool_calls";

/// Most names in the list of the largest ones.
const LARGEST: usize = 10;

/// The answer of `lisp_session_start`.
pub(super) fn started(session: &OpenSession) -> Map<String, Value> {
    let mut started = ok([
        ("session_id", session.id.as_str().into()),
        ("expires_at", session.expires.to_string().into()),
        ("mode", if session.preludes.may_write { "write_capable" } else { "read_only" }.into()),
        ("limits", limits(session)),
    ]);
    let preludes = &session.preludes;
    for (key, value) in [("prelude_refs", &preludes.references), ("preludes", &preludes.namespaces)] {
        if let Some(value) = value {
            started.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(missing) = &preludes.missing {
        started.insert("warnings".to_owned(), json!([missing]));
    }
    started
}

fn limits(session: &OpenSession) -> Value {
    let kept = session.session.limits();
    json!({
        "max_memory_bytes": kept.memory_bytes,
        "max_binding_bytes": kept.binding_bytes,
        "max_bindings": kept.bindings,
        "max_history_entry_bytes": kept.history_entry_bytes,
        "max_print_entries": kept.print_entries,
        "max_print_bytes": kept.print_bytes,
        "max_tool_call_entries": kept.call_entries,
        "max_tool_call_bytes": kept.call_bytes,
        "max_upstream_call_entries": kept.call_entries,
        "max_upstream_call_bytes": kept.call_bytes,
        "max_idle_ms": session.quotas.idle_ms,
    })
}

/// The entry of a session in a list.
pub(super) fn summary(session: &OpenSession) -> Map<String, Value> {
    let (turn, usage) = session.session.contents(|contents| (contents.turn, contents.usage()));
    let status = if session.session.is_busy() { "running" } else { "idle" };
    let summary = json!({
        "session_id": session.id,
        "title": session.title,
        "turn": turn,
        "created_at": session.created.to_string(),
        "updated_at": session.used().0.to_string(),
        "expires_at": session.expires.to_string(),
        "eval_status": status,
        "memory_bytes": usage.memory_bytes,
        "binding_count": usage.bindings,
    });
    match summary {
        Value::Object(summary) => summary,
        _ => Map::new(),
    }
}

/// A session, as a page shows it.
pub(crate) struct SessionFacts {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) turn: u64,
    pub(crate) created: String,
    pub(crate) used: String,
    pub(crate) expires: String,
    pub(crate) is_busy: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) names: u64,
    /// Its names with the beginnings of their values.
    pub(crate) held: String,
}

impl SessionFacts {
    pub(super) fn new(session: &OpenSession) -> SessionFacts {
        let (turn, usage, held) = session.session.contents(|contents| {
            let names = if contents.bindings.is_empty() { String::new() } else { memory(contents) };
            (contents.turn, contents.usage(), names)
        });
        SessionFacts {
            id: session.id.clone(),
            title: session.title.clone(),
            turn,
            created: session.created.to_string(),
            used: session.used().0.to_string(),
            expires: session.expires.to_string(),
            is_busy: session.session.is_busy(),
            memory_bytes: usage.memory_bytes,
            names: usage.bindings,
            held,
        }
    }
}

/// The answer of `lisp_session_inspect`. An unknown view means the overview.
pub(super) fn inspect(session: &OpenSession, view: &str) -> Map<String, Value> {
    let view = VIEWS.into_iter().find(|known| *known == view).unwrap_or("overview");
    let mut shown = ok([
        ("session_id", session.id.as_str().into()),
        ("view", view.into()),
        ("session", summary(session).into()),
    ]);
    session.session.contents(|contents| {
        let mut put = |key: &str, value: Value| {
            shown.insert(key.to_owned(), value);
        };
        match view {
            "memory" => put("text", memory(contents).into()),
            "history" => put("text", history(contents).into()),
            "prints" => {
                let lines: Vec<&str> = contents.prints.iter().map(|line| &**line).collect();
                put("prints", lines.as_slice().into());
                put("text", lines.join("\n").into());
            }
            CALLS => {
                let calls: Vec<Value> = contents.calls.iter().map(call_json).collect();
                let names: Vec<String> =
                    contents.calls.iter().map(|call| format!("{}.{}", call.server, call.tool)).collect();
                put("tool_calls", json!([]));
                put("upstream_calls", calls.into());
                put("text", names.join("\n").into());
            }
            "limits" => {
                put("limits", limits(session));
                put("usage", usage(contents));
                put("top_bindings", largest(contents));
            }
            _ => {
                put("usage", usage(contents));
                put("stored_keys", contents.bindings.keys().cloned().collect());
                put("text", format!("{}\n{}", memory(contents), history(contents)).into());
            }
        }
    });
    shown
}

/// The answer of `lisp_session_forget`.
pub(super) fn forgotten(
    session: &OpenSession,
    gone: Vec<String>,
    cleared: Vec<String>,
) -> Map<String, Value> {
    session.session.contents(|contents| {
        ok([
            ("session_id", session.id.as_str().into()),
            ("removed_bindings", gone.into()),
            ("cleared", cleared.into()),
            ("stored_keys", contents.bindings.keys().cloned().collect()),
            ("usage", usage(contents)),
        ])
    })
}

fn usage(contents: &SessionContents) -> Value {
    let usage = contents.usage();
    json!({
        "memory_bytes": usage.memory_bytes,
        "binding_count": usage.bindings,
        "history_count": usage.history,
        "history_bytes": usage.history_bytes,
        "print_entries": usage.prints,
        "print_bytes": usage.print_bytes,
        "tool_call_entries": 0,
        "tool_call_bytes": 0,
        "upstream_call_entries": usage.calls,
        "upstream_call_bytes": usage.call_bytes,
    })
}

fn largest(contents: &SessionContents) -> Value {
    let mut names: Vec<_> = contents.bindings.iter().map(|(name, binding)| (binding.bytes, name)).collect();
    names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    names.into_iter().take(LARGEST).map(|(bytes, name)| json!({ "name": name, "bytes": bytes })).collect()
}

fn memory(contents: &SessionContents) -> String {
    if contents.bindings.is_empty() {
        return ";; No stored bindings".to_owned();
    }
    let mut text = ";; Stored bindings:".to_owned();
    for (name, binding) in &contents.bindings {
        let _ = write!(text, "\n;; {name} = {}", binding.preview);
    }
    text
}

fn history(contents: &SessionContents) -> String {
    const SHOWN: usize = 120;
    let mut text = ";; History:".to_owned();
    for at in 0..3 {
        let entry = contents.history.get(at);
        let shown = entry.map_or("nil", |entry| entry.preview.first(Cut::Chars(SHOWN)));
        let _ = write!(text, "\n;   *{} {shown}", at + 1);
    }
    text
}
