//! Follows a call that an MCP server answers with a task: polls its state until it ends, answers its questions, returns
//! its result, and cancels it if the caller gives up.

use super::asked::{self, Requests};
use super::client::{Question, RpcClient};
use super::created::{self, Created, LEAST, STATE_BYTES, ServerTask};
use super::dialect::Dialect;
use crate::request::{Envelope, TaskNotes};
use crate::{CallResult, ErrorObject, RawAnswer, ResultSink, ServerRequest, UpstreamFault};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::run::client::CallingClient;
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::CallTarget;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server may take to accept that a task is cancelled.
const CANCELLING: Duration = Duration::from_secs(5);

/// What a server has of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TaskForm {
    /// Nothing.
    #[default]
    None,
    /// The client asks for them (2025-11-25).
    Requested,
    /// The extension of 2026-07-28.
    Extension,
}

impl TaskForm {
    /// What these capabilities of a server say.
    pub(super) fn of_handshake(capabilities: &Value) -> TaskForm {
        match capabilities["tasks"]["requests"]["tools"]["call"].is_object() {
            true => TaskForm::Requested,
            false => TaskForm::None,
        }
    }

    /// What these capabilities of a server without a handshake say.
    pub(super) fn of_stateless(capabilities: &Value) -> TaskForm {
        match capabilities["extensions"][EXTENSION].is_object() {
            true => TaskForm::Extension,
            false => TaskForm::None,
        }
    }
}

/// Name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The answer to a call that is no result.
pub(super) enum Unfinished {
    Task(ServerTask),
    /// The server asks first. The text of the members that a further request has to have.
    Asked(String),
}

