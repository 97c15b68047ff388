//! The tool `lisp_session_eval`, which runs a program in a session, with the values that earlier programs have defined
//! there.

use super::arguments::Fields;
use super::changes::SessionLog;
use super::fault::{SessionFault, SessionReason};
use super::table::{OpenSession, SessionTable};
use super::turn::LogLock;
use super::{SESSION_ID, refused, view};
use crate::answer::caps::Profile;
use crate::answer::profile::apply;
use crate::answer::record::{EvalEnding, Record, check, run_options};
use crate::answer::{Content, SessionEntry};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use crate::tools::job::{Cancel, Job, Reporter, follow};
use crate::tools::lisp_eval::description::session_description;
use crate::tools::log;
use crate::tools::{
    Begun, CallContext, CallOwner, Definition, Facts, Responder, Tool, ToolAnnotations, ToolAnswer,
};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::RunJournal;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallFault, CallStatus, Failure, Outcome, Report};
use ptc_calls::schema::output::Schema;
use ptc_engine::session::{Accept, SessionBusy, SessionPermit};
use ptc_vm::Class;
use serde_json::{Map, Value, json};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Name of the tool.
pub(super) const NAME: &str = "lisp_session_eval";

const DESCRIPTION: &str = "Runs one PTC-Lisp program in a session, as lisp_eval does, and keeps what it defines: (def rows \
    (:value (tool/call {…}))) in one program, rows in the next. *1 *2 *3 are the last results. Only a program that ends \
    well is kept; after an error, a timeout or (fail v) the session is as before, but for what upstream tools have done.";

/// Part of the description where sessions may write preludes.
const WRITING_HERE: &str = " In a session of mode write_capable, prelude/ writes preludes: (dir 'prelude).";

/// The tool.
pub struct SessionEval {
    table: Arc<SessionTable>,
}

/// Checked arguments of a call.
struct CheckedCall {
    id: String,
    program: String,
    context: Option<String>,
    schema: Option<Schema>,
}

impl SessionEval {
    /// Makes the tool for sessions of this table.
    pub fn new(table: Arc<SessionTable>) -> SessionEval {
        SessionEval { table }
    }

    fn check(&self, arguments: Option<Raw<'_>>) -> Result<CheckedCall, SessionFault> {
        let fields = Fields::read(arguments)?;
        let id = fields.session_id()?;
        let Limits { max_program_bytes, max_context_bytes, .. } = self.table.programs;
        let program = fields
            .text("program")
            .filter(|program| !program.is_empty())
            .ok_or_else(|| SessionFault::arguments("program must be a non-empty string"))?;
        if program.len() as u64 > max_program_bytes {
            return Err(SessionFault::arguments("program exceeds max_program_bytes"));
        }
        let context =
            fields.get("context").map(|context| checked_context(context, max_context_bytes)).transpose()?;
        let schema = fields.get("output_schema").filter(|schema| !schema.is_null());
        let schema = schema.map(Schema::parse).transpose().map_err(|error| {
            SessionFault::arguments(format!("argument `output_schema` is invalid: {error}"))
        })?;
        Ok(CheckedCall { id: id.to_owned(), program: program.to_owned(), context, schema })
    }

    /// When a program of a session may begin, which is asked once the call has its slot.
    fn start(&self, owner: CallOwner, id: &str) -> Result<StartOfEval, SessionFault> {
        let table = self.table.clone();
        match table.find(owner, id) {
            Ok(session) if session.log().is_none() => {
                let start = match (session.session.acquire(), session.session.acquire_after_cancel()) {
                    (Ok(permit), _) => EvalStart::Now((session, permit, None)),
                    // A client may send the next program right after it cancels one, so the call waits for the
                    // cancelled program's end.
                    (Err(SessionBusy), Some(later)) => {
                        EvalStart::Later(Box::pin(async move { Ok((session, later.await, None)) }))
                    }
                    (Err(SessionBusy), None) => return Err(SessionFault::busy(&session.id)),
                };
                Ok(Box::new(move || Ok(start)))
            }
            Err(fault) if table.durable().is_none() => Err(fault),
            // A queued call does not hold the turn: calls before it, which have the slots, may wait for it.
            Ok(_) | Err(_) => {
                let id = id.to_owned();
                Ok(Box::new(move || start_stored(table, owner, id)))
            }
        }
    }
}

