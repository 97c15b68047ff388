//! Defines the data of one run of a program or script: options, limits, resources used, tool calls, outcome, and the
//! interface by which a caller follows its progress.
//!
//! # Layout
//! - [`options`], [`limits`]: what a caller asks for; [`outcome`], [`metrics`]: what it gets; `value`:
//!   conversion to types of the application
//! - [`trace`]: the caller's trace; [`client`]: the client that the run executes for
//! - [`account`]: budgets and deadline of one run; `ledger`: its calls; [`totals`]: their number and bytes;
//!   `outgoing`: their encoded arguments before they are sent
//! - [`watcher`]: how a caller follows a run; `unreported_failures`: failed calls that the answer does not mention;
//!   `release`: redacts the outcome

pub mod account;
pub mod client;
pub mod ledger;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod outcome;
pub mod outgoing;
pub mod release;
pub mod totals;
pub mod trace;
mod unreported_failures;
mod value;
pub mod watcher;

pub use value::ValueError;

/// Number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);
