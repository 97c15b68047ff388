//! Runs programs on plain threads, many on each thread. Nothing here depends on a language.
//!
//! # Layout
//! - `dispatch`: turns guests into runs; `async_runs`: runs on the I/O runtime
//! - `queue`, `worker`: runs on threads; `work`: one run as its worker sees it; `scheduler`: picks the next run
//! - `coroutine`: suspends a run half-way; `watchdog`: deadlines; `commitment`: memory of all programs
//!   together

mod async_runs;
pub(crate) mod commitment;
mod coroutine;
pub(crate) mod dispatch;
pub(crate) mod queue;
pub(crate) mod resources;
mod scheduler;
pub(crate) mod watchdog;
mod work;
pub(crate) mod worker;
