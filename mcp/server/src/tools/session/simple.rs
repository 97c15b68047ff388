//! The session tools that run no program: they start, list, inspect, clear and close sessions, and list the available
//! preludes (Lisp libraries).

use super::arguments::Fields;
use super::changes::SessionLog;
use super::fault::SessionFault;
use super::preludes::RequestedPreludes;
use super::table::{Closed, OpenSession, SessionTable, Unreported};
use super::turn::LogLock;
use super::{SESSION_ID, data_answer, ok, refused, result_answer, view};
use crate::protocol::params::Params;
use crate::redact;
use crate::tools::job::{Cancel, Job, Reporter};
use crate::tools::{Begun, CallContext, CallOwner, Definition, Facts, Responder, Tool, ToolAnnotations};
use ptc_base::secrets::Cut;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_engine::session::{Bindings, Forget, SessionBusy, SessionEnd, SessionPermit};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};

/// A tool that runs no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimpleTool {
    Start,
    List,
    Inspect,
    Forget,
    Close,
    ListPreludes,
}

/// A [`SimpleTool`] with the sessions that it is about.
pub(super) struct BoundTool {
    pub(super) tool: SimpleTool,
    pub(super) table: Arc<SessionTable>,
}

/// Most characters of a title.
const LONGEST_TITLE: usize = 200;

/// Permits to compile the preludes of a session. Compiling takes memory outside of every program's budget.
static COMPILATIONS: Semaphore = Semaphore::const_new(2);

/// Part of the description where sessions may write preludes.
const WRITING: &str =
    " With mode write_capable its programs write preludes of the server: (dir 'prelude) lists how.";

impl SimpleTool {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            SimpleTool::Start => "lisp_session_start",
            SimpleTool::List => "lisp_session_list",
            SimpleTool::Inspect => "lisp_session_inspect",
            SimpleTool::Forget => "lisp_session_forget",
            SimpleTool::Close => "lisp_session_close",
            SimpleTool::ListPreludes => "lisp_session_list_preludes",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            SimpleTool::Start => "Start a session",
            SimpleTool::List => "List sessions",
            SimpleTool::Inspect => "Look into a session",
            SimpleTool::Forget => "Forget parts of a session",
            SimpleTool::Close => "End a session",
            SimpleTool::ListPreludes => "List preludes",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            SimpleTool::Start => {
                "Starts an empty session and gives its session_id. Programs sent to lisp_session_eval with it keep what \
                 they def and defn, and their last results as *1 *2 *3, so that large values stay on the server between \
                 programs. It ends by itself at expires_at, or when nothing happens in it for max_idle_ms."
            }
            SimpleTool::List => "Lists the open sessions, the one used last first.",
            SimpleTool::Inspect => {
                "Shows what a session holds. view: overview (default), memory (names with previews), prints, tool_calls, \
                 history (*1 *2 *3), limits (with the largest names)."
            }
            SimpleTool::Forget => {
                "Forgets names (bindings), or everything of a kind (clear). Unknown names are ignored."
            }
            SimpleTool::Close => {
                "Ends a session and frees what it holds; a program under way in it is cancelled."
            }
            SimpleTool::ListPreludes => {
                "Lists the preludes of the store with their versions, for preludes of lisp_session_start; with a \
                 session_id, those that the session was started with."
            }
        }
    }

    fn properties(self) -> (Value, &'static [&'static str]) {
        let id = json!({ "type": "string", "description": SESSION_ID });
        match self {
            SimpleTool::Start => (
                json!({
                    "title": { "type": "string", "description": "For lisp_session_list." },
                    "ttl_ms": {
                        "type": "integer", "minimum": 1,
                        "description": "How long it lives; at most, and by default, what the server allows.",
                    },
                    "preludes": {
                        "type": "array", "items": { "type": ["string", "object"] },
                        "description": "Preludes of the server's store that its programs have: id, id@7 or {id, version, \
                            checksum}; they stay what they are until it ends.",
                    },
                    "mode": {
                        "type": "string", "enum": ["read_only", "write_capable"],
                        "description": "write_capable: where the server allows it, its programs write preludes with prelude/.",
                    },
                }),
                &[],
            ),
            SimpleTool::List => (json!({}), &[]),
            SimpleTool::Inspect => {
                let view = json!({ "type": "string", "enum": view::VIEWS });
                (json!({ "session_id": id, "view": view }), &["session_id"])
            }
            SimpleTool::Forget => {
                let clear = json!({ "type": "string", "enum": CLEARED });
                (
                    json!({
                        "session_id": id,
                        "bindings": { "type": "array", "items": { "type": "string" } },
                        "clear": { "type": "array", "items": clear },
                    }),
                    &["session_id"],
                )
            }
            SimpleTool::ListPreludes => (json!({ "session_id": id }), &[]),
            SimpleTool::Close => {
                (json!({ "session_id": id, "reason": { "type": "string" } }), &["session_id"])
            }
        }
    }

    const fn annotations(self) -> ToolAnnotations {
        let (read, destroys, idempotent) = match self {
            SimpleTool::Start => (false, false, false),
            SimpleTool::List | SimpleTool::Inspect | SimpleTool::ListPreludes => (true, false, true),
            SimpleTool::Forget | SimpleTool::Close => (false, true, true),
        };
        ToolAnnotations {
            read_only_hint: read,
            destructive_hint: destroys,
            idempotent_hint: idempotent,
            open_world_hint: false,
        }
    }
}

