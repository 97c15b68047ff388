//! What comes of an agent while it is under way: shared with whoever is around it, so that one that is dropped half-way
//! leaves what it has come to.

use super::{AgentFailure, AgentReason, AgentStep};
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The trace of one run. Until it has ended it says that it was cancelled.
#[derive(Clone)]
pub(super) struct AgentTrace(Arc<TraceParts>);

struct TraceParts {
    step: Mutex<AgentStep>,
    /// In the order in which they began.
    children: Mutex<Vec<(Arc<str>, AgentTrace)>>,
}

impl AgentTrace {
    pub(super) fn new() -> AgentTrace {
        let text = "the program that had called it ended before it";
        let failure = AgentFailure::new(AgentReason::Cancelled, text);
        let step = Mutex::new(AgentStep::failed(failure));
        AgentTrace(Arc::new(TraceParts { step, children: Mutex::default() }))
    }

    /// What has come of it so far, its children apart.
    pub(super) fn step(&self) -> MutexGuard<'_, AgentStep> {
        self.0.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it has ended.
    pub(super) fn result(&self) -> Result<Json, AgentFailure> {
        self.step().result.clone()
    }

    /// The trace of a child that begins now.
    pub(super) fn child(&self, name: &Arc<str>) -> AgentTrace {
        let child = AgentTrace::new();
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.push((name.clone(), child.clone()));
        child
    }

    /// Takes what has come of it, and of its children, whether or not they have ended.
    pub(super) fn take(&self) -> AgentStep {
        let children = std::mem::take(&mut *self.0.children.lock().unwrap_or_else(PoisonError::into_inner));
        let children = children.into_iter().map(|(name, child)| (name.to_string(), child.take())).collect();
        AgentStep { children, ..self.step().clone() }
    }
}