/// When a program of a stored session may begin.
fn start_stored(table: Arc<SessionTable>, owner: CallOwner, id: String) -> Result<EvalStart, SessionFault> {
    if let Ok(session) = table.find(owner, &id)
        && session.log().is_some_and(SessionLog::is_current)
        && let Some(turn) = session.try_turn()
    {
        return permitted(session, Some(turn)).map(EvalStart::Now);
    }
    Ok(EvalStart::Later(Box::pin(async move {
        let (session, turn) = table.take_turn(owner, &id).await?;
        permitted(session, turn)
    })))
}

/// A session with the turn in it, and with the permit for a program.
fn permitted(session: Arc<OpenSession>, turn: Option<LogLock>) -> Result<Permitted, SessionFault> {
    let permit = session.session.acquire().map_err(|SessionBusy| SessionFault::busy(&session.id))?;
    Ok((session, permit, turn))
}

fn checked_context(context: &Value, most: u64) -> Result<String, SessionFault> {
    let fault = |message: &str| Err(SessionFault::arguments(message));
    let Value::Object(members) = context else { return fault("context must be an object when supplied") };
    if members.keys().any(String::is_empty) {
        return fault("context keys must be non-empty");
    }
    if members.keys().any(|key| key.contains('/')) {
        return fault("context keys may not contain `/`");
    }
    let text = context.to_string();
    if text.len() as u64 > most {
        return fault("context exceeds max_context_bytes");
    }
    Ok(text)
}

