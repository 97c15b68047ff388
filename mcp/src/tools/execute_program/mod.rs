//! `execute_program`: runs one Python script. Name, schema and texts are those of its document.

use super::catalog::PYTHON;
use super::definition::output_schema;
use super::job::{Cancel, Job, Reporter};
use super::{Begun, CallContext, Definition, Facts, Responder, Tool, ToolAnnotations, ToolAnswer, log};
use crate::answer::caps::Profile;
use crate::answer::profile::apply_beside;
use crate::answer::record::{EvalEnding, Record};
use crate::answer::{CallSummary, EdgeReason, ToolResult, refused};
use crate::protocol::borrowed::Raw;
use ptc_python::engine::{Engine, Script};
use ptc_python::functions::FunctionTable;
use ptc_python::guest::ScriptRun;
use ptc_python::output::{FAILED, SUCCEEDED};
use ptc_runtime::Runtime;
use ptc_runtime::limits::Limits;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Name of the tool.
pub const NAME: &str = "execute_program";

const DESCRIPTION: &str = "Execute a Python program with access to MCP tools as async functions. Tool calls within the \
    script are dispatched to their respective MCP servers. Only stdout (from print statements) is returned — \
    intermediate tool results do not enter the conversation context. Use this when a task involves 3+ tool calls, loops, \
    filtering, aggregation, or conditional logic based on intermediate results. For single tool calls, call the tool \
    directly. All tool functions require `await`.";

const CODE: &str = "Python code to execute. MCP tools are available as async functions using their namespaced names \
    (e.g., mcp__financial_data__query_financials). Use `await` for all tool calls. Use `print()` to produce output.";

/// Longest description, unless the whole catalog was asked for: clients cut them at about 2 KB.
const MAX_DESCRIPTION: usize = 2_000;

/// What scripts may use.
#[derive(Clone, Copy, Debug)]
pub struct ScriptLimits {
    /// Budgets of the run.
    pub limits: Limits,
    /// Bytes of output.
    pub output_bytes: usize,
    /// Bytes of memory of the script's process.
    pub process_bytes: u64,
}

/// The tool.
pub struct ExecuteProgram {
    runtime: Arc<Runtime>,
    engine: Arc<dyn Engine>,
    functions: Arc<FunctionTable>,
    limits: ScriptLimits,
}

#[derive(Deserialize)]
struct ScriptArguments {
    code: String,
}

impl ExecuteProgram {
    /// Scripts run on this engine, with the servers of this runtime.
    pub fn new(runtime: Arc<Runtime>, engine: Arc<dyn Engine>, limits: ScriptLimits) -> ExecuteProgram {
        ExecuteProgram { runtime, engine, functions: Arc::default(), limits }
    }
}

impl Tool for ExecuteProgram {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let mut description = DESCRIPTION.to_owned();
        if let Some(lacks) = self.engine.lacks() {
            description.push('\n');
            description.push_str(lacks);
        }
        if !facts.catalog.is_empty() {
            let room = MAX_DESCRIPTION.saturating_sub(description.len() + 1);
            description.push('\n');
            description.push_str(&facts.catalog.render(&PYTHON, &facts.catalog_style, room));
        }
        Definition {
            title: "Run a Python script".into(),
            description,
            input_schema: json!({
                "type": "object",
                "properties": { "code": { "type": "string", "description": CODE } },
                "required": ["code"],
            }),
            annotations: ToolAnnotations {
                read_only_hint: false,
                destructive_hint: true,
                idempotent_hint: false,
                open_world_hint: true,
            },
            output_schema: output_schema(facts.profile),
        }
    }

    fn begin(&self, arguments: Option<Raw<'_>>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let text = arguments.map_or("{}", Raw::get);
        let code = match serde_json::from_str::<ScriptArguments>(text) {
            Ok(ScriptArguments { code }) => code,
            Err(error) => {
                let message = format!("execute_program takes {{\"code\": \"…\"}}: {error}");
                return reply.with(&refused(call.profile, EdgeReason::ArgsError, message));
            }
        };
        let most = self.limits.limits.max_program_bytes;
        if code.len() as u64 > most {
            let message = format!("code exceeds max_program_bytes ({} > {most})", code.len());
            return reply.with(&refused(call.profile, EdgeReason::ArgsError, message));
        }
        let script = Script { code: code.into(), output_bytes: self.limits.output_bytes };
        let (engine, broker) = (self.engine.clone(), self.runtime.broker().clone());
        let run = ScriptRun { engine, broker, functions: self.functions.clone(), script };
        let (runtime, limits, call) = (self.runtime.clone(), self.limits.limits, *call);
        Begun::Run(Job::new(self.limits.process_bytes, move |reporter| -> Cancel {
            let watcher = ScriptWatcher { reporter, call };
            let submitted = runtime.submit_guest(limits, run.guest(), Box::new(watcher));
            Box::new(move || submitted.cancel())
        }))
    }
}

struct ScriptWatcher {
    reporter: Box<dyn Reporter>,
    call: CallContext,
}

impl RunWatcher for ScriptWatcher {
    fn begun(&mut self) {
        self.reporter.begun();
    }

    fn call_ended(&mut self, ended: u64) {
        self.reporter.progress(ended, "upstream call");
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let ScriptWatcher { reporter, call } = *self;
        let log = call.log.map(|level| log::of_run(level, &outcome)).unwrap_or_default();
        let record = record(&outcome);
        let summary = CallSummary::of(&record);
        reporter.ended(&ToolAnswer { result: result(call.profile, &outcome, &record), log, summary });
    }
}

/// The last line of a traceback says what happened, the others where.
fn record(outcome: &Outcome) -> Record<'_> {
    let mut record = Record::of(outcome, None);
    if let (Err(failure), EvalEnding::Error(error)) = (&outcome.result, &mut record.ending) {
        error.message = failure.message.lines().next_back().unwrap_or_default().into();
    }
    record
}

fn result(profile: Profile, outcome: &Outcome, record: &Record<'_>) -> ToolResult<'static> {
    let text = match &outcome.result {
        Ok(printed) => SUCCEEDED.to_owned() + &printed.text,
        Err(failure) => FAILED.to_owned() + &failure.message,
    };
    apply_beside(profile, record, text)
}
