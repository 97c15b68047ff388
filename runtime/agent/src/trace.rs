//! Collects the results of an agent, and of the agents that it calls, while they run, so that a cancelled agent still
//! has a trace of what it did.

use super::{AgentFailure, AgentReason, AgentStep};
use ptc_base::sync::Locked;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, MutexGuard};

/// The trace of one run. Until the run has ended, its result is that it was cancelled.
#[derive(Clone)]
pub(super) struct AgentTrace(Arc<TraceParts>);

struct TraceParts {
    step: Mutex<AgentStep>,
    /// Children in the order in which they began.
    children: Mutex<Vec<(Arc<str>, AgentTrace)>>,
}

impl AgentTrace {
    pub(super) fn new() -> AgentTrace {
        let text = "the program that had called it ended before it";
        let failure = AgentFailure::new(AgentReason::Cancelled, text);
        let step = Mutex::new(AgentStep::failed(failure));
        AgentTrace(Arc::new(TraceParts { step, children: Mutex::default() }))
    }

    /// The result so far, without children.
    pub(super) fn step(&self) -> MutexGuard<'_, AgentStep> {
        self.0.step.locked()
    }

    /// How the run ended.
    pub(super) fn result(&self) -> Result<Json, AgentFailure> {
        self.step().result.clone()
    }

    /// Adds the trace of a child that begins now.
    pub(super) fn child(&self, name: &Arc<str>) -> AgentTrace {
        let child = AgentTrace::new();
        let mut children = self.0.children.locked();
        children.push((name.clone(), child.clone()));
        child
    }

    /// Takes the result with those of all children, whether or not they have ended.
    pub(super) fn take(&self) -> AgentStep {
        let children = std::mem::take(&mut *self.0.children.locked());
        let children = children.into_iter().map(|(name, child)| (name.to_string(), child.take())).collect();
        AgentStep { children, ..self.step().clone() }
    }
}