/// Why a cancelled start has no session.
const NOT_STARTED: &str = "the session was not started";

/// The parts of a session that can be cleared as a whole.
const CLEARED: [&str; 5] = ["memory", "history", "prints", "tool_calls", "upstream_calls"];

impl Tool for BoundTool {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn definition(&self, _: &Facts) -> Definition {
        let (properties, required) = self.tool.properties();
        Definition {
            title: self.tool.title().into(),
            description: match (self.tool, self.table.stores.writable()) {
                (SimpleTool::Start, Some(_)) => format!("{}{WRITING}", self.tool.description()),
                _ => self.tool.description().into(),
            },
            input_schema: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            }),
            annotations: self.tool.annotations(),
            output_schema: Some(json!({
                "type": "object", "properties": { "status": { "enum": ["ok", "error"] } }, "required": ["status"],
            })),
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let owner = call.owner;
        let answer = Fields::read(params.arguments).and_then(|fields| {
            if self.needs_store(owner, &fields) {
                return Ok(SimpleAnswer::Later(self.reopened(owner, fields)));
            }
            self.answer(owner, &fields)
        });
        match answer {
            Ok(SimpleAnswer::Now(answer)) => reply.with(&data_answer(answer)),
            Ok(SimpleAnswer::Later(job)) => Begun::Run(job),
            Err(fault) => reply.with(&refused(&fault)),
        }
    }
}

enum SimpleAnswer {
    Now(Map<String, Value>),
    Later(Job),
}

impl BoundTool {
    fn answer(&self, owner: CallOwner, fields: &Fields) -> Result<SimpleAnswer, SessionFault> {
        let now = match self.tool {
            SimpleTool::Start => return self.start(owner, fields),
            SimpleTool::Forget => return self.forget(owner, fields).map(SimpleAnswer::Later),
            SimpleTool::List => self.list(owner, fields),
            SimpleTool::Inspect => return self.inspect(owner, fields),
            SimpleTool::Close => self.close(owner, fields),
            SimpleTool::ListPreludes => self.list_preludes(owner, fields),
        };
        now.map(SimpleAnswer::Now)
    }

    /// True if a call is about sessions that this process may not have as they are.
    fn needs_store(&self, owner: CallOwner, fields: &Fields) -> bool {
        let is_behind = |id: &str| match self.table.find(owner, id) {
            Ok(session) => !session.log().is_none_or(SessionLog::is_current),
            Err(_) => true,
        };
        self.table.durable().is_some()
            && match self.tool {
                SimpleTool::Start => false,
                SimpleTool::List | SimpleTool::Close | SimpleTool::Forget => true,
                _ => fields.session_id().is_ok_and(is_behind),
            }
    }

