//! Runs programs of the language PTC-Lisp in the engine: compiles a program with its libraries, executes it in the VM,
//! and hands the program's tool calls to the broker, which applies policy and limits. In a session (values that last
//! from one program to the next), the definitions of a program are kept.
//!
//! # Layout
//! - `driver`: one program, slice by slice; `compile`: its text; `host_call`, `tool_call`: its host calls;
//!   `rendering`, `media`: its result
//! - [`card`]: the language in a few lines, for models
//! - [`discovery`]: what programs can ask about names, servers and tools
//! - `environment`: what a program is compiled with; [`prelude`]: namespaces of a host
//! - [`Inspection`](inspect::Inspection): programs that are compiled and not run
//! - `build`: builds values for programs
//! - `fast_path`: tiny programs on their caller's thread; `pool`: prepared isolates
//! - `spilled`: parts of spilled results
//! - [`session`]: programs that build on each other
//! - `program_cache`: compiled programs by environment and source

mod build;
pub mod card;
mod compile;
pub mod discovery;
pub(crate) mod driver;
mod environment;
pub(crate) mod fast_path;
mod host_call;
pub(crate) mod inspect;
mod media;
mod pool;
pub mod prelude;
mod program_cache;
mod rendering;
pub mod session;
mod spilled;
pub(crate) mod tool_call;

use crate::broker::ToolBroker;
use environment::CompileEnvironment;
use prelude::Prelude;
use program_cache::ProgramCache;
use ptc_calls::host::{GrantedTools, HostTool};
use ptc_calls::run::outcome::Failure;
use ptc_calls::tools::ServerNames;
use std::sync::Arc;

/// What all programs of a runtime share.
pub(crate) struct Lisp {
    broker: Arc<ToolBroker>,
    cache: Arc<ProgramCache>,
    /// Environment of programs that belong to no session.
    environment: Arc<CompileEnvironment>,
    /// Programs have only tools that read.
    pub(crate) read_only: bool,
}

impl Lisp {
    /// The cache of compiled programs holds at most `cache_bytes`; 0 turns it off.
    pub(crate) fn new(
        broker: Arc<ToolBroker>,
        cache_bytes: usize,
        prelude: Option<Arc<Prelude>>,
        tools: Option<Arc<GrantedTools>>,
        read_only: bool,
    ) -> Lisp {
        let part = broker.catalog().view();
        let environment = Arc::new(CompileEnvironment::new(prelude, tools, Vec::new(), part));
        Lisp { broker, cache: ProgramCache::new(cache_bytes), environment, read_only }
    }

    /// Tools of the host for [`Lisp::with`], and those that the present namespaces need.
    ///
    /// # Errors
    /// A tool that programs could not call, or that would replace another one that a namespace uses.
    pub(crate) fn tools_with_inherited(
        &self,
        mut tools: Vec<HostTool>,
    ) -> Result<Option<Arc<GrantedTools>>, String> {
        let needed = self.environment.prelude().map(|prelude| prelude.granted_tools()).unwrap_or_default();
        let here = self.environment.tools();
        for tool in needed.into_iter().filter_map(|name| here.and_then(|here| here.tool(name))) {
            match tools.iter().find(|other| other.name() == tool.name()) {
                None => tools.push(tool.clone().private()),
                Some(other) if other.is_same_function(tool) => {}
                Some(_) => {
                    return Err(format!("tool {:?} has the name of one that a namespace needs", tool.name()));
                }
            }
        }
        GrantedTools::for_programs(tools, self.read_only)
    }

    /// Tools of the host.
    pub(crate) fn host_tools(&self) -> Option<Arc<GrantedTools>> {
        self.environment.tools().cloned()
    }

