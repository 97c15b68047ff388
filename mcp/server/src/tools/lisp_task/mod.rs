//! Implements the MCP tool `lisp_task` (`--agentic`), which solves a task stated in natural language with programs that
//! a language model writes and the server runs. The programs call the configured servers.
//!
//! # Layout
//!
//! - `request`: the arguments, checked in a fixed order. `answer`: the result as the client sees it.
//!   `constraints`: constraints that a client sets on the answer. `summary`: the text about the servers in
//!   the description. `prompts`: the prompts of a task, for traces. `keyless`: a model without its API key.
//! - here: the tool, and the task as `ptc task` also runs it.

mod answer;
mod constraints;
mod keyless;
mod prompts;
mod request;
mod summary;

pub use keyless::KeylessModel;
pub use request::TaskRequest;
pub use summary::CapabilitySummary;

use super::catalog::CatalogMode;
use super::job::Job;
use super::{Begun, CallContext, Definition, Facts, Responder, TaskSupport, Tool, ToolAnnotations};
use crate::answer::caps::Profile;
use crate::answer::{CallSummary, TaskSummary, ToolAnswer};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use prompts::PromptRecorder;
use ptc_agent::{Agent, AgentLimits, Llm};
use ptc_base::digest::sha256_hex;
use ptc_base::sync::Locked;
use ptc_calls::limits::Limits;
use ptc_calls::trace::TraceContext;
use ptc_engine::Runtime;
use ptc_upstream::{CallingClient, ProgressListener};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Name of the tool.
pub const NAME: &str = "lisp_task";

const DESCRIPTION: &str = "Solves a task in natural language over the configured MCP servers: a model of this server plans \
    it, writes PTC-Lisp programs and runs them. Use it when you would rather describe a task than write the program \
    (lisp_eval runs yours).";

/// Settings of tasks.
#[derive(Clone)]
pub struct TaskSettings {
    /// Rounds, time and tokens of a task.
    pub agent: AgentLimits,
    /// Limits of each program.
    pub programs: Limits,
    /// Most bytes of the answer as text.
    pub result_bytes: usize,
    /// Whether the answer includes the program.
    pub include_program: bool,
    /// Whether traces include the prompts.
    pub trace_prompts: bool,
    /// The operator's text at the beginning of the system prompt.
    pub prefix: Option<String>,
    /// The operator's text before the last part of the system prompt.
    pub suffix: Option<String>,
    /// The text about the servers in the description.
    pub summary: CapabilitySummary,
}

/// The result of a task.
#[derive(Clone, Debug)]
pub struct SolvedTask {
    /// The answer to the client.
    pub answer: Value,
    /// Whether the task succeeded.
    pub is_ok: bool,
    /// The summary for records of calls.
    pub summary: TaskSummary,
}

/// Solves the tasks of one server with its runtime, model and settings.
pub struct Tasks {
    runtime: Arc<Runtime>,
    llm: Arc<dyn Llm>,
    settings: TaskSettings,
    /// The summary that was logged last.
    logged: Mutex<String>,
}

impl Tasks {
    /// Makes tasks that this model plans.
    pub fn new(runtime: Arc<Runtime>, llm: Arc<dyn Llm>, settings: TaskSettings) -> Tasks {
        Tasks { runtime, llm, settings, logged: Mutex::default() }
    }

    /// The same tasks with the servers of another runtime. A restricted view replaces the operator's text
    /// about the servers by a generated one.
    pub fn with_runtime(&self, runtime: Arc<Runtime>) -> Arc<Tasks> {
        let mut settings = self.settings.clone();
        if runtime.is_restricted() {
            settings.summary = settings.summary.made();
        }
        Arc::new(Tasks::new(runtime, self.llm.clone(), settings))
    }

    /// The text about the servers in the description. The log gets only size and hash of a generated one,
    /// because names of tools are for clients.
    fn said_of_servers(&self, mode: CatalogMode) -> String {
        let text = self.settings.summary.text(&self.runtime.catalog(), mode);
        let mut logged = self.logged.locked();
        if self.settings.summary.is_made() && *logged != text {
            let (bytes, hash) = (text.len(), sha256_hex(text.as_bytes()));
            tracing::info!(bytes, sha256 = hash, "agentic_capability_summary");
            logged.clone_from(&text);
        }
        text
    }

    /// How they are run.
    pub fn settings(&self) -> &TaskSettings {
        &self.settings
    }