    /// A job that answers once the sessions are as they were stored.
    fn reopened(&self, owner: CallOwner, fields: Fields) -> Job {
        let tool = BoundTool { tool: self.tool, table: self.table.clone() };
        Job::task(async move |reporter, _| {
            let opened = match (tool.tool, fields.session_id()) {
                (SimpleTool::List, _) => {
                    let sessions = tool.table.list(owner).await;
                    return reporter.ended(&result_answer(sessions.and_then(|all| listed(&fields, all))));
                }
                (SimpleTool::Close, Ok(id)) => {
                    let closed = tool.table.close_everywhere(owner, id).await;
                    return reporter.ended(&result_answer(closed.and_then(|Closed| closed_answer(&fields))));
                }
                (SimpleTool::Forget, Ok(id)) => match tool.table.take_turn(owner, id).await {
                    Ok(with_turn) => return tool.forget_stored(owner, with_turn, &fields, reporter),
                    Err(fault) => Err(fault),
                },
                (_, Ok(id)) => tool.table.reopen(owner, id).await.map(drop),
                (_, Err(fault)) => Err(fault),
            };
            match opened.and_then(|()| tool.answer(owner, &fields)) {
                Ok(SimpleAnswer::Now(answer)) => reporter.ended(&data_answer(answer)),
                Ok(SimpleAnswer::Later(job)) => drop((job.start)(reporter)),
                Err(fault) => reporter.ended(&refused(&fault)),
            }
        })
    }
}

impl BoundTool {
    /// Starts a session: at once, or in a job where preludes of the store must be compiled.
    fn start(&self, owner: CallOwner, fields: &Fields) -> Result<SimpleAnswer, SessionFault> {
        fields.only("lisp_session_start", &["title", "ttl_ms", "preludes", "mode"])?;
        let preludes = RequestedPreludes::read(fields)?;
        let title = fields.text("title");
        let title = title.map(|title| redact::excerpt(title, Cut::Chars(LONGEST_TITLE)).into_owned());
        let (table, ttl) = (self.table.clone(), fields.whole("ttl_ms"));
        let compiles = preludes.references.is_some();
        let (stores, is_stored) = (table.clone(), table.durable().is_some());
        let start = move |stop: &StopFlag| SessionTable::start(&table, owner, title, ttl, preludes, stop);
        let answer = |started: Unreported| view::started(&started.report());
        if !compiles && !is_stored {
            return start(&StopFlag::default()).map(|started| SimpleAnswer::Now(answer(started)));
        }
        Ok(SimpleAnswer::Later(Job::task(async move |reporter, mut cancelled| {
            let started = tokio::select! {
                started = tasks::blocking_in_turn(TaskOwner::Run, &COMPILATIONS, start) => started,
                // A sender that is dropped without a message means that the job has ended.
                Ok(()) = &mut cancelled => None,
            };
            let mut started = started.unwrap_or_else(|| Err(SessionFault::arguments(NOT_STARTED)));
            if let Ok(session) = &started
                && let Err(fault) = stores.store_start(owner, &session.session).await
            {
                started = Err(fault);
            }
            // What a client has cancelled it does not close.
            if cancelled.try_recv().is_ok() {
                started = Err(SessionFault::arguments(NOT_STARTED));
            }
            reporter.ended(&result_answer(started.map(answer)));
        })))
    }

    fn list_preludes(&self, owner: CallOwner, fields: &Fields) -> Result<Map<String, Value>, SessionFault> {
        fields.only("lisp_session_list_preludes", &["session_id"])?;
        if fields.is_empty() {
            return Ok(ok([("preludes", self.table.stores.list()?)]));
        }
        let session = self.table.find(owner, fields.session_id()?)?;
        session.touch();
        let references = session.preludes.references.clone().unwrap_or_else(|| json!([]));
        Ok(ok([("session_id", session.id.as_str().into()), ("prelude_refs", references)]))
    }

    fn list(&self, owner: CallOwner, fields: &Fields) -> Result<Map<String, Value>, SessionFault> {
        let sessions = self.table.all(owner);
        listed(fields, sessions.iter().map(|session| view::summary(session)).collect())
    }

    fn inspect(&self, owner: CallOwner, fields: &Fields) -> Result<SimpleAnswer, SessionFault> {
        let session = self.table.find(owner, fields.session_id()?)?;
        session.touch();
        let view = fields.text("view").unwrap_or_default().to_owned();
        if view != view::CALLS {
            return Ok(SimpleAnswer::Now(view::inspect(&session, &view)));
        }
        // They have the messages of servers.
        session.session.show_answers();
        session.add_answers();
        if session.is_stored() {
            return Ok(SimpleAnswer::Now(view::inspect(&session, &view)));
        }
        // What the model sees counts, whatever becomes of this process.
        Ok(SimpleAnswer::Later(Job::task(async move |reporter, _| {
            let stored = session.store().await;
            reporter.ended(&result_answer(stored.map(|()| view::inspect(&session, &view))));
        })))
    }

