//! Runs programs on worker threads under limits, and carries out their tool calls: the engine behind the crate
//! `ptc-runtime`.
//!
//! An application uses `ptc-runtime`, which re-exports what is stable. Items of this crate change with the crates
//! above it.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`Replayed`] (`replay`): recorded programs run again.
//! - [`Runtime`] (`runtime`), [`RuntimeBuilder`] (`builder`), `startup`: start servers and workers, queue
//!   runs, shut down.
//! - [`Scope`] (`scope`): a runtime with additional tools and namespaces.
//! - [`session`]: programs that build on each other.
//! - [`Run`], [`RunStream`] (`handle`): handles of running programs.
//! - [`history`]: records of earlier programs, and the namespace `log/` over them.
//! - [`prelude_store`]: versions of preludes.
//! - `exec`: runs programs on plain threads: queue, scheduling, deadlines, cancellation, memory limits.
//! - `guest`: the interface between workers and what they run; [`guest::lisp`]: PTC-Lisp programs.
//! - [`broker`]: tool calls of runs: finds the tool, charges the call, sends it, records it in the ledger.
//!
//! Architecture invariant: isolates live on worker threads and never touch a socket; connections and timers
//! live on the I/O runtime and never touch a value. Only plain data crosses. (A tiny program's isolate lives
//! on its caller's thread, see [`guest::lisp`].)

pub mod broker;
mod builder;
mod exec;
pub mod guest;
mod handle;
pub mod history;
pub mod prelude_store;
#[doc(hidden)]
pub mod probe;
mod replay;
pub mod runtime;
pub mod scope;
pub mod session;
mod startup;

pub use builder::RuntimeBuilder;
pub use exec::handle::Submitted;
pub use guest::lisp::inspect::Inspection;
pub use guest::lisp::prelude::{ExportHints, ExposedExport, Prelude, PreludeError, PreludeSource};
pub use guest::lisp::{card, discovery};
pub use handle::{Run, RunEvent, RunStream};
pub use replay::{ReplayOptions, Replayed, ReplayedScript};
pub use runtime::{Reconfigured, Runtime, ServerStatus};
pub use scope::Scope;
pub use startup::{
    Capacity, DEFAULT_CACHE_BYTES, DEFAULT_TRY_AGAIN, Observer, RuntimeConfig, StartError, StartEvent,
    StartPolicy, StartProgress,
};
