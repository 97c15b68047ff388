//! Runs PTC-Lisp programs next to MCP tools.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`Runtime`] (`runtime`), [`RuntimeBuilder`] (`builder`), `startup`: start servers and workers, queue
//!   runs, shut down.
//! - [`Replayed`] (`replay`): recorded programs run again.
//! - `agent` (feature `agent`): a model writes programs until one of them returns the answer.
//! - [`history`]: records of earlier programs, and the namespace `log/` over them.
//! - [`Scope`] (`scope`): a runtime with additional tools and namespaces.
//! - [`session`]: programs that build on each other.
//! - [`Run`], [`RunStream`] (`handle`): handles of running programs.
//! - [`prelude_store`]: versions of preludes.
//! - `exec`: runs programs on plain threads: queue, scheduling, deadlines, cancellation, memory limits.
//! - `guest`: the interface between workers and what they run; [`guest::lisp`]: PTC-Lisp programs.
//! - [`HostTool`] (`host`): async functions of the application as tools.
//! - [`broker`]: tool calls of runs: finds the tool, charges the call, sends it, records it in the ledger.
//! - [`config`]: the file that names upstream servers.
//! - [`upstream`]: connections to servers: a supervisor over transports, restarts, tool lists.
//! - [`state`]: facts about servers that are remembered between runs of the program.
//! - [`tools`]: tools as data: the catalog, policies, schemas, and texts about wrong calls.
//! - [`policy`]: which calls may leave, and which a person has to approve.
//! - [`run`]: one run: options, limits, account, outcome, metrics, watcher.
//! - [`spill`]: writes results that are too large to carry to files.
//! - [`jwt`]: tokens that issuers have signed, and their verification.
//! - [`oauth`]: logins at servers, and their tokens.
//! - [`net`]: the HTTP client.
//! - [`journal`]: what a run was given, its calls and their answers; replays.
//! - [`store`]: where state that outlives a process is stored.
//! - [`secrets`]: what must not leave the process.
//! - `process`: facts and settings of the operating system process.
//! - `sync`: locks that outlive a panic.
//! - `files`: opens, creates and replaces files that people name.
//!
//! Architecture invariant: isolates live on worker threads and never touch a socket; connections and timers
//! live on the I/O runtime and never touch a value. Only plain data crosses. (A tiny program's isolate lives
//! on its caller's thread, see [`guest::lisp`].)

#[cfg(not(unix))]
compile_error!(
    "ptc-runtime needs Unix: processes of servers, signals and permissions of files. On Windows, build it in WSL."
);

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
pub mod journal;
pub mod jwt;
pub mod memory;
pub mod net;
pub mod oauth;
pub mod policy;
pub mod prelude_store;
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod process;
mod replay;
pub mod run;
mod runtime;
mod scope;
pub mod secrets;
pub mod session;
pub mod spill;
mod startup;
pub mod state;
pub mod store;
#[doc(hidden)]
pub mod sync;
pub mod tasks;
pub mod tools;
pub mod upstream;

pub use builder::RuntimeBuilder;
pub use exec::dispatch::Submitted;
pub use guest::lisp::inspect::Inspection;
pub use guest::lisp::prelude::{ExportHints, ExposedExport, Prelude, PreludeError, PreludeSource};
pub use guest::lisp::{card, discovery};
pub use handle::{Run, RunEvent, RunStream};
pub use host::{HostTool, NoArguments};
pub use replay::{ReplayOptions, Replayed, ReplayedScript};
pub use run::ValueError;
pub use run::client::asker;
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
