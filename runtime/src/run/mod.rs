//! One run, whatever language it is in: what goes into it and what comes out, plain data.
//!
//! # Layout
//! - [`options`], [`limits`]: what a caller asks for; [`outcome`], [`metrics`]: what it gets
//! - [`account`]: budget, ledger and deadline of one run; `outgoing`: its arguments on their way to servers
//! - [`watcher`]: how a caller follows a run; `release`: its end without secrets

pub mod account;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod outcome;
pub(crate) mod outgoing;
pub(crate) mod release;
pub mod watcher;