impl Tool for SessionEval {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let eval = crate::tools::lisp_eval::definition::definition(facts);
        let mut input_schema = eval.input_schema;
        if let Some(properties) = input_schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("session_id".into(), json!({ "type": "string", "description": SESSION_ID }));
        }
        input_schema["required"] = json!(["session_id", "program"]);
        Definition {
            title: "Run a PTC-Lisp program in a session".into(),
            description: match self.table.stores.writable() {
                Some(_) => session_description(facts, &format!("{DESCRIPTION}{WRITING_HERE}")),
                None => session_description(facts, DESCRIPTION),
            },
            input_schema,
            annotations: ToolAnnotations {
                read_only_hint: false,
                idempotent_hint: false,
                ..eval.annotations
            },
            output_schema: eval.output_schema,
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let begun =
            self.check(params.arguments).and_then(|asked| Ok((self.start(call.owner, &asked.id)?, asked)));
        let (start, CheckedCall { program, context, schema, .. }) = match begun {
            Ok(begun) => begun,
            Err(fault) => return reply.with(&refused(&fault)),
        };
        let mut options = RunOptions {
            context,
            strict_data: true,
            limits: self.table.programs,
            since: Some(Instant::now()),
            trace: call.trace.clone(),
            ..RunOptions::default()
        };
        run_options(call.profile, schema.as_ref(), &mut options);
        let (table, call) = (self.table.clone(), call.clone());
        let begin = move |(session, permit, turn): Permitted, reporter: Box<dyn Reporter>| {
            session.touch();
            let accept = schema.clone().map(|schema| -> Accept {
                Box::new(move |answer| {
                    check(answer, &schema).map_err(|message| {
                        Failure::from(Report::new(ptc_vm::Reason::ValidationError, message))
                    })
                })
            });
            let logged = call.logs_turns.then(|| PendingLogEntry {
                program: program.clone(),
                attempt: session.session.contents(|contents| contents.attempts) + 1,
            });
            let turn = turn.map(|turn| (turn, Arc::new(RunJournal::collecting())));
            let journal = turn.as_ref().map(|(_, journal)| journal.clone());
            let options = RunOptions { client: reporter.caller(), journal, ..options };
            let owner = call.owner;
            let ended = move |session: &OpenSession, reporter: Box<dyn Reporter>, outcome: Outcome| {
                let log = call.log.map(|level| log::run_messages(level, &outcome)).unwrap_or_default();
                let mut record = Record::from_outcome(&outcome, schema.as_ref());
                if let EvalEnding::Error(error) = &mut record.ending
                    && let Some(kind) = error.kind
                {
                    // Session tools name the exact reason.
                    error.reason = kind;
                }
                let turn = logged.map(|logged| Box::new(logged.ended(session, &outcome)));
                let mut answer = decorate(call.profile, apply(call.profile, &record), session, &outcome);
                (answer.log, answer.summary.turn) = (log, turn);
                reporter.ended(&answer);
            };
            let watcher = match turn {
                None => follow(reporter, move |reporter, outcome| {
                    session.touch();
                    ended(&session, reporter, outcome);
                }),
                Some((turn, journal)) => {
                    turn.begin_program();
                    let (done, is_done) = oneshot::channel::<(LogLock, Box<dyn Reporter>, Outcome)>();
                    let stored = session.clone();
                    tasks::spawn(TaskOwner::Run, async move {
                        let Ok((_turn, reporter, outcome)) = is_done.await else { return };
                        match stored.store().await {
                            Ok(()) => ended(&stored, reporter, outcome),
                            Err(fault) => {
                                // The next call finds it as it was stored.
                                table.drop_from_memory(owner, &stored);
                                reporter.ended(&refused(&fault));
                            }
                        }
                    });
                    follow(reporter, move |mut reporter, outcome: Outcome| {
                        session.touch();
                        match outcome.result.is_ok() {
                            true => {
                                // A client that cancels it while it is stored gets its answer all the same.
                                reporter.settled();
                                session.add_program(&journal);
                            }
                            false => session.add_answers(),
                        }
                        turn.end_program();
                        // Without a receiver the process ends.
                        let _ = done.send((turn, reporter, outcome));
                    })
                }
            };
            permit.submit(program, options, accept, watcher)
        };
        Begun::Run(Job::new(0, move |reporter| -> Cancel {
            match start() {
                Err(fault) => {
                    reporter.ended(&refused(&fault));
                    Box::new(|| {})
                }
                Ok(EvalStart::Now(permitted)) => {
                    let submitted = begin(permitted, reporter);
                    Box::new(move || submitted.cancel())
                }
                Ok(EvalStart::Later(start)) => {
                    let (cancel, cancelled) = oneshot::channel::<()>();
                    tasks::spawn(TaskOwner::Run, async move {
                        let permitted = match start.await {
                            Ok(started) => started,
                            Err(fault) => return reporter.ended(&refused(&fault)),
                        };
                        let submitted = begin(permitted, reporter);
                        // A sender that is dropped without a message means that the call is over.
                        if cancelled.await.is_ok() {
                            submitted.cancel();
                        }
                    });
                    Box::new(move || {
                        let _ = cancel.send(());
                    })
                }
            }
        }))
    }
}

/// Says when a program may begin, once its call has its slot.
type StartOfEval = Box<dyn FnOnce() -> Result<EvalStart, SessionFault> + Send>;

/// When a program may begin.
enum EvalStart {
    Now(Permitted),
    /// Once the cancelled program has ended, or the session is restored.
    Later(Pin<Box<dyn Future<Output = Result<Permitted, SessionFault>> + Send>>),
}

/// A session in which a program may begin, with the turn in it if it is stored.
type Permitted = (Arc<OpenSession>, SessionPermit, Option<LogLock>);

/// Facts about a program for the log, apart from its end.
struct PendingLogEntry {
    program: String,
    attempt: u64,
}

impl PendingLogEntry {
    fn ended(self, session: &OpenSession, outcome: &Outcome) -> SessionEntry {
        let PendingLogEntry { program, attempt } = self;
        let committed = outcome.result.is_ok();
        let (turn, changed) = session.session.contents(|contents| {
            let changed = contents.changed.iter().filter(|_| committed).filter_map(|name| {
                Some((name.to_string(), contents.bindings.get(name)?.preview.to_string()))
            });
            (contents.turn, changed.collect())
        });
        let (session_id, limits_hit) = (session.id.clone(), limits_hit(outcome));
        SessionEntry { session_id, turn, attempt, committed, program, changed, limits_hit }
    }
}