    /// Forgets parts of a session that is stored nowhere.
    fn forget(&self, owner: CallOwner, fields: &Fields) -> Result<Job, SessionFault> {
        let session = self.table.find(owner, fields.session_id()?)?;
        let forget = Forgotten::read(fields)?;
        let permit = session.session.acquire().map_err(|SessionBusy| SessionFault::busy(&session.id))?;
        let tool = BoundTool { tool: self.tool, table: self.table.clone() };
        Ok(Job::new(0, move |reporter| -> Cancel {
            tool.forget_with(owner, (session, permit, None), forget, reporter);
            Box::new(|| {})
        }))
    }

    /// Forgets parts of a session in which this request has the turn.
    fn forget_stored(
        &self,
        owner: CallOwner,
        (session, turn): (Arc<OpenSession>, Option<LogLock>),
        fields: &Fields,
        reporter: Box<dyn Reporter>,
    ) {
        let permit = session.session.acquire().map_err(|SessionBusy| SessionFault::busy(&session.id));
        match permit.and_then(|permit| Ok((permit, Forgotten::read(fields)?))) {
            Ok((permit, forget)) => self.forget_with(owner, (session, permit, turn), forget, reporter),
            Err(fault) => reporter.ended(&refused(&fault)),
        }
    }

    fn forget_with(
        &self,
        owner: CallOwner,
        (session, permit, turn): (Arc<OpenSession>, SessionPermit, Option<LogLock>),
        Forgotten { forget, cleared }: Forgotten,
        reporter: Box<dyn Reporter>,
    ) {
        session.touch();
        if let Some(log) = session.log() {
            log.forgotten(&forget);
        }
        let (done, is_done) = oneshot::channel();
        permit.forget(forget, move |gone| {
            let _ = done.send(gone);
        });
        let table = self.table.clone();
        tasks::spawn(TaskOwner::Run, async move {
            // Held until the change is stored.
            let _turn = turn;
            // A worker that ends takes the sessions with it.
            let Ok(gone) = is_done.await else { return };
            let stored = session.store().await;
            if stored.is_err() {
                table.drop_from_memory(owner, &session);
            }
            reporter.ended(&result_answer(stored.map(|()| view::forgotten(&session, gone, cleared))));
        });
    }

    fn close(&self, owner: CallOwner, fields: &Fields) -> Result<Map<String, Value>, SessionFault> {
        let id = fields.session_id()?;
        let Closed = self.table.close(owner, id, SessionEnd::Closed)?;
        closed_answer(fields)
    }
}

/// What a call of `lisp_session_forget` asks for.
struct Forgotten {
    forget: Forget,
    cleared: Vec<String>,
}

impl Forgotten {
    fn read(fields: &Fields) -> Result<Forgotten, SessionFault> {
        let names = fields.texts("bindings")?.unwrap_or_default();
        let cleared = fields.texts("clear")?.unwrap_or_default();
        if cleared.iter().any(|what| !CLEARED.contains(&what.as_str())) {
            return Err(SessionFault::arguments("invalid clear target"));
        }
        let clears = |what: &str| cleared.iter().any(|cleared| cleared == what);
        let forget = Forget {
            bindings: if clears("memory") { Bindings::All } else { Bindings::Named(names) },
            history: clears("history"),
            prints: clears("prints"),
            calls: clears("tool_calls") || clears("upstream_calls"),
        };
        Ok(Forgotten { forget, cleared })
    }
}

fn listed(fields: &Fields, sessions: Vec<Map<String, Value>>) -> Result<Map<String, Value>, SessionFault> {
    if !fields.is_empty() {
        return Err(SessionFault::arguments("lisp_session_list takes no arguments"));
    }
    let sessions: Vec<Value> = sessions.into_iter().map(Value::from).collect();
    Ok(ok([("count", sessions.len().into()), ("sessions", sessions.into())]))
}

fn closed_answer(fields: &Fields) -> Result<Map<String, Value>, SessionFault> {
    let (id, reason) = (fields.session_id()?, fields.text("reason").unwrap_or("closed"));
    Ok(ok([("session_id", id.into()), ("closed", true.into()), ("reason", reason.into())]))
}