    /// Solves a task.
    pub async fn solve(
        &self,
        request: &TaskRequest,
        trace: Option<TraceContext>,
        client: Option<CallingClient>,
        progress: Option<Arc<dyn ProgressListener>>,
    ) -> SolvedTask {
        let mut agent = Agent::verbatim(request.mission())
            .limits(self.settings.agent)
            .program_limits(self.settings.programs)
            .trace(trace.clone())
            .client(client)
            .progress(progress);
        if let Some(prefix) = &self.settings.prefix {
            agent = agent.system_prefix(prefix);
        }
        if let Some(suffix) = &self.settings.suffix {
            agent = agent.system_suffix(suffix);
        }
        let begun = std::time::Instant::now();
        let recorder = self.settings.trace_prompts.then(|| Arc::new(PromptRecorder::new(self.llm.clone())));
        let llm = recorder.clone().map_or_else(|| self.llm.clone(), |recorder| recorder as Arc<dyn Llm>);
        let step = agent.run(&self.runtime, llm, &request.context).await;
        let mut summary = TaskSummary::from_step(&step, self.llm.model(), begun.elapsed());
        summary.prompts = recorder.map(|recorder| recorder.take()).unwrap_or_default();
        if let Some(trace) = trace {
            summary.planner.trace_id = trace.trace_id().to_owned();
        }
        let answer = answer::from_step(&step, &mut summary, &self.settings, request);
        SolvedTask { answer, is_ok: step.result.is_ok(), summary }
    }
}

/// The tool.
pub struct LispTask(Arc<Tasks>);

impl LispTask {
    /// Makes the tool for these tasks.
    pub fn new(tasks: Arc<Tasks>) -> LispTask {
        LispTask(tasks)
    }
}

impl Tool for LispTask {
    fn name(&self) -> &str {
        NAME
    }

    fn task_support(&self) -> TaskSupport {
        TaskSupport::Optional
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let summary = self.0.said_of_servers(facts.catalog_style.mode);
        Definition {
            title: "Solve a task in words".into(),
            description: format!("{DESCRIPTION}\nAvailable upstream capabilities:\n{summary}"),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "task": { "type": "string", "description": "What is to be found out or done." },
                    "context": { "type": "object", "description": "Data for it; key k is data/k in programs." },
                    "constraints": {
                        "type": "object",
                        "description": "What the answer has to keep to: max_items, preferred_fields.",
                        "properties": {
                            "max_items": { "type": "integer", "minimum": 1 },
                            "preferred_fields": { "type": "array", "items": { "type": "string" } },
                        },
                    },
                },
                "required": ["task"],
            }),
            annotations: ToolAnnotations::of_calls(facts.read_only),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "status": { "enum": ["ok", "error"] },
                    "answer": { "type": "string" },
                    "reason": { "type": "string" },
                    "message": { "type": "string" },
                    "planner": { "type": "object" },
                    "execution": { "type": "object" },
                    "upstream_calls": { "type": "array" },
                    "warnings": { "type": "array" },
                },
                "required": ["status", "warnings", "planner", "execution", "upstream_calls"],
            })),
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let most = self.0.settings.programs.max_context_bytes;
        let request = match TaskRequest::read(params.arguments.map_or("{}", Raw::get), most) {
            Ok(request) => request,
            Err(message) => {
                return reply.with(&data_answer(answer::failed("args_error", &message), Some("args_error")));
            }
        };
        let (tasks, trace, profile) = (self.0.clone(), call.trace.clone(), call.profile);
        Begun::Run(Job::task(async move |reporter, cancelled| {
            let (client, progress) = (reporter.caller(), reporter.progress_listener());
            let shows_prelude = profile == Profile::Debug;
            let answer = tokio::select! {
                solved = tasks.solve(&request, trace, client, progress) => solved_answer(solved, shows_prelude),
                // A cancelled client expects no answer, and a sender that is dropped without a message
                // does not cancel.
                Ok(()) = cancelled => {
                    data_answer(answer::failed("cancelled", "the task was cancelled"), Some("cancelled"))
                }
            };
            reporter.ended(&answer);
        }))
    }
}

fn solved_answer(solved: SolvedTask, shows_prelude: bool) -> ToolAnswer<'static> {
    let SolvedTask { mut answer, is_ok, summary } = solved;
    if let Some(trace) = summary.prelude.as_ref().filter(|_| shows_prelude) {
        answer["prelude_trace"] = (**trace).clone();
    }
    let reason = (!is_ok).then(|| answer["reason"].as_str().unwrap_or_default().to_owned());
    let mut answer = data_answer(answer, reason.as_deref());
    answer.summary.task = Some(Box::new(summary));
    answer
}

/// The answer as data, repeated as text.
fn data_answer(answer: Value, reason: Option<&str>) -> ToolAnswer<'static> {
    let summary = match reason {
        Some(reason) => CallSummary::failed(reason.to_owned()),
        None => {
            let bytes = answer["answer"].as_str().unwrap_or_default().len() as u64;
            CallSummary { result_bytes: Some(bytes), ..CallSummary::default() }
        }
    };
    ToolAnswer { summary, ..ToolAnswer::data(answer, reason.is_some()) }
}
