//! One run, whatever language it is in: what goes into it and what comes out, plain data.
//!
//! # Layout
//! - [`options`], [`limits`]: what a caller asks for; [`outcome`], [`metrics`]: what it gets; `value`: types of the
//!   application
//! - [`trace`]: which trace of its caller it belongs to; [`client`]: its client, whom servers may ask
//! - [`account`]: budget and deadline of one run; `ledger`: its calls; [`totals`]: their number and bytes; `outgoing`: their arguments on their way
//! - [`watcher`]: how a caller follows a run; `unseen`: failed calls that its answer does not show; `release`: its end
//!   without secrets

pub mod account;
pub mod client;
pub(crate) mod ledger;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod outcome;
pub(crate) mod outgoing;
pub(crate) mod release;
pub mod totals;
pub mod trace;
mod unseen;
mod value;
pub mod watcher;

pub use value::ValueError;

/// Number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub(crate) u64);
