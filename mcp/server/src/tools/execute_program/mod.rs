//! The tool `execute_program`, which runs one Python script.
//!
//! Its document defines name, schema and texts. With `--sessions` scripts may share a namespace (`sessions`).

mod engines;
mod sessions;

pub use sessions::ScriptSessions;

use super::catalog::PYTHON;
use super::definition::output_schema;
use super::job::{Cancel, Job, follow};
use super::{
    Begun, CallContext, Definition, Facts, Responder, TaskSupport, Tool, ToolAnnotations, ToolAnswer, log,
};
use crate::answer::caps::Profile;
use crate::answer::profile::apply_with_text;
use crate::answer::record::{EvalEnding, Record};
use crate::answer::{RefusalReason, refused};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use engines::OwnerEngines;
use ptc_calls::limits::Limits;
use ptc_calls::outcome::Outcome;
use ptc_engine::Runtime;
use ptc_python::engine::{Engine, Script};
use ptc_python::functions::FunctionTable;
use ptc_python::guest::{NamespacePermit, ScriptRun};
use ptc_python::output::{self, FAILED, SUCCEEDED};
use serde::Deserialize;
use serde_json::{Map, json};
use sessions::{NEW, ScriptSession};
use std::sync::Arc;

/// Name of the tool.
pub const NAME: &str = "execute_program";

const DESCRIPTION: &str = "Execute a Python program with access to MCP tools as async functions. Tool calls within the \
    script are dispatched to their respective MCP servers. Only stdout (from print statements) is returned — \
    intermediate tool results do not enter the conversation context. Use this when a task involves 3+ tool calls, loops, \
    filtering, aggregation, or conditional logic based on intermediate results. For single tool calls, call the tool \
    directly. All tool functions require `await`.";

const SESSION_ID: &str = "Keeps variables, functions and imports between scripts: \"new\" begins a session, whose id \
    stands at the end of the output; send that id with the next script. Without it a script has a namespace of its own.";

const END_SESSION: &str = "Ends the session after this script.";

const CODE: &str = "Python code to execute. MCP tools are available as async functions using their namespaced names \
    (e.g., mcp__financial_data__query_financials). Use `await` for all tool calls. Use `print()` to produce output.";

/// Longest description, unless the whole catalog was requested: clients cut descriptions at about 2 KB.
const MAX_DESCRIPTION: usize = 2_000;

/// Limits of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptLimits {
    /// Budgets of the run.
    pub limits: Limits,
    /// Most bytes of output.
    pub output_bytes: usize,
    /// Most bytes of memory of the script's process.
    pub process_bytes: u64,
}

/// The tool.
pub struct ExecuteProgram {
    runtime: Arc<Runtime>,
    engines: OwnerEngines,
    functions: Arc<FunctionTable>,
    limits: ScriptLimits,
    sessions: Option<Arc<ScriptSessions>>,
}

#[derive(Deserialize)]
struct ScriptArguments {
    code: String,
    session_id: Option<String>,
    #[serde(default)]
    end_session: bool,
}

/// A checked script, ready to run.
struct CheckedScript {
    code: String,
    shared: Option<SharedSession>,
    permit: Option<NamespacePermit>,
}

/// The session of a script, and whether the script ends it.
struct SharedSession {
    sessions: Arc<ScriptSessions>,
    session: Arc<ScriptSession>,
    ends: bool,
}

impl SharedSession {
    /// Ends the script's use of the session. Returns the session's id if it goes on, which the answer shows.
    fn goes_on(self) -> Option<String> {
        let SharedSession { sessions, session, ends } = self;
        session.touch();
        // A session that is still busy had its script cut off, and cannot go on.
        if ends || session.namespace.is_over() || session.namespace.is_busy() {
            sessions.close(session.owner, &session.id);
            return None;
        }
        Some(session.id.clone())
    }
}

