//! `execute_program`: runs one Python script. Name, schema and texts are those of its document.

use super::job::{Cancel, Job, Reporter};
use super::{Begun, CallContext, Definition, Facts, Responder, Tool, ToolAnnotations};
use crate::answer::{Content, EdgeReason, ToolResult, refused};
use crate::protocol::borrowed::Raw;
use ptc_python::engine::{Engine, Script};
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
    limits: ScriptLimits,
}

#[derive(Deserialize)]
struct ScriptArguments {
    code: String,
}

impl ExecuteProgram {
    /// Scripts run on this engine, with the servers of this runtime.
    pub fn new(runtime: Arc<Runtime>, engine: Arc<dyn Engine>, limits: ScriptLimits) -> ExecuteProgram {
        ExecuteProgram { runtime, engine, limits }
    }
}

impl Tool for ExecuteProgram {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, _: &Facts) -> Definition {
        Definition {
            title: "Run a Python script".into(),
            description: DESCRIPTION.into(),
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
            output_schema: None,
        }
    }

    fn begin(&self, arguments: Option<Raw<'_>>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let text = arguments.map_or("{}", Raw::get);
        let code = match serde_json::from_str::<ScriptArguments>(text) {
            Ok(ScriptArguments { code }) => code,
            Err(error) => {
                let message = format!("execute_program takes {{\"code\": \"…\"}}: {error}");
                return reply.with(&refused(call.profile, EdgeReason::ArgsError, message).into());
            }
        };
        let most = self.limits.limits.max_program_bytes;
        if code.len() as u64 > most {
            let message = format!("code exceeds max_program_bytes ({} > {most})", code.len());
            return reply.with(&refused(call.profile, EdgeReason::ArgsError, message).into());
        }
        let script = Script { code: code.into(), output_bytes: self.limits.output_bytes };
        let (engine, broker) = (self.engine.clone(), self.runtime.broker().clone());
        let run = ScriptRun { engine, broker, script };
        let (runtime, limits) = (self.runtime.clone(), self.limits.limits);
        Begun::Run(Job::new(self.limits.process_bytes, move |reporter| -> Cancel {
            let submitted = runtime.submit_guest(limits, run.guest(), Box::new(ScriptWatcher(reporter)));
            Box::new(move || submitted.cancel())
        }))
    }
}

struct ScriptWatcher(Box<dyn Reporter>);

impl RunWatcher for ScriptWatcher {
    fn begun(&mut self) {
        self.0.begun();
    }

    fn call_ended(&mut self, ended: u64) {
        self.0.progress(ended, "upstream call");
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        self.0.ended(&result(outcome).into());
    }
}

fn result(outcome: Outcome) -> ToolResult<'static> {
    let (is_error, text) = match outcome.result {
        Ok(printed) => (false, SUCCEEDED.to_owned() + &printed.text),
        Err(failure) => (true, FAILED.to_owned() + &failure.message),
    };
    ToolResult { is_error, content: Content::Text(text.into()), structured: None }
}
