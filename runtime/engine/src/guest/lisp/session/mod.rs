//! Implements sessions, in which programs build on each other: a program can use the values and functions that earlier
//! ones have defined.
//!
//! The isolate of a session stays on one worker, in a table of that thread (`isolates`). A run takes it out,
//! works in it, and puts it back. Other threads know the session by its `SessionState`: plain data about what
//! is stored, written by each commit (`commit`).
//!
//! Invariants: an isolate in the table holds only what was committed. A run that failed, or with an answer that was
//! refused, leaves session and state as they were.

pub(super) mod commit;
pub(super) mod isolates;
mod state;

pub(crate) use isolates::{forget, move_to, note_failure, release};
pub(crate) use state::SessionState;
pub use state::{
    CommitNote, HistoryEntry, PrintedSize, SessionBinding, SessionContents, SessionEnd, SessionLimits,
    SessionUsage,
};

use ptc_calls::run::outcome::{Failure, RenderedValue};
use std::sync::Arc;

/// Judges the answer of a program before anything of it is stored; its failure becomes that of the run.
pub type Accept = Box<dyn FnOnce(&RenderedValue) -> Result<(), Failure> + Send>;

/// A run of a session.
pub(crate) struct SessionRun {
    pub(crate) state: Arc<SessionState>,
    pub(crate) accept: Option<Accept>,
}
