//! Records what is known of the data flows of one run, for policies that forbid to pass data from one server to
//! another: the compiler's analysis of its program, and the tools that have answered so far.

use ptc_base::sync::Locked;
use ptc_compiler::flows::FlowPlan;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

/// Servers and targets that have answered.
pub(crate) type AnsweredBy = BTreeSet<(Arc<str>, Arc<str>)>;

/// The flows of a run.
#[derive(Debug, Default)]
pub struct RunFlows {
    plan: OnceLock<Arc<FlowPlan>>,
    answered: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    all: AnsweredBy,
    /// The one that was noted last: most programs call one tool many times.
    last: Option<(Arc<str>, Arc<str>)>,
}

impl RunFlows {
    /// Sets the plan of its program. The first one counts.
    pub fn set_plan(&self, plan: Arc<FlowPlan>) {
        let _ = self.plan.set(plan);
    }

    /// The plan of its program; `None`: it is not known.
    pub fn plan(&self) -> Option<&Arc<FlowPlan>> {
        self.plan.get()
    }

    /// Notes that a call was made, whose answer the run gets. False: the note before was the same.
    pub(crate) fn note(&self, server: &str, target: &str) -> bool {
        let mut answers = self.answered.locked();
        if answers.last.as_ref().is_some_and(|last| (&*last.0, &*last.1) == (server, target)) {
            return false;
        }
        let answer: (Arc<str>, Arc<str>) = (server.into(), target.into());
        answers.last = Some(answer.clone());
        answers.all.insert(answer);
        true
    }

    /// Those that have answered, or will.
    pub fn answered(&self) -> AnsweredBy {
        self.answered.locked().all.clone()
    }
}
