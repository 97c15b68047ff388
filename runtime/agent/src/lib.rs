//! Agents: a model writes programs, turn by turn, until one of them returns the answer.
//!
//! An [`Agent`] is data: a mission, what its programs can call, the shape of its answer, its limits. [`Agent::run`] runs it
//! on a [`Runtime`] with a model ([`Llm`]) and gives an [`AgentStep`]: the answer or why there is none, and a trace of
//! every turn. What its programs define stays for its later programs; the data of the mission is in the sandbox
//! (`data/…`), and the model sees of it what programs print.
//!
//! ```no_run
//! # mod ptc_runtime { pub use {ptc_agent as agent, ptc_engine::Runtime}; }
//! use ptc_runtime::Runtime;
//! use ptc_runtime::agent::{Agent, ModelOptions, model};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Count {
//!     letters: u32,
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().start().await?;
//! let model = model(ModelOptions::new("anthropic:claude-haiku-4-5"), runtime.secrets())?;
//! let agent = Agent::new("How many letters {{letter}} are in {{word}}?").single_shot().output::<Count>();
//! let step = agent.run(&runtime, model, &serde_json::json!({"letter": "r", "word": "raspberry"})).await;
//! let Count { letters } = step.value()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - this file: an agent as data; `run_loop`: its loop; `child`: agents as tools of agents; `compiled`: stored
//!   programs
//! - `prompt`, `feedback`: the texts for the model; `reply`: the program in its reply; `check`: answers
//!   against their schema
//! - `budget`, `guard`: what ends a run; `step`: its result; `trace`: the result while the run goes on
//! - `llm`: the interface to models; `clients`: models over HTTP

mod budget;
mod check;
mod child;
mod clients;
mod compiled;
mod feedback;
mod guard;
mod llm;
mod prompt;
mod reply;
mod run_loop;
mod step;
mod trace;

pub use async_trait::async_trait;
pub use clients::{ModelOptions, model};
pub use compiled::CompiledAgent;
pub use guard::{Continuation, ContinuationGuard, MatchedCall, ReadsOnly};
pub use llm::{Llm, LlmError, LlmErrorKind, LlmMessage, LlmReply, LlmRequest, LlmRole, TokenUsage};
pub use step::{
    AgentFailure, AgentReason, AgentStep, AgentTurn, AgentUsage, AttemptKind, AttemptStatus, TracedCall,
};

use budget::SharedBudget;
use ptc_calls::host::HostTool;
#[cfg(feature = "schemars")]
use ptc_calls::host::schema_of;
use ptc_calls::run::client::{CallingClient, ProgressListener};
use ptc_calls::run::limits::Limits;
use ptc_calls::run::trace::TraceContext;
use ptc_engine::guest::lisp::prelude::Prelude;
use ptc_engine::runtime::Runtime;
use ptc_engine::session::SessionLimits;
use run_loop::AgentEnvironment;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;
use trace::AgentTrace;

/// A mission with everything an agent needs except a model.
#[derive(Clone)]
pub struct Agent {
    prompt: Arc<str>,
    /// Braces in the prompt are plain text.
    is_verbatim: bool,
    mode: AgentMode,
    description: Option<String>,
    input_schema: Option<Json>,
    output_schema: Option<Json>,
    tools: Vec<HostTool>,
    children: Vec<(Arc<str>, Agent)>,
    preludes: Vec<Arc<Prelude>>,
    system_prefix: Option<String>,
    system_suffix: Option<String>,
    limits: AgentLimits,
    program_limits: Option<Limits>,
    session_limits: SessionLimits,
    guard: Arc<dyn ContinuationGuard>,
    llm: Option<Arc<dyn Llm>>,
    trace: Option<TraceContext>,
    client: Option<CallingClient>,
    progress: Option<Arc<dyn ProgressListener>>,
}

/// How an agent gets to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentMode {
    /// The agent runs programs until one calls `(return v)` or `(fail v)`.
    Loop,
    /// One program; its value is the answer.
    SingleShot,
}

