//! How runs get their turns: plain threads, each with many runs, and nothing of any language.
//!
//! # Layout
//! - `dispatch`: how guests become runs
//! - `queue`, `worker`: runs on threads; `work`: what a worker holds of one run; `turns`: which of them is next
//! - `coroutine`: suspending one half-way; `watchdog`: deadlines; `commitment`: memory of all together

pub(crate) mod commitment;
mod coroutine;
pub(crate) mod dispatch;
pub(crate) mod engine;
pub(crate) mod queue;
mod turns;
pub(crate) mod watchdog;
mod work;
pub(crate) mod worker;
