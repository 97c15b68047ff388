//! Defines the namespace `log/`, with which programs page through the record of earlier programs and their tool calls.
//! It is a prelude over private tools that read a [`TurnHistory`].

use super::{LogEntry, TurnHistory};
use crate::guest::lisp::prelude::Prelude;
use ptc_calls::host::HostTool;
use ptc_calls::run::outcome::Effect;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, LazyLock};

/// Default number of items on a page.
const PAGE: u64 = 100;

/// The namespace and its tools over these turns; pass both to [`crate::Scope::with`].
///
/// | export | gives |
/// |---|---|
/// | `(log/sessions opts?)` | what is known of each session: `correlation_id`, `driver`, `turns`, `committed`, `failed` |
/// | `(log/turns id opts?)` | its turns: program, status, `committed`, `result_preview`, `tool_calls`, `fail` |
/// | `(log/programs id opts?)` | their programs |
/// | `(log/tool-calls id opts?)` | their calls of tools |
///
/// Each gives a page `{:items … :next_cursor … :has_more … :limit …}`; options are `:limit` (100) and `:cursor`. With `-all`
/// behind its name an export gives all items as a list.
pub fn introspection(history: &Arc<TurnHistory>) -> (Vec<HostTool>, Arc<Prelude>) {
    static WRAPPER: LazyLock<Arc<Prelude>> = LazyLock::new(|| {
        // The text is part of this program, and a test compiles it.
        Arc::new(Prelude::of_host("log", include_str!("log.clj")).expect("it compiles"))
    });
    (TOOLS.into_iter().map(|(name, look)| tool(history, name, look)).collect(), WRAPPER.clone())
}

type View = fn(&TurnHistory, &str) -> Vec<Value>;

const TOOLS: [(&str, View); 4] = [
    ("log_sessions", |history, _| sessions(&history.turns(None))),
    ("log_turns", |history, id| history.turns(Some(id)).iter().map(|turn| turn.shown.clone()).collect()),
    ("log_programs", |history, id| {
        history.turns(Some(id)).iter().map(|turn| turn.shown["program"].clone()).collect()
    }),
    ("log_tool_calls", |history, id| {
        let turns = history.turns(Some(id));
        turns
            .iter()
            .flat_map(|turn| turn.shown["tool_calls"].as_array().cloned().unwrap_or_default())
            .collect()
    }),
];

/// The requested page. Invalid options are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PageRequest {
    #[serde(alias = "session-id")]
    session_id: Value,
    limit: Value,
    cursor: Value,
    all: bool,
}

impl PageRequest {
    /// A number, or a text that holds one.
    fn number(value: &Value) -> Option<u64> {
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    fn page(&self, items: Vec<Value>) -> Value {
        let all = items.len();
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        // At least one, so that following cursors makes progress.
        let limit =
            if self.all { all } else { size(PageRequest::number(&self.limit).unwrap_or(PAGE).max(1)) };
        let from = size(PageRequest::number(&self.cursor).unwrap_or(0)).min(all);
        let items: Vec<Value> = items.into_iter().skip(from).take(limit).collect();
        let next = from + items.len();
        let has_more = next < all;
        json!({
            "items": items, "next_cursor": has_more.then(|| next.to_string()), "has_more": has_more, "limit": limit,
        })
    }
}

fn tool(history: &Arc<TurnHistory>, name: &'static str, look: View) -> HostTool {
    let history = history.clone();
    let function = move |request: PageRequest| {
        let items = look(&history, request.session_id.as_str().unwrap_or_default());
        ready(Ok::<Value, Infallible>(request.page(items)))
    };
    HostTool::with_schema(name, json!({ "type": "object" }), function).effect(Effect::Read).private()
}

/// A summary of each session, in the order in which they began.
fn sessions(turns: &[Arc<LogEntry>]) -> Vec<Value> {
    struct Summary<'t> {
        of: &'t LogEntry,
        turns: u64,
        committed: u64,
        failed: u64,
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut summaries: Vec<Summary<'_>> = Vec::new();
    for turn in turns {
        let place = *places.entry(&turn.id).or_insert_with(|| {
            summaries.push(Summary { of: turn, turns: 0, committed: 0, failed: 0 });
            summaries.len() - 1
        });
        let summary = &mut summaries[place];
        summary.turns += 1;
        summary.committed += u64::from(turn.committed);
        summary.failed += u64::from(turn.is_error);
    }
    let shown = |Summary { of, turns, committed, failed }: Summary<'_>| {
        json!({
            "correlation_id": of.id, "driver": of.driver, "turns": turns, "committed": committed, "failed": failed,
        })
    };
    summaries.into_iter().map(shown).collect()
}
