//! PTC-Lisp programs.
//!
//! # Layout
//! - `driver`: one program, slice by slice; `compile`: its text; `host_call`, `tool_call`: what it asks for;
//!   `rendering`, `media`: its end
//! - [`discovery`]: what programs can ask about names, servers and tools
//! - `environment`: what a program is compiled with beside its text; [`prelude`]: namespaces that a host attaches
//! - `fast_path`: tiny programs on their caller's thread; `pool`: isolates with their programs, ready to run
//! - [`session`]: programs that build on each other
//! - `program_cache`: compiled programs by environment and source

mod compile;
pub mod discovery;
mod driver;
mod environment;
pub(crate) mod fast_path;
mod host_call;
mod media;
mod pool;
pub mod prelude;
mod program_cache;
mod rendering;
pub mod session;
pub(crate) mod tool_call;

use super::MakeGuest;
use crate::broker::ToolBroker;
use crate::run::options::RunOptions;
use driver::Execution;
use environment::CompileEnvironment;
use prelude::Prelude;
use program_cache::ProgramCache;
use session::SessionRun;
use std::sync::Arc;

/// What the programs of a runtime share.
pub(crate) struct Lisp {
    broker: Arc<ToolBroker>,
    cache: ProgramCache,
    /// Of programs that belong to no session.
    environment: Arc<CompileEnvironment>,
}

impl Lisp {
    /// Keeps at most so many bytes of compiled programs; 0 turns the cache off.
    pub(crate) fn new(broker: Arc<ToolBroker>, cache_bytes: usize, preludes: Vec<Arc<Prelude>>) -> Lisp {
        let environment = Arc::new(CompileEnvironment::new(preludes, Vec::new()));
        Lisp { broker, cache: ProgramCache::new(cache_bytes), environment }
    }

    /// A program as a guest.
    pub(crate) fn guest(self: &Arc<Lisp>, source: Arc<str>, options: RunOptions) -> MakeGuest {
        let lisp = self.clone();
        Box::new(move |seat| Execution::begin(lisp, source, options, None, seat))
    }

    /// A program of a session as a guest, for the worker of that session.
    pub(crate) fn session_guest(
        self: &Arc<Lisp>,
        source: Arc<str>,
        options: RunOptions,
        run: SessionRun,
    ) -> MakeGuest {
        let lisp = self.clone();
        Box::new(move |seat| Execution::begin(lisp, source, options, Some(run), seat))
    }
}