/// Limits of one run of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Turns: replies of the model.
    pub max_turns: u32,
    /// Extra turns, each for repairing a turn that failed.
    pub retry_turns: u32,
    /// Turns of the agent and all its children together. A child uses the value of its topmost parent.
    pub turn_budget: u32,
    /// Tokens of the agent and all its children together. Where a model reports none, a quarter of the bytes
    /// counts. A turn that has begun is finished. A child uses the value of its topmost parent.
    pub token_budget: Option<u64>,
    /// Time limit of the whole run. A child uses the value of its topmost parent.
    pub timeout: Duration,
    /// Time limit of one request to the model, retries included.
    pub model_timeout: Duration,
    /// Token limit of a reply; `None` leaves it to the model.
    pub max_output_tokens: Option<u32>,
    /// Approximate size limit of the feedback on one turn.
    pub feedback_bytes: usize,
    /// Size limit of a conversation; the oldest turns are dropped beyond it. A reply longer than half of it
    /// is not run.
    pub prompt_bytes: usize,
    /// How deeply agents may nest; the topmost is at depth 0.
    pub max_depth: u32,
}

impl Default for AgentLimits {
    fn default() -> AgentLimits {
        AgentLimits {
            max_turns: 5,
            retry_turns: 0,
            turn_budget: 20,
            token_budget: None,
            timeout: Duration::from_secs(300),
            model_timeout: Duration::from_secs(60),
            max_output_tokens: None,
            feedback_bytes: 2_048,
            prompt_bytes: 64 << 10,
            max_depth: 3,
        }
    }
}

/// Time limit of a program that calls other agents.
const WITH_CHILDREN_MS: u64 = 120_000;

impl Agent {
    /// An agent with this mission, in which `{{name}}` stands for a value of the context. It works in a loop
    /// until one of its programs returns.
    pub fn new(prompt: impl Into<Arc<str>>) -> Agent {
        Agent {
            prompt: prompt.into(),
            is_verbatim: false,
            mode: AgentMode::Loop,
            description: None,
            input_schema: None,
            output_schema: None,
            tools: Vec::new(),
            children: Vec::new(),
            preludes: Vec::new(),
            system_prefix: None,
            system_suffix: None,
            limits: AgentLimits::default(),
            program_limits: None,
            session_limits: SessionLimits::default(),
            guard: Arc::new(ReadsOnly),
            llm: None,
            trace: None,
            client: None,
            progress: None,
        }
    }

    /// [`Agent::new`] with a mission in which braces are plain text, for texts from elsewhere.
    pub fn verbatim(prompt: impl Into<Arc<str>>) -> Agent {
        Agent { is_verbatim: true, ..Agent::new(prompt) }
    }

    /// One reply of the model instead of a loop: the value of its program is the answer.
    #[must_use]
    pub fn single_shot(mut self) -> Agent {
        self.mode = AgentMode::SingleShot;
        self.limits.max_turns = 1;
        self
    }

    /// The type of the answer.
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn output<T: JsonSchema>(self) -> Agent {
        self.output_schema(schema_of::<T>())
    }

    /// JSON Schema of the answer. An answer that does not match is refused, and the model gets the reason.
    #[must_use]
    pub fn output_schema(self, schema: Json) -> Agent {
        Agent { output_schema: Some(schema), ..self }
    }

    /// The type of the context, for agents that are tools of others.
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn input<T: JsonSchema>(self) -> Agent {
        self.input_schema(schema_of::<T>())
    }

    /// JSON Schema of the context, for agents that are tools of others.
    #[must_use]
    pub fn input_schema(self, schema: Json) -> Agent {
        Agent { input_schema: Some(schema), ..self }
    }

