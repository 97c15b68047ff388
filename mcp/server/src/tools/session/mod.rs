//! The session tools (`--sessions`), which let a program use the values that earlier programs have defined.
//!
//! # Layout
//!
//! - `table`: the open sessions with their owners, quotas and expiry.
//! - `stored`: sessions in the state of the server. `changes`: the log of one; `turn`: who may add to it.
//!   `closing`: how one ends at all processes. `counted`: how many an owner has at all of them.
//! - `eval`: a program in a session. `view`: the contents of a session, for answers.
//! - `preludes`: preludes of sessions, from the store.
//! - `simple`: the tools that run no program.
//! - `arguments`: arguments of all these tools. [`fault`]: why their calls fail.
//! - here: the list of the tools, and the form of their answers.

mod arguments;
mod changes;
mod closing;
mod counted;
mod eval;
pub mod fault;
mod preludes;
mod simple;
mod stored;
mod table;
mod turn;
mod view;

pub use eval::SessionEval;
pub use preludes::StoreAccess;
pub(crate) use table::session_id;
pub use table::{SessionQuotas, SessionTable};
pub(crate) use view::SessionFacts;

use super::{Tool, ToolAnswer};
use crate::answer::{CallSummary, refusal_data};
use fault::{SessionFault, SessionReason};
use serde_json::{Map, Value};
use simple::{BoundTool, SimpleTool};
use std::sync::Arc;

const SESSION_ID: &str = "As lisp_session_start gave it.";

/// The tools, in the order of `tools/list`.
pub fn tools(table: &Arc<SessionTable>) -> Vec<Box<dyn Tool>> {
    let simple = |tool: SimpleTool| Box::new(BoundTool { tool, table: table.clone() }) as Box<dyn Tool>;
    let mut tools = vec![
        simple(SimpleTool::Start),
        simple(SimpleTool::List),
        Box::new(SessionEval::new(table.clone())),
        simple(SimpleTool::Inspect),
        simple(SimpleTool::Forget),
        simple(SimpleTool::Close),
    ];
    if table.stores.store.is_some() {
        tools.push(simple(SimpleTool::ListPreludes));
    }
    tools
}

/// Names of the tools, in the same order.
pub const NAMES: [&str; 7] = [
    SimpleTool::Start.name(),
    SimpleTool::List.name(),
    eval::NAME,
    SimpleTool::Inspect.name(),
    SimpleTool::Forget.name(),
    SimpleTool::Close.name(),
    SimpleTool::ListPreludes.name(),
];

/// An answer with the status ok.
fn ok<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("status".into(), "ok".into());
    map.extend(entries.into_iter().map(|(key, value)| (key.to_owned(), value)));
    map
}

/// An answer that no profile shortens: data, repeated as text.
fn data_answer(answer: Map<String, Value>) -> ToolAnswer<'static> {
    ToolAnswer::data(answer.into(), false)
}

/// The answer to a call, which may have failed.
fn result_answer(answer: Result<Map<String, Value>, SessionFault>) -> ToolAnswer<'static> {
    answer.map_or_else(|fault| refused(&fault), data_answer)
}

/// The answer to a call that failed.
fn refused(fault: &SessionFault) -> ToolAnswer<'static> {
    let mut data = refusal_data(fault.reason.name(), &fault.message);
    if fault.reason == SessionReason::Busy
        && let Some(id) = &fault.session_id
    {
        data["session_id"] = id.as_str().into();
    }
    ToolAnswer { summary: CallSummary::failed(fault.reason.name()), ..ToolAnswer::data(data, true) }
}
