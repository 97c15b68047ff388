//! Runs PTC-Lisp programs next to MCP tools.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`Runtime`] (`runtime`), [`RuntimeBuilder`] (`builder`), `startup`: start servers and workers, queue runs, shut down.
//! - `agent` (feature `agent`): a model writes programs until one of them returns the answer.
//! - [`history`]: what was done before, and the namespace `log/` over it.
//! - [`Scope`] (`scope`): places of a runtime with tools of their own.
//! - [`session`]: programs that build on each other.
//! - [`Run`], [`RunStream`] (`handle`): programs under way.
//! - [`prelude_store`]: versions of preludes.
//! - `exec`: runs on plain threads: queue, turns, deadlines, cancellation, memory of all together.
//! - `guest`: what runs there; [`guest::lisp`]: PTC-Lisp programs.
//! - [`HostTool`] (`host`): async functions of the application as tools.
//! - [`broker`]: tool calls of a run, whoever makes them: found, paid for, sent, entered into the ledger.
//! - [`config`]: the file that names upstream servers.
//! - [`upstream`]: servers as their callers see them: a supervisor over transports, restarts, tool lists.
//! - [`tools`]: tools as data: the catalog, policies, schemas, and what is wrong with a call in words.
//! - [`run`]: one run: options, limits, account, outcome, metrics, watcher.
//! - [`spill`]: results that are too large to carry, in files.
//! - [`net`]: HTTP as a client speaks it.
//! - [`secrets`]: what must not leave the process.
//! - `process`: what a process gives up about itself.
//! - `files`: files that people name, opened, made and replaced.
//!
//! Architecture invariant: isolates live on worker threads (a tiny one lives and dies within one call on its
//! caller's, see [`guest::lisp`]) and never touch a socket; connections and
//! timers live on the I/O runtime and never touch a value. Only plain data crosses.

#[cfg(feature = "agent")]
pub mod agent;
pub mod broker;
mod builder;
pub mod config;
mod exec;
#[doc(hidden)]
pub mod files;
pub mod guest;
mod handle;
pub mod history;
mod host;
pub mod memory;
pub mod net;
pub mod prelude_store;
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod process;
pub mod run;
mod runtime;
mod scope;
pub mod secrets;
pub mod session;
pub mod spill;
mod startup;
pub mod tasks;
pub mod tools;
pub mod upstream;

pub use builder::RuntimeBuilder;
pub use exec::dispatch::Submitted;
pub use guest::lisp::inspect::Inspection;
pub use guest::lisp::prelude::{Prelude, PreludeError, PreludeSource};
pub use guest::lisp::{card, discovery};
pub use handle::{Run, RunEvent, RunStream};
pub use host::{HostTool, NoArguments};
pub use run::ValueError;
pub use run::limits::Limits;
pub use run::options::RunOptions;
pub use run::outcome::{Effect, Failure, Outcome};
pub use run::totals::{CallTotals, Tally};
pub use run::{limits, metrics, options, outcome, trace, watcher};
pub use runtime::{Reconfigured, Runtime, ServerStatus};
pub use schemars;
pub use scope::Scope;
pub use startup::{
    Capacity, DEFAULT_CACHE_BYTES, DEFAULT_TRY_AGAIN, Observer, RuntimeConfig, StartError, StartEvent,
    StartPolicy, StartProgress,
};
