//! Makes an agent callable as a tool of another agent.

use super::Agent;
use super::run_loop::AgentEnvironment;
use super::trace::AgentTrace;
use ptc_calls::host::HostTool;
use ptc_calls::run::outcome::Effect;
use serde_json::{Value as Json, json};
use std::sync::Arc;

impl Agent {
    /// This agent as a tool of the agent that runs in `environment` with the trace `parent`. It shares that agent's
    /// budget, runs one level deeper, and has no servers.
    pub(super) fn as_tool(
        &self,
        name: &Arc<str>,
        environment: &AgentEnvironment,
        parent: &AgentTrace,
    ) -> HostTool {
        let schema = self.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}));
        let agent = Arc::new(self.clone());
        let environment = AgentEnvironment {
            base: environment.base.bare(),
            depth: environment.depth + 1,
            max_depth: environment.max_depth.min(self.limits.max_depth),
            ..environment.clone()
        };
        let (called, parent, left) = (name.clone(), parent.clone(), environment.budget.left());
        let tool = HostTool::with_schema(name.clone(), schema, move |arguments: Json| {
            let (agent, environment) = (agent.clone(), environment.clone());
            let trace = parent.child(&called);
            async move {
                agent.run_in(environment, arguments, &trace).await;
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

    /// The worst effect that a run of it may have. It has no servers, so its tools decide.
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
