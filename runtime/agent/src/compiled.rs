//! Compiles agents: a model writes the program of an agent once, and later runs repeat it without a model.

use super::check;
use super::run_loop::{AgentEnvironment, AgentRun, ExecutionMode, failure_of};
use super::trace::AgentTrace;
use super::{Agent, AgentFailure, AgentReason, AgentStep, Llm, prompt};
use ptc_calls::run::client::asker::CallOrigin;
use ptc_calls::run::options::RunOptions;
use ptc_engine::runtime::Runtime;
use ptc_engine::scope::Scope;
use serde::Serialize;
use serde_json::Value as Json;
use std::sync::Arc;

/// The part of the mission that says the program will be stored.
const KEPT: &str = "\n\nYour program will be kept, and run again without you on other data of the same shape: take \
    everything from data/, and write nothing into it that is true of these data only. End with the answer.";

/// An agent with a finished program.
#[derive(Clone)]
pub struct CompiledAgent {
    source: Arc<str>,
    output_schema: Option<Json>,
    options: RunOptions,
    scope: Scope,
}

impl Agent {
    /// Lets the model write one program that gives a valid answer (one that matches the schema) for each of
    /// the samples. The samples are contexts. Turns and limits are those of the agent.
    ///
    /// # Errors
    /// The step; its failure says why there is no such program. An agent with children cannot be compiled,
    /// because its programs need the model.
    pub async fn compile<C: Serialize + Sync>(
        &self,
        runtime: &Runtime,
        llm: Arc<dyn Llm>,
        samples: &[C],
    ) -> Result<CompiledAgent, Box<AgentStep>> {
        let failed = |failure| Box::new(AgentStep::failed(failure));
        let samples = samples.iter().map(serde_json::to_value).collect::<Result<Vec<Json>, _>>();
        let samples = samples.map_err(|error| failed(invalid(format!("a sample is no JSON: {error}"))))?;
        let step = self.derive(runtime, llm, samples).await.map_err(failed)?;
        match (&step.result, &step.program) {
            (Ok(_), Some(program)) => self.compiled_from(runtime, program.clone()).map_err(failed),
            _ => Err(Box::new(step)),
        }
    }

    async fn derive(
        &self,
        runtime: &Runtime,
        llm: Arc<dyn Llm>,
        samples: Vec<Json>,
    ) -> Result<AgentStep, AgentFailure> {
        if !self.children.is_empty() {
            return Err(invalid("an agent with children cannot be compiled: they need the model".to_owned()));
        }
        let Some(Json::Object(first)) = samples.first() else {
            return Err(invalid("a sample is an object, whose keys are the names of data".to_owned()));
        };
        let mission = prompt::mission(self, first)? + KEPT;
        let environment = self.environment(runtime, llm);
        let environment = AgentEnvironment { trace: None, client: None, progress: None, ..environment };
        let execution = ExecutionMode::Samples(samples.iter().map(Json::to_string).collect());
        let trace = AgentTrace::new();
        AgentRun::on(self, environment, &mission, first, &trace, |_| execution)?.finish().await;
        Ok(trace.take())
    }

    /// An agent with a known program: the stored result of [`CompiledAgent::source`].
    ///
    /// # Errors
    /// The tools of the agent cannot be given to programs.
    pub fn compiled_from(
        &self,
        runtime: &Runtime,
        source: impl Into<Arc<str>>,
    ) -> Result<CompiledAgent, AgentFailure> {
        let scope = runtime.base().with(self.tools.clone(), &self.preludes);
        Ok(CompiledAgent {
            source: source.into(),
            output_schema: self.output_schema.clone(),
            options: RunOptions {
                strict_data: true,
                limits: self.limits_of_programs(),
                want_json: true,
                origin: CallOrigin::Agent,
                ..RunOptions::default()
            },
            scope: scope.map_err(|error| invalid(error.to_string()))?,
        })
    }
}

impl CompiledAgent {
    /// The program, for storing.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Runs the program with a context, without any model. The step has no turns.
    pub async fn run(&self, context: &(impl Serialize + Sync)) -> AgentStep {
        let options = match self.options.clone().with_context(context) {
            Ok(options) => options,
            Err(error) => return AgentStep::failed(invalid(error.to_string())),
        };
        let outcome = self.scope.run(self.source.clone(), options).await;
        let result = match &outcome.result {
            Ok(rendered) => check::answer(rendered, self.output_schema.as_ref())
                .map_err(|why| AgentFailure::new(AgentReason::ValidationFailed, why)),
            Err(failure) => Err(failure_of(failure)),
        };
        AgentStep {
            result,
            program: Some((*self.source).to_owned()),
            calls: outcome.upstream_calls,
            call_totals: outcome.call_totals,
            prelude_trace: outcome.prelude_trace,
            ..AgentStep::default()
        }
    }
}

fn invalid(message: String) -> AgentFailure {
    AgentFailure::new(AgentReason::InvalidAgent, message)
}
