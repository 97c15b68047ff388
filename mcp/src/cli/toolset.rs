//! Assembles the enabled MCP tools of `ptc serve`, with instructions for clients, into a request handler: one for all
//! configured servers, or one for clients that may use only some servers.

use super::flags::proxy::ProxyParts;
use ptc_calls::limits::Limits;
use ptc_calls::tools::ServerNames;
use ptc_engine::Runtime;
use ptc_engine::session::SessionLimits;
use ptc_python::engine::Engine;
use ptc_server::observe::CallRecorder;
use ptc_server::server::{DetachedRuns, Handler, Surface};
use ptc_server::tools::execute_program::{ExecuteProgram, ScriptLimits, ScriptSessions};
use ptc_server::tools::exposed::ExposedNames;
use ptc_server::tools::lisp_debug::LispDebug;
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::lisp_run::LispRun;
use ptc_server::tools::lisp_task::Tasks;
use ptc_server::tools::proxy::{ProxyDispatch, ProxyStorage};
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::session::{SessionQuotas, SessionTable, StoreAccess};
use ptc_server::tools::{Facts, Registry, Tool, execute_program, lisp_eval, lisp_run, lisp_task};
use std::sync::Arc;

const LISP_INSTRUCTIONS: &str = "Send one PTC-Lisp program to lisp_eval instead of many tool calls: it runs in a \
    sandbox with hard limits, calls the configured MCP servers with tool/call, and returns only its answer.";

const PYTHON_INSTRUCTIONS: &str = "Send one Python script to execute_program instead of many tool calls: it runs in a \
    sandbox with hard limits, awaits the tools of the configured MCP servers as functions, and returns only what it \
    prints.";

/// The parts of the tools that do not depend on a runtime or its servers.
pub(super) struct Toolset {
    /// Names of the enabled tools.
    pub(super) wanted: Vec<String>,
    /// Limits of programs.
    pub(super) limits: Limits,
    pub(super) scripts: Option<ScriptParts>,
    pub(super) proxy: Option<ProxyParts>,
    pub(super) sessions: Option<(SessionQuotas, SessionLimits, StoreAccess)>,
    pub(super) tasks: Option<Arc<Tasks>>,
    pub(super) recorder: Option<Arc<CallRecorder>>,
    /// Most bytes of an answer of `lisp_debug`, if it is enabled.
    pub(super) debug_bytes: Option<usize>,
    /// Exports that are tools of their own.
    pub(super) exposed: ExposedNames,
    /// Calls that go on without their requests.
    pub(super) detached: Arc<DetachedRuns>,
    /// Whether the list of tools may change, which needs servers.
    pub(super) changes: bool,
}

/// The parts of `execute_program`.
pub(super) struct ScriptParts {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) limits: ScriptLimits,
    /// Quotas of sessions, if scripts may share namespaces.
    pub(super) sessions: Option<SessionQuotas>,
}

impl Toolset {
    /// Whether this tool is enabled.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.wanted.iter().any(|wanted| wanted == name)
    }

    /// Makes a handler with tools for the servers of this runtime, which may be a restricted view. Its
    /// sessions and results are separate from those of other handlers.
    ///
    /// # Errors
    /// A definition that cannot be serialized.
    pub(super) fn handler(&self, runtime: &Arc<Runtime>, facts: Facts) -> serde_json::Result<Handler> {
        let mut more = MoreTools::default();
        if let Some(ScriptParts { engine, limits, sessions }) = &self.scripts {
            let engine =
                if runtime.is_restricted() { engine.clone().for_other_owners() } else { engine.clone() };
            let sessions = sessions.map(ScriptSessions::new);
            more.scripts = Some(ExecuteProgram::new(runtime.clone(), engine, *limits, sessions));
        }
        if let Some(ProxyParts { store, roots, rules }) = &self.proxy {
            let storage = ProxyStorage::new(store.clone(), roots.clone(), *rules);
            more.proxy = Some(ProxyDispatch::new(runtime.clone(), self.limits, storage));
        }
        if let Some((quotas, sizes, stores)) = &self.sessions {
            let stores = stores.clone();
            more.sessions = Some(SessionTable::new(runtime.clone(), *quotas, *sizes, self.limits, stores));
        }
        if let Some(prelude) = &facts.prelude {
            let evaluator: Arc<dyn Evaluator> = runtime.clone();
            more.exposed = self.exposed.tools(prelude, &evaluator, self.limits);
        }
        let exposed: Vec<String> = more.exposed.iter().map(|tool| tool.name().to_owned()).collect();
        if self.detached.limits.runs_after.is_some() {
            more.runs = Some(LispRun::new(self.detached.clone()));
        }
        more.tasks = self.tasks.as_ref().map(|tasks| tasks.with_runtime(runtime.clone()));
        more.debug = self
            .recorder
            .clone()
            .zip(self.debug_bytes)
            .map(|(recorder, bytes)| LispDebug::new(recorder, bytes));
        let sessions = more.sessions.clone();
        let registry = Registry::of_server(runtime.clone(), self.limits, more).only(|name| {
            self.wants(name)
                || [lisp_task::NAME, lisp_run::NAME].contains(&name)
                || exposed.iter().any(|exposed| exposed == name)
        });
        let instructions: Vec<&str> =
            [(lisp_eval::NAME, LISP_INSTRUCTIONS), (execute_program::NAME, PYTHON_INSTRUCTIONS)]
                .into_iter()
                .filter_map(|(name, text)| registry.find(name).map(|_| text))
                .collect();
        let surface = Surface {
            registry,
            facts,
            changes: self.changes,
            instructions: instructions.join("\n"),
            ready: runtime.is_started(),
            recorder: self.recorder.clone(),
        };
        let mut handler = Handler::new(surface)?;
        handler.client = runtime.client().clone();
        handler.sessions = sessions;
        handler.detached = self.detached.clone();
        Ok(handler)
    }

    /// Makes the handler for clients that may use these servers only.
    ///
    /// # Errors
    /// A definition that cannot be serialized.
    pub(super) fn part(
        &self,
        runtime: &Arc<Runtime>,
        servers: ServerNames,
        facts: Facts,
    ) -> serde_json::Result<Handler> {
        let facts = facts.only(&servers);
        self.handler(&Arc::new(runtime.restricted_to(servers)), facts)
    }
}
