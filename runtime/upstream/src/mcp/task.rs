//! Follows a call that an MCP server answers with a task: polls its state until it ends, answers its questions, returns
//! its result, and cancels it if the caller gives up.

use super::asked::{self, Requests};
use super::client::{Question, RpcClient};
use super::created::{self, Created, LEAST, STATE_BYTES, ServerTask};
use super::dialect::Dialect;
use super::schedule::Schedule;
use crate::overflow;
use crate::request::{Envelope, TaskNotes};
use crate::{CallResult, ErrorObject, RawAnswer, ResultSink, ServerRequest, UpstreamFault};
use ptc_base::spill::task_result;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::policy::Permitted;
use ptc_calls::run::client::CallingClient;
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::{CallTarget, ServerText};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

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

/// What is known of a task after a question.
enum Step {
    /// It works; the advised time until the next question.
    Working(Duration),
    /// It is over.
    Over(Result<CallResult, UpstreamFault>),
}

/// What the server of a task has asked.
#[derive(Default)]
struct Questions {
    /// The names of the questions that have answers.
    answered: HashSet<String>,
    /// Answers that the server has not taken yet.
    unsent: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct State<'a> {
    #[serde(borrow, default)]
    task_id: Option<Cow<'a, str>>,
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

/// The result of a task that has failed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    #[serde(default)]
    is_error: bool,
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
        let mut schedule = Schedule::new(task.poll, self.timeout, self.deadline);
        let mut questions = Questions::default();
        loop {
            schedule.wait().await;
            match self.step(&task, &mut questions, schedule.patience()).await {
                Ok(Step::Working(advised)) => schedule.works(advised),
                Ok(Step::Over(result)) => {
                    unfinished.is_over = true;
                    return result;
                }
                Err(fault) => schedule.failed(fault)?,
            }
        }
    }

    /// Asks for the state of a task once, and does what it asks for.
    ///
    /// # Errors
    /// It is not known whether the task is over.
    async fn step(
        &self,
        task: &ServerTask,
        questions: &mut Questions,
        patience: Duration,
    ) -> Result<Step, UpstreamFault> {
        if let Some(answers) = &questions.unsent {
            let more = format!(",\"inputResponses\":{answers}");
            self.ask("tasks/update", task, &more, patience).await?;
            questions.unsent = None;
            return Ok(Step::Working(LEAST));
        }
        let (answer, in_file) = self.state(task, patience).await?;
        let state: State<'_> = serde_json::from_slice(answer.bytes())
            .map_err(|error| protocol(format!("tasks/get returned unexpected payload: {error}")))?;
        if state.task_id.as_ref().is_some_and(|id| **id != *task.id) {
            return Err(protocol("tasks/get returned the state of another task"));
        }
        let advised = created::interval(state.poll_interval_ms.or(state.poll_interval));
        let why = |what: &str| match &state.status_message {
            Some(message) if !message.is_empty() => ErrorObject::about(format!("{what}: {message}")),
            Some(_) | None => ErrorObject::about(what),
        };
        match (&*state.status, self.form) {
            ("working", _) => Ok(Step::Working(advised)),
            ("input_required", TaskForm::Extension) => {
                let requests = state.input_requests.unwrap_or_default();
                let is_new = self.answer(questions, requests).await?;
                Ok(Step::Working(if is_new { LEAST } else { advised }))
            }
            // Its questions come as requests while the result is waited for.
            ("input_required", TaskForm::Requested) => {
                self.result(task, self.deadline.duration_since(Instant::now())).await
            }
            ("completed", TaskForm::Requested) => self.result(task, patience).await,
            ("failed", TaskForm::Requested) => {
                let is_error = |answer: &RawAnswer| {
                    let said = serde_json::from_slice::<Failure>(answer.bytes());
                    answer.spilled().is_some() || said.is_ok_and(|said| said.is_error)
                };
                match self.result(task, patience).await? {
                    Step::Over(Ok(CallResult::Mcp(answer))) if !is_error(&answer) => {
                        Ok(Step::Over(Err(UpstreamFault::Rpc(why("the task has failed")))))
                    }
                    step => Ok(step),
                }
            }
            ("completed", _) => Ok(Step::Over(self.completed(state.result, in_file))),
            ("failed", _) => {
                let error = state.error.map(|error| ErrorObject::read(error.get().as_bytes()));
                let error = error.unwrap_or_else(|| why("the task has failed"));
                Ok(Step::Over(Err(UpstreamFault::Rpc(error))))
            }
            ("cancelled", _) => {
                Ok(Step::Over(Err(UpstreamFault::Rpc(why("the server has cancelled the task")))))
            }
            (other, _) => {
                let other = ServerText::new(other);
                Err(protocol(format!("the server has a task that is {other}")))
            }
        }
    }

    /// Finds the answers to questions that are new. Returns whether there are any.
    async fn answer(
        &self,
        questions: &mut Questions,
        mut requests: Requests<'_>,
    ) -> Result<bool, UpstreamFault> {
        requests.retain(|name, _| !questions.answered.contains(name));
        if requests.is_empty() {
            return Ok(false);
        }
        questions.answered.extend(requests.keys().cloned());
        questions.unsent = Some(asked::answers(&self.client.events, self.asked.as_ref(), &requests).await?);
        Ok(true)
    }

    /// The state of a task, and its result if that is in a file.
    async fn state(
        &self,
        task: &ServerTask,
        patience: Duration,
    ) -> Result<(RawAnswer, Option<RawAnswer>), UpstreamFault> {
        let answer = match self.ask("tasks/get", task, "", patience).await {
            Err(UpstreamFault::TooLarge { bytes, .. }) => return Err(self.sink.too_large(bytes)),
            answer => answer?.into_answer(),
        };
        let Some(raw) = answer.spilled().cloned() else { return Ok((answer, None)) };
        let split = tasks::blocking(TaskOwner::Run, move |stop| task_result(&raw, STATE_BYTES, stop)).await;
        let (state, result) =
            split.unwrap_or_else(|| Err("the state of a task was not read".to_owned())).map_err(protocol)?;
        Ok((RawAnswer::from_bytes(state), Some(RawAnswer::in_file(result))))
    }

    /// The result of a task of 2026-07-28, which takes the way of the result of a call.
    fn completed(
        &self,
        result: Option<&RawValue>,
        in_file: Option<RawAnswer>,
    ) -> Result<CallResult, UpstreamFault> {
        if let Some(result) = in_file {
            return Ok(CallResult::Mcp(result));
        }
        let Some(result) = result else {
            return Err(protocol("the server has completed a task without a result"));
        };
        self.checked(CallResult::Mcp(RawAnswer::from_bytes(result.get())))
    }

    /// The result of a task, if it is one and within the limits of the call.
    fn checked(&self, result: CallResult) -> Result<CallResult, UpstreamFault> {
        let answer = result.into_answer();
        let is_result = answer.spilled().is_some()
            || matches!(created::read(self.form, answer.bytes())?, Created::Result);
        match is_result {
            true => overflow::placed(answer, &self.sink).map(CallResult::Mcp),
            false => Err(protocol("the server has completed a task without a result")),
        }
    }

    /// The result of a task of 2025-11-25. The server answers when the task is over.
    async fn result(&self, task: &ServerTask, patience: Duration) -> Result<Step, UpstreamFault> {
        match self.ask("tasks/result", task, "", patience).await {
            Ok(result) => Ok(Step::Over(self.checked(result))),
            Err(fault @ (UpstreamFault::Rpc(_) | UpstreamFault::TooLarge { .. })) => {
                Ok(Step::Over(Err(fault)))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks about a task.
    async fn ask(
        &self,
        method: &'static str,
        task: &ServerTask,
        more: &str,
        patience: Duration,
    ) -> Result<CallResult, UpstreamFault> {
        let sink = match (method, &self.sink) {
            ("tasks/result", sink) => sink.clone(),
            (_, sink) => sink.with_room(STATE_BYTES),
        };
        let target = CallTarget::Task(method, task.id.clone());
        let mut request =
            ServerRequest::new(Permitted::by_caller(), target, String::new().into(), patience, sink);
        let head = self.dialect.params(&format!("\"taskId\":{}{more}", json!(*task.id)));
        request.envelope = Envelope { head, era: self.dialect.era(), ..Envelope::default() };
        request.trace = self.trace.clone();
        let answer = timeout_at(request.deadline, self.client.connection.call(request)).await;
        answer.unwrap_or(Err(UpstreamFault::Timeout(self.timeout)))
    }
}

fn protocol(why: impl Into<String>) -> UpstreamFault {
    UpstreamFault::Protocol(why.into())
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
