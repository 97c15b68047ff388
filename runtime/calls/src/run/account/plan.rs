//! Holds the tool calls that were found in the text of a program before it runs, so that a person can approve them
//! before the first one is sent.

use ptc_compiler::flows::FlowPlan;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::sync::OnceCell;

/// A call in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// Configured name of the server.
    pub server: String,
    /// The tool; `None` if it is computed.
    pub tool: Option<String>,
    /// JSON object text of the arguments; `None` if a part is computed.
    pub arguments: Option<String>,
    /// Line and column, from 1.
    pub line: u32,
    /// See `line`.
    pub column: u32,
}

/// The calls of a program, as far as its text shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramPlan {
    /// In the order of the text.
    pub calls: Vec<PlannedCall>,
    /// It may also call what its text does not show.
    pub is_open: bool,
    /// Its data flows, if they were planned.
    pub(crate) flows: Option<Arc<FlowPlan>>,
}

/// Finds the calls of the program. It compiles the text once more, so it runs on a blocking thread.
pub type Planner = Arc<dyn Fn() -> ProgramPlan + Send + Sync>;

/// The plan of a run, and what a person has said to it.
#[derive(Default)]
pub struct RunPlan {
    planner: OnceLock<Planner>,
    pub(crate) review: OnceCell<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for RunPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RunPlan")
    }
}

impl RunPlan {
    /// Sets how the calls are found. The first value counts.
    pub fn set_planner(&self, planner: Planner) {
        let _ = self.planner.set(planner);
    }

    /// How the calls are found; `None`: the run has no text that shows them.
    pub(crate) fn planner(&self) -> Option<&Planner> {
        self.planner.get()
    }
}
