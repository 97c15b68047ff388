//! Provides what the tool calls of programs need before and after they are made: tool catalogs, limits and policies
//! that decide about calls, and journals that record them for replay.
//!
//! An application uses `ptc-runtime`, which re-exports what is stable. Items of this crate change with the crates
//! above it.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`HostTool`] (`host`): async functions of the application as tools.
//! - [`policy`]: which calls may leave, and which a person has to approve.
//! - [`state`]: facts about servers that are remembered between runs of the program.
//! - [`tools`]: tools as data: the catalog, effects, schemas, and texts about wrong calls.
//! - [`schema`]: JSON Schema: reads schemas, and checks values against them.
//! - [`run`]: one run: options, limits, account, outcome, metrics, watcher.
//! - [`journal`]: what a run was given, its calls and their answers; replays.

pub mod host;
pub mod journal;
pub mod policy;
pub mod run;
pub mod schema;
pub mod state;
pub mod tools;

pub use host::{HostTool, NoArguments};
pub use run::ValueError;
pub use run::client::asker;
pub use run::limits::Limits;
pub use run::options::RunOptions;
pub use run::outcome::{Effect, Failure, Outcome};
pub use run::totals::{CallTotals, Tally};
pub use run::{limits, metrics, options, outcome, trace, watcher};
#[cfg(feature = "schemars")]
pub use schemars;