/// The names of the limits that a run has reached.
fn limits_hit(outcome: &Outcome) -> Vec<&'static str> {
    let mut met = Vec::new();
    if let Err(failure) = &outcome.result {
        match failure.reason.class() {
            Class::Timeout => met.push("timeout_ms"),
            Class::MemoryLimit => met.push("memory_bytes"),
            _ if failure.reason.raw() == SessionReason::TooMany.name() => met.push("session_memory"),
            _ => {}
        }
    }
    // The names of the limits of a server are in the messages.
    let faults = [
        (CallFault::CapExhausted, ["max_calls_per_program", "max_upstream_calls"]),
        (CallFault::ResponseTooLarge, ["max_response_bytes", "max_upstream_response_bytes"]),
        (CallFault::Timeout, ["request_timeout_ms", "upstream_call_timeout_ms"]),
    ];
    for (fault, names) in faults {
        let of_calls = outcome.upstream_calls.iter().filter_map(|call| match &call.status {
            CallStatus::Error { reason, error } if *reason == fault => {
                Some(if error.contains(names[0]) { names[0] } else { names[1] })
            }
            _ => None,
        });
        let is_met: Vec<_> = of_calls.collect();
        met.extend(names.into_iter().filter(|name| is_met.contains(name)));
    }
    met
}

/// Adds the state of the session to an answer.
fn decorate<'r>(
    profile: Profile,
    answer: ToolAnswer<'r>,
    session: &OpenSession,
    outcome: &Outcome,
) -> ToolAnswer<'r> {
    let ToolAnswer { is_error, content, structured, log, summary } = answer;
    let calls = outcome.call_totals.count();
    let (line, memory, notices) = session.session.contents(|contents| {
        let mut items = Vec::new();
        if is_error {
            items.push("rolled back".to_owned());
        }
        if !contents.changed.is_empty() {
            items.push(format!("stored: {}", contents.changed.join(", ")));
        }
        if calls > 0 {
            items.push(format!("turn upstream calls: {calls}"));
        }
        let mut memory = Map::new();
        memory.insert("changed_keys".into(), contents.changed.clone().into());
        memory.insert("stored_keys".into(), contents.bindings.keys().cloned().collect());
        if profile == Profile::Debug {
            let changed = contents.changed.iter().filter_map(|name| {
                Some((name.clone(), Value::from(&*contents.bindings.get(name)?.preview)))
            });
            memory.insert("changed".into(), Value::Object(changed.collect()));
        }
        memory.insert("truncated".into(), false.into());
        let notice = contents.note.map(|note| {
            let bytes = if note.size.is_more { "more_than_bytes" } else { "bytes" };
            json!({
                "field": "*1", "reason": "max_history_entry_bytes", bytes: note.size.bytes, "max_bytes": note.most,
                "message": NOTICE,
            })
        });
        (items, memory, notice)
    });
    let structured = structured.map(|mut structured| {
        // The slim profile shows a validated value alone.
        if profile != Profile::Slim
            && let Some(map) = structured.as_object_mut()
        {
            map.insert("session".into(), view::summary(session).into());
            map.insert("memory".into(), memory.into());
            if !is_error {
                map.insert("history_notices".into(), notices.iter().cloned().collect());
            }
        }
        structured
    });
    let content = match (profile, content, &structured) {
        (Profile::Debug, _, Some(full)) => Content::Text(full.to_string().into()),
        (_, Content::Text(text), _) => {
            let mut text = text.into_owned();
            if notices.is_some() {
                text.push_str("\n;; ");
                text.push_str(NOTICE);
            }
            if !line.is_empty() {
                text.push_str(&format!("\n[{}]", line.join("; ")));
            }
            Content::Text(text.into())
        }
        (_, content, _) => content,
    };
    ToolAnswer { is_error, content, structured, log, summary }
}

const NOTICE: &str = "*1 stored as preview; original value exceeded max_session_history_entry_bytes";
