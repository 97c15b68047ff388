//! Runs PTC-Lisp programs next to MCP tools.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`Runtime`] (`runtime`), `startup`: start servers and workers, queue runs, shut down.
//! - [`session`]: programs that build on each other.
//! - `exec`: runs on plain threads: queue, turns, deadlines, cancellation, memory of all together.
//! - `guest`: what runs there; [`guest::lisp`]: PTC-Lisp programs.
//! - [`broker`]: tool calls of a run, whoever makes them: found, paid for, sent, entered into the ledger.
//! - [`config`]: the file that names upstream servers.
//! - [`upstream`]: servers as their callers see them: a supervisor over transports, restarts, tool lists.
//! - [`tools`]: tools as data: the catalog, policies, schemas, and what is wrong with a call in words.
//! - [`run`]: one run: options, limits, account, outcome, metrics, watcher.
//! - [`spill`]: results that are too large to carry, in files.
//! - [`net`]: HTTP as a client speaks it.
//! - [`secrets`]: what must not leave the process.
//!
//! Architecture invariant: isolates live on worker threads (a tiny one lives and dies within one call on its
//! caller's, see [`guest::lisp`]) and never touch a socket; connections and
//! timers live on the I/O runtime and never touch a value. Only plain data crosses.

pub mod broker;
pub mod config;
mod exec;
pub mod guest;
pub mod net;
#[doc(hidden)]
pub mod probe;
pub mod run;
mod runtime;
pub mod secrets;
pub mod session;
pub mod spill;
mod startup;
pub mod tools;
pub mod upstream;

pub use exec::dispatch::Submitted;
pub use guest::lisp::discovery;
pub use guest::lisp::prelude::Prelude;
pub use run::{limits, metrics, options, outcome, watcher};
pub use runtime::{
    Capacity, DEFAULT_CACHE_BYTES, DEFAULT_TRY_AGAIN, Reconfigured, Run, Runtime, RuntimeConfig, ServerStatus,
};
pub use startup::{Observer, StartError, StartEvent, StartPolicy, StartProgress};
