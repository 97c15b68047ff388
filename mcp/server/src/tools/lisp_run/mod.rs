//! The tool `lisp_run`, with which clients that do not support MCP tasks poll, await or cancel a program that runs
//! longer than the request that began it.

use super::job::Job;
use super::{Begun, CallContext, CallOwner, Definition, Facts, Responder, Tool, ToolAnnotations, ToolAnswer};
use crate::answer::caps::Profile;
use crate::answer::{Content, RefusalReason, refused};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use serde::Deserialize;
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Name of the tool.
pub const NAME: &str = "lisp_run";

/// How long an answer may be waited for, at most and without a word about it.
const MOST_WAIT_MS: u64 = 300_000;
const DEFAULT_WAIT_MS: u64 = 20_000;

const DESCRIPTION: &str = "Go on with a program that took long and answered with a run_id. wait: its answer, or that it \
    still runs after wait_ms; get: the same at once; cancel: stop it (what it has done stays done).";

/// Calls that outlive their requests.
pub trait RunHandles: Send + Sync {
    /// The state of a call of this owner; `None` if there is none.
    fn look(&self, owner: CallOwner, id: &str) -> Option<RunState>;

    /// Stops a call of this owner.
    fn cancel(&self, owner: CallOwner, id: &str);

    /// Resolves when the call is over or is no longer there.
    fn over(&self, owner: CallOwner, id: &str) -> Pin<Box<dyn Future<Output = RunOver> + Send>>;
}

/// Why a call is no longer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOver {
    /// It is over, or no longer there.
    Here,
    /// Another process goes on with it.
    GoesOnElsewhere,
}

/// The state of a call.
pub enum RunState {
    /// It is under way.
    Working,
    /// It is over: its answer.
    Ended(Box<ToolAnswer<'static>>),
}

/// The tool.
pub struct LispRun(Arc<dyn RunHandles>);

impl LispRun {
    /// Goes on with these calls.
    pub fn new(handles: Arc<dyn RunHandles>) -> LispRun {
        LispRun(handles)
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum RunAction {
    Get,
    Wait,
    Cancel,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunArguments {
    run_id: String,
    action: RunAction,
    wait_ms: Option<u64>,
}

/// The answer of a call that goes on without its request.
pub fn still_running(profile: Profile, id: &str) -> ToolAnswer<'static> {
    let text = format!(
        "the program still runs\nrun_id: {id}\nits answer: lisp_run {{\"run_id\": \"{id}\", \"action\": \"wait\"}}"
    );
    let mut structured = json!({ "status": "ok", "result": text, "run_id": id });
    if profile == Profile::Debug {
        structured["prints"] = json!([]);
        structured["feedback"] = text.clone().into();
        structured["truncated"] = false.into();
    }
    let structured = (profile != Profile::Slim).then_some(structured);
    ToolAnswer { structured, ..ToolAnswer::new(Content::Text(text.into())) }
}

fn answer(handles: &dyn RunHandles, call: &CallContext, id: &str) -> ToolAnswer<'static> {
    match handles.look(call.owner, id) {
        Some(RunState::Ended(answer)) => *answer,
        Some(RunState::Working) => still_running(call.profile, id),
        None => refused(
            call.profile,
            RefusalReason::ArgsError,
            format!("there is no run {id:?}: its time is over, or it never was; run the program again"),
        ),
    }
}

impl Tool for LispRun {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, _: &Facts) -> Definition {
        Definition {
            title: "Go on with a program".into(),
            description: DESCRIPTION.into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "run_id": { "type": "string", "description": "From the answer of the program's call" },
                    "action": { "enum": ["get", "wait", "cancel"] },
                    "wait_ms": { "type": "integer", "minimum": 0, "maximum": MOST_WAIT_MS,
                        "description": "How long wait waits; 20000 if absent" },
                },
                "required": ["run_id", "action"],
            }),
            annotations: ToolAnnotations {
                read_only_hint: false,
                destructive_hint: false,
                idempotent_hint: true,
                open_world_hint: false,
            },
            output_schema: None,
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let text = params.arguments.map_or("{}", Raw::get);
        let RunArguments { run_id, action, wait_ms } = match serde_json::from_str(text) {
            Ok(arguments) => arguments,
            Err(error) => {
                let message = format!(
                    "lisp_run takes {{\"run_id\": \"…\", \"action\": \"get\"|\"wait\"|\"cancel\"}}: {error}"
                );
                return reply.with(&refused(call.profile, RefusalReason::ArgsError, message));
            }
        };
        if action == RunAction::Cancel {
            self.0.cancel(call.owner, &run_id);
        }
        let is_working = matches!(self.0.look(call.owner, &run_id), Some(RunState::Working));
        // A run that was cancelled is over at once, or when that is stored.
        if action == RunAction::Get || !is_working {
            return reply.with(&answer(&*self.0, call, &run_id));
        }
        let (handles, call) = (self.0.clone(), call.clone());
        let wait = Duration::from_millis(wait_ms.unwrap_or(DEFAULT_WAIT_MS).min(MOST_WAIT_MS));
        Begun::Run(Job::task(async move |reporter, cancelled| {
            let over = tokio::select! {
                _ = cancelled => None,
                over = tokio::time::timeout(wait, handles.over(call.owner, &run_id)) => over.ok(),
            };
            reporter.ended(&match over {
                // The next call is one for that process.
                Some(RunOver::GoesOnElsewhere) => still_running(call.profile, &run_id),
                Some(RunOver::Here) | None => answer(&*handles, &call, &run_id),
            });
        }))
    }
}
