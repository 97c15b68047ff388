//! Executes runs on worker threads, many on each thread, or on the I/O runtime: queue, scheduling, preemption,
//! deadlines, memory of all programs. Nothing here depends on a language.
//!
//! # Layout
//! - `queue`: accepts runs; `handle`: cancels them; `inbox`: messages to a worker
//! - `async_runs`: runs on the I/O runtime; `resources`: what all workers share
//! - `worker`: runs on a thread; `work`: one run as its worker sees it; `scheduler`: picks the next run
//! - `coroutine`: suspends a run half-way; `watchdog`: deadlines; `commitment`: memory of all programs
//!   together

mod async_runs;
pub(crate) mod commitment;
mod coroutine;
pub(crate) mod handle;
mod inbox;
pub(crate) mod queue;
pub(crate) mod resources;
mod scheduler;
pub(crate) mod watchdog;
mod work;
pub(crate) mod worker;
