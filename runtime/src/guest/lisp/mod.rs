//! PTC-Lisp programs.
//!
//! # Layout
//! - `driver`: one program, slice by slice; `compile`: its text; `host_call`, `tool_call`: what it asks for;
//!   `rendering`: its end
//! - [`discovery`]: what programs can ask about names, servers and tools
//! - `inline`: tiny programs on their caller's thread; `program_cache`: compiled programs by source

mod compile;
pub mod discovery;
mod driver;
mod host_call;
pub(crate) mod inline;
mod program_cache;
mod rendering;
pub(crate) mod tool_call;

use super::MakeGuest;
use crate::broker::ToolBroker;
use crate::run::options::RunOptions;
use driver::Execution;
use program_cache::ProgramCache;
use std::sync::Arc;

/// What the programs of a runtime share.
pub(crate) struct Lisp {
    broker: Arc<ToolBroker>,
    cache: ProgramCache,
}

impl Lisp {
    /// Keeps at most so many bytes of compiled programs; 0 turns the cache off.
    pub(crate) fn new(broker: Arc<ToolBroker>, cache_bytes: usize) -> Lisp {
        Lisp { broker, cache: ProgramCache::new(cache_bytes) }
    }

    /// A program as a guest.
    pub(crate) fn guest(self: &Arc<Lisp>, source: Arc<str>, options: RunOptions) -> MakeGuest {
        let lisp = self.clone();
        Box::new(move |seat| Execution::begin(lisp, source, options, seat))
    }
}
