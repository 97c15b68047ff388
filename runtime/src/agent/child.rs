//! Agents as tools of agents.

use super::Agent;
use super::trace::AgentTrace;
use super::turns::AgentPlace;
use crate::host::HostTool;
use crate::run::outcome::Effect;
use serde_json::{Value as Json, json};
use std::sync::Arc;

impl Agent {
    /// This agent as a tool of one that is run at `place` and whose trace this is: on its budget, one deeper, without its
    /// servers.
    pub(super) fn as_tool(&self, name: &Arc<str>, place: &AgentPlace, parent: &AgentTrace) -> HostTool {
        let schema = self.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}));
        let agent = Arc::new(self.clone());
        let place = AgentPlace {
            base: place.base.bare(),
            depth: place.depth + 1,
            max_depth: place.max_depth.min(self.limits.max_depth),
            ..place.clone()
        };
        let (called, parent, left) = (name.clone(), parent.clone(), place.budget.left());
        let tool = HostTool::with_schema(name.clone(), schema, move |arguments: Json| {
            let (agent, place) = (agent.clone(), place.clone());
            let trace = parent.child(&called);
            async move {
                agent.run_at(place, arguments, &trace).await;
                trace.result()
            }
        });
        let tool = tool.effect(self.worst_effect()).timeout(left);
        let tool = match &self.description {
            Some(description) => tool.describe(description),
            None => tool,
        };
        match &self.output_schema {
            Some(schema) => tool.returns_schema(schema.clone()),
            None => tool,
        }
    }

    /// What a run of it may change: without servers, what its tools may.
    fn worst_effect(&self) -> Effect {
        let own = self.tools.iter().map(|tool| tool.listing().effect());
        let effects = own.chain(self.children.iter().map(|(_, child)| child.worst_effect()));
        effects.fold(Effect::Read, |worst, effect| match (worst, effect) {
            (Effect::Write, _) | (_, Effect::Write) => Effect::Write,
            (Effect::Unknown, _) | (_, Effect::Unknown) => Effect::Unknown,
            (Effect::Read, Effect::Read) => Effect::Read,
        })
    }
}
