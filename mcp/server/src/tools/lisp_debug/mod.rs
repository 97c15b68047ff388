//! The tool `lisp_debug`, which shows recent calls and statistics of the server (`--debug-tool`).
//!
//! # Layout
//!
//! - `question`: the arguments, checked in a fixed order. `report`: the answers. `fit`: answers within their
//!   limit.
//!
//! A client sees only its own calls. The tool does not record itself, and it answers on a thread of its own,
//! so that other calls need not wait.

mod fit;
mod question;
mod report;

use super::job::Job;
use super::{Begun, CallContext, Definition, Facts, Responder, Tool, ToolAnnotations};
use crate::answer::{CallSummary, RefusalReason, ToolAnswer, refusal_data};
use crate::observe::CallRecorder;
use crate::protocol::params::Params;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use question::Question;
use serde_json::{Value, json};
use std::sync::Arc;

/// Name of the tool.
pub const NAME: &str = "lisp_debug";

const DESCRIPTION: &str = "Says what this server has been doing: op stats (counts, times, errors and upstream calls of \
    recent tools/call requests, and how much payload programs saved), recent (the last calls), get (one call by its \
    request_id). It looks at a bounded window in memory, changes nothing and shows no secrets.";

/// The tool.
pub struct LispDebug {
    recorder: Arc<CallRecorder>,
    most_bytes: usize,
}

impl LispDebug {
    /// Answers from these records, in messages of at most `most_bytes`.
    pub fn new(recorder: Arc<CallRecorder>, most_bytes: usize) -> LispDebug {
        LispDebug { recorder, most_bytes }
    }
}

impl Tool for LispDebug {
    fn name(&self) -> &str {
        NAME
    }

    fn is_recorded(&self) -> bool {
        false
    }

    fn definition(&self, _: &Facts) -> Definition {
        let bounded = |most: u64, text: &str| json!({ "type": "integer", "minimum": 1, "maximum": most, "description": text });
        Definition {
            title: "Ask what the server has been doing".into(),
            description: DESCRIPTION.into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "op": { "type": "string", "enum": question::OPS },
                    "limit": bounded(question::MOST_CALLS, "recent: so many calls at most (default 20)."),
                    "since_seconds": bounded(question::MOST_SECONDS, "stats, recent: only calls that ended since then."),
                    "errors_only": { "type": "boolean", "description": "stats, recent: only calls that failed." },
                    "request_id": {
                        "type": "string", "maxLength": question::LONGEST_ID,
                        "description": "get: the call (the id of its JSON-RPC request, as text).",
                    },
                },
                "required": ["op"],
                "additionalProperties": false,
            }),
            annotations: ToolAnnotations {
                read_only_hint: true,
                destructive_hint: false,
                idempotent_hint: true,
                open_world_hint: false,
            },
            output_schema: Some(output_schema()),
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let question = match Question::read(params.arguments) {
            Ok(question) => question,
            Err(message) => return reply.with(&refused(&message)),
        };
        let (recorder, owner) = (self.recorder.clone(), call.owner);
        let room = self.most_bytes.saturating_sub(call.frame_bytes);
        Begun::Run(Job::task(async move |reporter, _| {
            let look = move |_: &StopFlag| {
                reporter.ended(&ToolAnswer::data(
                    report::answer(&recorder, owner, &question, room).into(),
                    false,
                ));
            };
            tasks::blocking(TaskOwner::Run, look).await;
        }))
    }
}

fn output_schema() -> Value {
    let one_of = [
        &["debug_source", "ring_size", "ring_count", "window"][..],
        &["count", "calls"],
        &["request_id", "found"],
    ]
    .map(|parts| {
        let always = ["op", "payload_policy", "redaction_applied"];
        json!({ "required": always.iter().chain(parts).collect::<Vec<_>>() })
    });
    let refusal = json!({ "required": ["status", "reason", "message", "feedback"] });
    let one_of: Vec<Value> = one_of.into_iter().chain([refusal]).collect();
    json!({
        "type": "object",
        "properties": {
            "op": { "enum": question::OPS },
            "payload_policy": { "enum": ["none", "summary", "full"] },
            "redaction_applied": { "const": true },
            "calls": { "type": "array" },
            "found": { "type": "boolean" },
            "truncated": { "type": "boolean" },
        },
        "oneOf": one_of,
    })
}

/// The answer to a call with wrong arguments.
fn refused(message: &str) -> ToolAnswer<'static> {
    let reason = RefusalReason::ArgsError.name();
    let data = refusal_data(reason, message);
    ToolAnswer { summary: CallSummary::failed(reason), ..ToolAnswer::data(data, true) }
}