impl ExecuteProgram {
    /// Runs scripts with the servers of `runtime` on this engine, and on copies of it for other owners. Scripts
    /// may share these sessions, if any.
    pub fn new(
        runtime: Arc<Runtime>,
        engine: Arc<dyn Engine>,
        limits: ScriptLimits,
        sessions: Option<Arc<ScriptSessions>>,
    ) -> ExecuteProgram {
        let engines = OwnerEngines::new(engine);
        ExecuteProgram { runtime, engines, functions: Arc::default(), limits, sessions }
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// The reason and the message of the first fault.
    fn check(
        &self,
        arguments: Option<Raw<'_>>,
        call: &CallContext,
    ) -> Result<CheckedScript, (RefusalReason, String)> {
        let wrong = |message: String| (RefusalReason::ArgsError, message);
        let text = arguments.map_or("{}", Raw::get);
        let ScriptArguments { code, session_id, end_session } = serde_json::from_str(text)
            .map_err(|error| wrong(format!("execute_program takes {{\"code\": \"…\"}}: {error}")))?;
        let most = self.limits.limits.max_program_bytes;
        if code.len() as u64 > most {
            return Err(wrong(format!("code exceeds max_program_bytes ({} > {most})", code.len())));
        }
        let Some(id) = session_id else { return Ok(CheckedScript { code, shared: None, permit: None }) };
        let Some(sessions) = &self.sessions else {
            return Err(wrong("this server keeps no sessions; --sessions is the flag".to_owned()));
        };
        let (session, permit) = ScriptSessions::permit(sessions, call.owner, &id).map_err(|fault| {
            let message = format!("{}; session_id \"{NEW}\" begins one", fault.message);
            (RefusalReason::Session(fault.reason.name()), message)
        })?;
        let shared = SharedSession { sessions: sessions.clone(), session, ends: end_session };
        Ok(CheckedScript { code, shared: Some(shared), permit: Some(permit) })
    }
}

impl Tool for ExecuteProgram {
    fn name(&self) -> &str {
        NAME
    }

    fn task_support(&self) -> TaskSupport {
        TaskSupport::Optional
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let mut description = DESCRIPTION.to_owned();
        if let Some(lacks) = self.engines.first.lacks() {
            description.push('\n');
            description.push_str(lacks);
        }
        if !facts.catalog.is_empty() {
            let room = MAX_DESCRIPTION.saturating_sub(description.len() + 1);
            description.push('\n');
            description.push_str(&facts.catalog.render(&PYTHON, &facts.catalog_style, room));
        }
        let mut properties = json!({ "code": { "type": "string", "description": CODE } });
        if self.sessions.is_some() {
            properties["session_id"] = json!({ "type": "string", "description": SESSION_ID });
            properties["end_session"] = json!({ "type": "boolean", "description": END_SESSION });
        }
        Definition {
            title: "Run a Python script".into(),
            description,
            input_schema: json!({ "type": "object", "properties": properties, "required": ["code"] }),
            annotations: ToolAnnotations::of_calls(false),
            output_schema: output_schema(facts.profile),
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let asked = match self.check(params.arguments, call) {
            Ok(asked) => asked,
            Err((reason, message)) => return reply.with(&refused(call.profile, reason, message)),
        };
        let CheckedScript { code, shared, permit } = asked;
        let script = Script { code: code.into(), output_bytes: self.limits.output_bytes };
        let (engine, broker) = (self.engines.for_owner(call.owner), self.runtime.broker().clone());
        let (functions, source_name) = (self.functions.clone(), "<program>".into());
        let run = ScriptRun { engine, broker, functions, script, source_name, replayed: None, permit };
        let (runtime, limits, call) = (self.runtime.clone(), self.limits.limits, call.clone());
        Begun::Run(Job::new(self.limits.process_bytes, move |reporter| -> Cancel {
            let run = run.into_run().traced(call.trace.clone()).asking(reporter.caller());
            let watcher = follow(reporter, move |reporter, outcome| {
                for line in &outcome.stderr {
                    tracing::info!("a script wrote to stderr: {line}");
                }
                let session = shared.map(SharedSession::goes_on);
                let log = call.log.map(|level| log::run_messages(level, &outcome)).unwrap_or_default();
                let record = record(&outcome);
                let answer = answer(call.profile, &outcome, &record, session.as_ref());
                reporter.ended(&ToolAnswer { log, ..answer });
            });
            let submitted = runtime.submit_async(limits, run, watcher);
            Box::new(move || submitted.cancel())
        }))
    }
}

/// Records an outcome. Of a traceback it takes the last line as the message; the other lines are locations.
fn record(outcome: &Outcome) -> Record<'_> {
    let mut record = Record::from_outcome(outcome, None);
    if let (Err(failure), EvalEnding::Error(error)) = (&outcome.result, &mut record.ending) {
        error.message = failure.message.lines().next_back().unwrap_or_default().into();
    }
    record
}

fn answer<'o>(
    profile: Profile,
    outcome: &Outcome,
    record: &Record<'o>,
    session: Option<&Option<String>>,
) -> ToolAnswer<'o> {
    let mut text = match &outcome.result {
        Ok(printed) => SUCCEEDED.to_owned() + &printed.text,
        Err(failure) => FAILED.to_owned() + &output::failed(failure, &outcome.prints),
    };
    let mut more = Map::new();
    if let Some(session) = session {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let line = match session {
            Some(id) => format!("[session_id: {id}]"),
            None => "[session ended]".to_owned(),
        };
        text = text + end + &line;
        more.insert("session_id".into(), session.as_deref().into());
    }
    apply_with_text(profile, record, text, more)
}