    /// What the agent does, for agents that are tools of others.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Agent {
        Agent { description: Some(description.into()), ..self }
    }

    /// Gives its programs a function of the application. Tools of the runtime are not inherited.
    #[must_use]
    pub fn tool(mut self, tool: HostTool) -> Agent {
        self.tools.push(tool);
        self
    }

    /// Gives its programs another agent, as `(tool/name {…})`: the arguments are its context, its answer is the result.
    /// A child draws on the budget of its parent, and has the model of its parent unless it has one of its own. It has
    /// its own tools and namespaces and no upstream servers: those of the runtime are not inherited.
    #[must_use]
    pub fn child(mut self, name: impl Into<Arc<str>>, agent: Agent) -> Agent {
        self.children.push((name.into(), agent));
        self
    }

    /// Gives its programs a namespace in addition to those of the runtime.
    #[must_use]
    pub fn prelude(mut self, prelude: Arc<Prelude>) -> Agent {
        self.preludes.push(prelude);
        self
    }

    /// Adds a text of the application to the system prompt, after the introduction.
    #[must_use]
    pub fn system_prefix(self, text: impl Into<String>) -> Agent {
        Agent { system_prefix: Some(text.into()), ..self }
    }

    /// Adds a text of the application to the system prompt, before the rules for replies.
    #[must_use]
    pub fn system_suffix(self, text: impl Into<String>) -> Agent {
        Agent { system_suffix: Some(text.into()), ..self }
    }

    /// The trace that the run belongs to; it is sent to upstreams. A child uses that of its topmost parent.
    #[must_use]
    #[doc(hidden)]
    pub fn trace(self, trace: Option<TraceContext>) -> Agent {
        Agent { trace, ..self }
    }

    /// The client that upstreams may elicit from. A child uses that of its topmost parent.
    #[must_use]
    #[doc(hidden)]
    pub fn client(self, client: Option<CallingClient>) -> Agent {
        Agent { client, ..self }
    }

    /// Receives the progress of tools that programs call. A child uses that of its topmost parent.
    #[must_use]
    #[doc(hidden)]
    pub fn progress(self, listener: Option<Arc<dyn ProgressListener>>) -> Agent {
        Agent { progress: listener, ..self }
    }

    /// The limits of one run.
    #[must_use]
    pub fn limits(self, limits: AgentLimits) -> Agent {
        Agent { limits, ..self }
    }

    /// The number of turns.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Agent {
        self.limits.max_turns = turns;
        self
    }

    /// The number of extra turns for repairing failed ones.
    #[must_use]
    pub fn retry_turns(mut self, turns: u32) -> Agent {
        self.limits.retry_turns = turns;
        self
    }

    /// The limits of each of its programs. The limit of tool calls holds for all programs together. Default:
    /// 10 s and 100 MiB, with children 120 s.
    #[must_use]
    pub fn program_limits(self, limits: Limits) -> Agent {
        Agent { program_limits: Some(limits), ..self }
    }

    /// Limits of what its programs may store for each other.
    #[must_use]
    pub fn session_limits(self, limits: SessionLimits) -> Agent {
        Agent { session_limits: limits, ..self }
    }

    /// The guard to use instead of [`ReadsOnly`].
    #[must_use]
    pub fn guard(self, guard: Arc<dyn ContinuationGuard>) -> Agent {
        Agent { guard, ..self }
    }

    /// A model of its own, used instead of the one that the run is given.
    #[must_use]
    pub fn llm(self, llm: Arc<dyn Llm>) -> Agent {
        Agent { llm: Some(llm), ..self }
    }

    /// Runs the agent. The context is an object; its fields are `data/<field>` in programs. Dropping the
    /// future cancels the request to the model, or the program with its calls.
    pub async fn run(
        &self,
        runtime: &Runtime,
        llm: Arc<dyn Llm>,
        context: &(impl Serialize + Sync),
    ) -> AgentStep {
        let context = serde_json::to_value(context);
        self.begin(runtime, llm, context).await
    }

    /// What an agent that no other one calls runs in.
    fn environment(&self, runtime: &Runtime, llm: Arc<dyn Llm>) -> AgentEnvironment {
        let AgentLimits { turn_budget, token_budget, timeout, max_depth, .. } = self.limits;
        AgentEnvironment {
            base: runtime.base(),
            llm,
            budget: Arc::new(SharedBudget::new(turn_budget, token_budget, timeout)),
            depth: 0,
            max_depth,
            trace: self.trace.clone(),
            client: self.client.clone(),
            progress: self.progress.clone(),
        }
    }

    async fn begin(
        &self,
        runtime: &Runtime,
        llm: Arc<dyn Llm>,
        context: Result<Json, serde_json::Error>,
    ) -> AgentStep {
        match context {
            Ok(context) => {
                let trace = AgentTrace::new();
                self.run_in(self.environment(runtime, llm), context, &trace).await;
                trace.take()
            }
            Err(error) => AgentStep::failed(AgentFailure::new(
                AgentReason::InvalidAgent,
                format!("the context is no JSON: {error}"),
            )),
        }
    }

    fn limits_of_programs(&self) -> Limits {
        let usual = || Limits {
            timeout_ms: if self.children.is_empty() {
                Limits::with_upstreams().timeout_ms
            } else {
                WITH_CHILDREN_MS
            },
            ..Limits::with_upstreams()
        };
        self.program_limits.unwrap_or_else(usual)
    }
}