    /// The same servers and cache with other tools of the host, and additional namespaces.
    ///
    /// # Errors
    /// Two namespaces have the same name.
    pub(crate) fn with(
        &self,
        preludes: &[Arc<Prelude>],
        tools: Option<Arc<GrantedTools>>,
    ) -> Result<Lisp, String> {
        let preludes: Vec<_> = self.environment.prelude().into_iter().chain(preludes).cloned().collect();
        let (prelude, part) = (Prelude::joined(&preludes)?, self.broker.catalog().view());
        let prelude = prelude.map(|prelude| within(prelude, &self.broker));
        let environment = Arc::new(CompileEnvironment::new(prelude, tools, Vec::new(), part));
        let (broker, cache) = (self.broker.clone(), self.cache.clone());
        Ok(Lisp { broker, cache, environment, read_only: self.read_only })
    }

    /// The same tools of the host and namespaces, without servers.
    pub(crate) fn without_servers(&self) -> Lisp {
        let broker = Arc::new(self.broker.without_servers());
        // A new environment: compiled programs were checked against the servers, and so were the needs of
        // namespaces.
        let (prelude, tools) = (self.environment.prelude().cloned(), self.environment.tools().cloned());
        let environment = Arc::new(CompileEnvironment::new(prelude, tools, Vec::new(), 0));
        Lisp { broker, cache: ProgramCache::new(0), environment, read_only: self.read_only }
    }

    /// The same tools of the host and namespaces, with only these servers.
    pub(crate) fn restricted_to(&self, servers: ServerNames) -> Lisp {
        let broker = Arc::new(self.broker.restricted_to(servers));
        let (prelude, tools) = (self.environment.prelude().cloned(), self.environment.tools().cloned());
        let prelude = prelude.map(|prelude| within(prelude, &broker));
        let part = broker.catalog().view();
        let environment = Arc::new(CompileEnvironment::new(prelude, tools, Vec::new(), part));
        Lisp { broker, cache: self.cache.clone(), environment, read_only: self.read_only }
    }

    /// The same tools of the host with only these servers, and with this prelude instead of the present one.
    pub(crate) fn with_recorded(&self, servers: ServerNames, prelude: Option<Arc<Prelude>>) -> Lisp {
        let (catalog, tools) = (self.broker.catalog().snapshot(), self.environment.tools().cloned());
        let broker = match catalog.servers().all(|server| servers.contains(&server.name)) {
            true => self.broker.clone(),
            false => Arc::new(self.broker.restricted_to(servers)),
        };
        let prelude = prelude.map(|prelude| within(prelude, &broker));
        let part = broker.catalog().view();
        let environment = Arc::new(CompileEnvironment::new(prelude, tools, Vec::new(), part));
        Lisp { broker, cache: ProgramCache::new(0), environment, read_only: self.read_only }
    }

    /// Without servers, tools of the host and namespaces.
    pub(crate) fn bare(&self) -> Lisp {
        let environment = Arc::new(CompileEnvironment::new(None, None, Vec::new(), 0));
        Lisp { environment, ..self.without_servers() }
    }

    /// Checks that everything the namespaces need is there.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.environment.check(&self.broker)
    }

    /// Text about the namespaces for prompts.
    pub(crate) fn inventory(&self) -> String {
        self.environment.seen(&self.broker).and_then(|prelude| prelude.inventory()).unwrap_or_default()
    }

    /// Facts about the namespaces for records of runs.
    pub(crate) fn prelude_trace(&self) -> Option<Arc<serde_json::Value>> {
        self.environment.prelude().map(|prelude| prelude.trace().clone())
    }

    /// The namespaces that programs have from the host.
    pub(crate) fn prelude(&self) -> Option<&Arc<Prelude>> {
        self.environment.prelude()
    }

    /// The broker, which calls tools.
    pub(crate) fn broker(&self) -> &Arc<ToolBroker> {
        &self.broker
    }
}

/// A prelude for a restricted view of the servers. Exports that need other servers are left out; otherwise
/// the missing servers would keep every program from running.
fn within(prelude: Arc<Prelude>, broker: &ToolBroker) -> Arc<Prelude> {
    match broker.catalog().shown_names() {
        Some(names) => Arc::new(prelude.restricted_to(names)),
        None => prelude,
    }
}
