//! Runs that outlive their process: what was under way when it ended is never done twice.
//!
//! - `kills`: servers that are killed. `going_on`: what a run has that goes on. `cuts`: journals that end at every record, of random programs. `many`: many runs, and
//!   copies of their folder. `nodes`: processes that share a database.
//! - `sessions`: sessions with a state. `tasks`: calls that clients come back to. `upstream_tasks`: servers that answer with tasks.

#![allow(clippy::unwrap_used, reason = "a broken run should be loud")]

mod cuts;
mod going_on;
mod kills;
mod many;
mod nodes;
mod sessions;
mod tasks;
mod upstream_tasks;
