//! Runs PTC-Lisp programs next to MCP tools.
//!
//! # Layout
//!
//! A run flows from top to bottom.
//!
//! - [`options`], [`limits`], [`outcome`], [`metrics`]: what goes into a run and what comes out, plain data.
//! - [`Runtime`] (`runtime`), `startup`: start servers and workers, queue programs, shut down.
//! - `queue`, `worker`, `watchdog`: programs on plain threads; deadlines and cancellation. `turns`: which of them
//!   runs next. `coroutine`: suspending one half-way. `commitment`: memory of all together.
//!   `work`: what a worker holds of one program.
//! - [`watcher`]: how a caller follows a run. `inline`: tiny programs on their caller's thread.
//! - `driver`: one program, slice by slice. `host_call`, `tool_call`: what it asks for. `rendering`: its end. `release`: its end
//!   without secrets.
//! - [`discovery`]: what programs can ask about names, servers and tools.
//! - [`tools`]: tools as data: the catalog, policies, schemas, and what is wrong with a call in words.
//! - [`context`]: the budget and ledger of one run. `outgoing`: its arguments on their way to servers.
//!   `program_cache`: compiled programs by source.
//! - [`upstream`]: MCP servers as clients see them: processes, connections, restarts, tool lists.
//! - [`config`]: the file that names upstream servers. [`secrets`]: what must not leave the process.
//!
//! Architecture invariant: isolates live on worker threads (a tiny one lives and dies within one call on its
//! caller's, see `inline`) and never touch a socket; connections and
//! timers live on the I/O runtime and never touch a value. Only plain data crosses.

mod commitment;
pub mod config;
pub mod context;
mod coroutine;
pub mod discovery;
mod driver;
mod engine;
mod host_call;
mod inline;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod outcome;
mod outgoing;
#[doc(hidden)]
pub mod probe;
mod program_cache;
mod queue;
mod release;
mod rendering;
mod runtime;
pub mod secrets;
mod startup;
mod tool_call;
pub mod tools;
mod turns;
pub mod upstream;
mod watchdog;
pub mod watcher;
mod work;
mod worker;

pub use inline::{Now, Warm};
pub use runtime::{
    DEFAULT_CACHE_BYTES, Load, Run, Runtime, RuntimeConfig, ServerStatus, StartPolicy, Submitted,
};
pub use startup::{Observer, StartError, StartEvent, StartProgress};