/// How a server speaks of the tasks of one call.
pub(super) struct TaskTalk<'s> {
    pub(super) client: &'s RpcClient,
    pub(super) dialect: &'s Dialect,
    pub(super) form: TaskForm,
    pub(super) sink: ResultSink,
    pub(super) deadline: Instant,
    pub(super) timeout: Duration,
    pub(super) trace: Option<TraceContext>,
    /// The client of the run.
    pub(super) asked: Option<CallingClient>,
    pub(super) notes: Option<Arc<dyn TaskNotes>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct State<'a> {
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(borrow, default)]
    poll_interval_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    poll_interval: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_requests: Option<Requests<'a>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl TaskTalk<'_> {
    /// What an answer is, if it is no result.
    pub(super) async fn unfinished(&self, result: &CallResult) -> Result<Option<Unfinished>, UpstreamFault> {
        let CallResult::Mcp(answer) = result else { return Ok(None) };
        match created::read(self.form, answer.bytes())? {
            Created::Result => Ok(None),
            Created::Task(task) => Ok(Some(Unfinished::Task(task))),
            Created::Asked { requests, state } => {
                let answers = asked::answers(&self.client.events, self.asked.as_ref(), &requests).await?;
                let state = state.map(|state| format!(",\"requestState\":{}", json!(state)));
                Ok(Some(Unfinished::Asked(format!(
                    ",\"inputResponses\":{answers}{}",
                    state.unwrap_or_default()
                ))))
            }
        }
    }

    /// Waits for the end of a task. Dropping the future cancels the task.
    pub(super) async fn follow(&self, task: ServerTask) -> Result<CallResult, UpstreamFault> {
        let mut unfinished = CancelOnDrop::new(self, &task);
        let (mut poll, mut answered) = (task.poll, HashSet::new());
        let result = loop {
            sleep(poll).await;
            let answer = self.ask("tasks/get", &task, "").await?;
            let state: State<'_> = serde_json::from_slice(answer.bytes()).map_err(|error| {
                UpstreamFault::Protocol(format!("tasks/get returned unexpected payload: {error}"))
            })?;
            poll = created::interval(state.poll_interval_ms.or(state.poll_interval));
            match (&*state.status, self.form) {
                ("working", _) => {}
                ("input_required", TaskForm::Extension) => {
                    let mut requests = state.input_requests.unwrap_or_default();
                    requests.retain(|name, _| !answered.contains(name));
                    if !requests.is_empty() {
                        answered.extend(requests.keys().cloned());
                        let answers =
                            asked::answers(&self.client.events, self.asked.as_ref(), &requests).await?;
                        self.ask("tasks/update", &task, &format!(",\"inputResponses\":{answers}")).await?;
                        poll = LEAST;
                    }
                }
                // Its questions come as requests while the result is waited for.
                ("input_required" | "completed" | "failed" | "cancelled", TaskForm::Requested) => {
                    break self.result(&task).await;
                }
                ("completed", _) => {
                    let result = state.result.map_or("{}", RawValue::get).to_owned();
                    break Ok(CallResult::Mcp(RawAnswer::from_bytes(result)));
                }
                ("failed", _) => {
                    let error = state.error.map(|error| ErrorObject::read(error.get().as_bytes()));
                    let error = error.unwrap_or_else(|| ErrorObject::about("the task has failed"));
                    break Err(UpstreamFault::Rpc(error));
                }
                ("cancelled", _) => {
                    let why = state.status_message.unwrap_or_default();
                    let why = ["the server has cancelled the task", &*why].join(": ");
                    break Err(UpstreamFault::Rpc(ErrorObject::about(why.trim_end_matches(": "))));
                }
                (other, _) => {
                    let other = ptc_calls::tools::ServerText::new(other).to_string();
                    break Err(UpstreamFault::Protocol(format!("the server has a task that is {other}")));
                }
            }
        };
        unfinished.is_over = true;
        result
    }

    async fn ask(
        &self,
        method: &'static str,
        task: &ServerTask,
        more: &str,
    ) -> Result<RawAnswer, UpstreamFault> {
        let question = Question {
            target: CallTarget::Task(method, task.id.clone()),
            params: self.dialect.params(&format!("\"taskId\":{}{more}", json!(*task.id))),
            era: self.dialect.era(),
            max_bytes: self.sink.max_bytes().saturating_add(STATE_BYTES),
            trace: self.trace.as_ref(),
        };
        match self.client.ask(question, self.deadline.duration_since(Instant::now())).await {
            Err(UpstreamFault::Timeout(_)) => Err(UpstreamFault::Timeout(self.timeout)),
            answer => answer,
        }
    }

    /// The result of a task of 2025-11-25.
    async fn result(&self, task: &ServerTask) -> Result<CallResult, UpstreamFault> {
        let target = CallTarget::Task("tasks/result", task.id.clone());
        let left = self.deadline.duration_since(Instant::now());
        let mut request = ServerRequest::new(
            ptc_calls::policy::Permitted::by_caller(),
            target,
            String::new().into(),
            left,
            self.sink.clone(),
        );
        let head = self.dialect.params(&format!("\"taskId\":{}", json!(*task.id)));
        request.envelope = Envelope { head, era: self.dialect.era(), ..Envelope::default() };
        request.trace = self.trace.clone();
        request.client = self.asked.clone();
        self.client.connection.call(request).await
    }
}

/// Cancels a task when it is dropped before the end.
struct CancelOnDrop {
    is_over: bool,
    client: RpcClient,
    dialect: Dialect,
    id: Arc<str>,
    notes: Option<Arc<dyn TaskNotes>>,
}

impl CancelOnDrop {
    fn new(talk: &TaskTalk<'_>, task: &ServerTask) -> CancelOnDrop {
        CancelOnDrop {
            is_over: false,
            client: talk.client.clone(),
            dialect: talk.dialect.clone(),
            id: task.id.clone(),
            notes: talk.notes.clone(),
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let goes_on = self.notes.as_ref().is_some_and(|notes| notes.goes_on());
        if self.is_over || goes_on || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (client, dialect, id) = (self.client.clone(), self.dialect.clone(), self.id.clone());
        tasks::spawn(TaskOwner::Connection, async move {
            let question = Question {
                params: dialect.params(&format!("\"taskId\":{}", json!(*id))),
                target: CallTarget::Task("tasks/cancel", id),
                era: dialect.era(),
                max_bytes: STATE_BYTES,
                trace: None,
            };
            // It may have ended meanwhile.
            let _ = client.ask(question, CANCELLING).await;
        });
    }
}
