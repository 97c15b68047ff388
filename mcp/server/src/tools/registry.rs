//! The registry of the MCP tools that the server offers: finds them by name, and builds the JSON of `tools/list`.

use super::execute_program::ExecuteProgram;
use super::exposed::ExposedTool;
use super::lisp_debug::LispDebug;
use super::lisp_eval::{Evaluator, LispEval};
use super::lisp_run::LispRun;
use super::lisp_task::{LispTask, Tasks};
use super::proxy::ProxyDispatch;
use super::session::{self, SessionTable};
use super::{Definition, Facts, SessionTag, TaskSupport, Tool};
use crate::protocol::Era;
use ptc_calls::limits::Limits;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// The tools, in the order of `tools/list`. Of two tools with the same name the first one is used.
#[derive(Default)]
pub struct Registry {
    /// The tools, each with a name of its own.
    pub tools: Vec<Box<dyn Tool>>,
}

/// The optional tools that are enabled.
#[derive(Default)]
pub struct MoreTools {
    /// `lisp_debug`.
    pub debug: Option<LispDebug>,
    /// Exports of preludes.
    pub exposed: Vec<ExposedTool>,
    /// `lisp_run`.
    pub runs: Option<LispRun>,
    /// `execute_program`.
    pub scripts: Option<ExecuteProgram>,
    /// `proxy-dispatch`.
    pub proxy: Option<ProxyDispatch>,
    /// `lisp_task`.
    pub tasks: Option<Arc<Tasks>>,
    /// The tools of sessions.
    pub sessions: Option<Arc<SessionTable>>,
}

impl Registry {
    /// The registry of `ptc serve`: one line a tool.
    pub fn of_server(evaluator: Arc<dyn Evaluator>, limits: Limits, more: MoreTools) -> Registry {
        let MoreTools { debug, exposed, runs, scripts, proxy, tasks, sessions } = more;
        let mut registry = Registry::default().with(LispEval::new(evaluator, limits));
        registry.add(runs);
        registry.add(tasks.map(LispTask::new));
        registry.add(debug);
        registry.add(scripts);
        registry.add(proxy);
        registry.tools.extend(sessions.iter().flat_map(session::tools));
        registry.add(exposed);
        registry
    }

    /// Adds a tool.
    pub fn with(mut self, tool: impl Tool + 'static) -> Registry {
        self.tools.push(Box::new(tool));
        self
    }

    fn add<T: Tool + 'static>(&mut self, tools: impl IntoIterator<Item = T>) {
        self.tools.extend(tools.into_iter().map(|tool| Box::new(tool) as Box<dyn Tool>));
    }

    /// Keeps only some of the tools.
    pub fn only(mut self, wanted: impl Fn(&str) -> bool) -> Registry {
        self.tools.retain(|tool| wanted(tool.name()));
        self
    }

    /// True if calls of some tool may be tasks.
    pub fn has_tasks(&self) -> bool {
        self.tools.iter().any(|tool| tool.task_support() != TaskSupport::Forbidden)
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// Notifies all tools of the end of a client session.
    pub fn session_ended(&self, session: SessionTag) {
        self.tools.iter().for_each(|tool| tool.session_ended(session));
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The descriptions of all tools.
    pub fn descriptions(&self, facts: &Facts) -> Vec<String> {
        self.tools.iter().map(|tool| tool.definition(facts).description).collect()
    }

    /// The JSON array of `tools/list`.
    ///
    /// # Errors
    /// A definition that cannot be serialized.
    pub fn list(&self, facts: &Facts) -> serde_json::Result<Box<RawValue>> {
        #[derive(Serialize)]
        struct ToolEntry<'t> {
            name: &'t str,
            #[serde(flatten)]
            definition: Definition,
            #[serde(skip_serializing_if = "Option::is_none")]
            execution: Option<Execution>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Execution {
            task_support: TaskSupport,
        }
        let entry = |tool: &dyn Tool| {
            // Clients without a handshake do not ask for tasks.
            let task_support = tool.task_support();
            let is_said = facts.era == Era::Handshake && task_support != TaskSupport::Forbidden;
            let execution = is_said.then_some(Execution { task_support });
            to_raw_value(&ToolEntry { name: tool.name(), definition: tool.definition(facts), execution })
        };
        to_raw_value(&self.tools.iter().map(|tool| entry(&**tool)).collect::<serde_json::Result<Vec<_>>>()?)
    }
}
