//! The data flows of one run: the plan of its program, and the answers that it has got.

use crate::sync::Locked;
use ptc_compiler::flows::FlowPlan;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

/// Servers and targets that have answered.
pub(crate) type AnsweredBy = BTreeSet<(Arc<str>, Arc<str>)>;

/// The flows of a run.
#[derive(Debug, Default)]
pub(crate) struct RunFlows {
    plan: OnceLock<Arc<FlowPlan>>,
    answered: Mutex<AnsweredBy>,
}

impl RunFlows {
    /// Sets the plan of its program. The first one counts.
    pub(crate) fn set_plan(&self, plan: Arc<FlowPlan>) {
        let _ = self.plan.set(plan);
    }

    /// The plan of its program; `None`: it is not known.
    pub(crate) fn plan(&self) -> Option<&Arc<FlowPlan>> {
        self.plan.get()
    }

    /// Notes that a call was made, whose answer the run gets.
    pub(crate) fn note(&self, answer: (Arc<str>, Arc<str>)) {
        self.answered.locked().insert(answer);
    }

    /// Those that have answered, or will.
    pub(crate) fn answered(&self) -> AnsweredBy {
        self.answered.locked().clone()
    }
}
