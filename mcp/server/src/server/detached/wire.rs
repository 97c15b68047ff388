//! Writes the JSON of MCP tasks, which are tool calls that go on after their request has ended, for both versions of
//! that feature: that of 2025-11-25, and the extension of 2026-07-28.

use super::run::{DetachedRun, End, HandleKind, Status, View};
use crate::answer::{Content, ToolAnswer};
use crate::protocol::notify;
use crate::protocol::version::{META_RELATED_TASK, TASKS_EXTENSION};
use crate::protocol::{ErrorCode, Id, RpcError, ServerMessage};
use crate::server::input_required::{self, ClientQuestion};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// How often a client is to ask for the state of a task.
pub(super) const POLL_MS: u64 = 1_000;

/// The capability of 2025-11-25. Tasks are listed only where clients are known apart.
pub(in crate::server) fn capability(lists: bool) -> Value {
    let mut all = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    if lists {
        all["list"] = json!({});
    }
    all
}

/// The capability of the extension.
pub(in crate::server) fn extension() -> Value {
    json!({ "extensions": { TASKS_EXTENSION: {} } })
}

/// True for capabilities of a client, as JSON text, that declare the extension.
pub(in crate::server) fn declares_tasks(capabilities: &str) -> bool {
    if !capabilities.contains(TASKS_EXTENSION) {
        return false;
    }
    let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
    capabilities["extensions"][TASKS_EXTENSION].is_object()
}

/// The members of a result, without those of its era.
pub(super) fn members(answer: &ToolAnswer<'_>) -> Map<String, Value> {
    let parsed = |blocks: &str| serde_json::from_str(blocks).unwrap_or_default();
    let mut members = Map::new();
    let content = match &answer.content {
        Content::Text(text) => json!([{ "type": "text", "text": text }]),
        Content::Blocks(blocks) | Content::Extended { blocks, .. } => parsed(blocks.get()),
        Content::InputRequired { .. } => json!([]),
    };
    members.insert("content".into(), content);
    if let Content::Extended { members: more, .. } = &answer.content {
        members.extend(more.clone());
    }
    if let Some(structured) = &answer.structured {
        members.insert("structuredContent".into(), structured.clone());
    }
    members.insert("isError".into(), answer.is_error.into());
    members
}

/// Questions by their names.
pub(super) fn input_requests(asked: &[ClientQuestion]) -> Map<String, Value> {
    input_required::input_requests(asked)
}

/// A moment in ISO 8601.
fn moment(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_string()
}

/// What both forms say in other words.
fn task(run: &DetachedRun, view: &View, (ttl, poll): (&str, &str)) -> Map<String, Value> {
    let mut task = Map::new();
    task.insert("taskId".into(), run.id.as_str().into());
    task.insert("status".into(), view.status.name().into());
    if let Some(message) = status_message(run, view) {
        task.insert("statusMessage".into(), message.into());
    }
    task.insert("createdAt".into(), moment(run.created_ms).into());
    task.insert("lastUpdatedAt".into(), moment(view.updated_ms).into());
    task.insert(ttl.into(), u64::try_from(run.ttl.as_millis()).unwrap_or(u64::MAX).into());
    if !view.status.is_over() {
        task.insert(poll.into(), POLL_MS.into());
    }
    task
}

fn status_message(run: &DetachedRun, view: &View) -> Option<String> {
    match (&view.end, view.status) {
        (_, Status::InputRequired) if run.kind == HandleKind::Requested => {
            Some("waits for answers of its client: tasks/result asks them".into())
        }
        (_, Status::InputRequired) => Some("waits for answers of its client".into()),
        (Some(End::Cancelled), _) => Some("The task was cancelled by request.".into()),
        (Some(End::Error(message)), _) => Some(message.clone()),
        (Some(End::Result { members, is_error: true }), Status::Failed) => {
            let text = members.get("content")?.get(0)?.get("text")?.as_str()?;
            text.lines().next().map(str::to_owned)
        }
        _ => None,
    }
}

/// A task of 2025-11-25.
pub(super) fn requested_task(run: &DetachedRun, view: &View) -> Map<String, Value> {
    task(run, view, ("ttl", "pollInterval"))
}

/// A task of the extension with everything that its status adds.
pub(super) fn detailed_task(run: &DetachedRun, view: &View) -> Map<String, Value> {
    let mut task = task(run, view, ("ttlMs", "pollIntervalMs"));
    if view.status == Status::InputRequired {
        task.insert("inputRequests".into(), view.asked.clone().into());
    }
    match &view.end {
        Some(End::Result { members, .. }) => {
            let mut result = members.clone();
            result.insert("resultType".into(), "complete".into());
            task.insert("result".into(), result.into());
        }
        Some(End::Error(message)) => {
            let error = json!({ "code": ErrorCode::Internal as i32, "message": message });
            task.insert("error".into(), error);
        }
        Some(End::Cancelled) | None => {}
    }
    task
}

/// The result that hands a new task over. It is `working`, whatever has happened to it meanwhile.
pub(in crate::server) fn created(run: &DetachedRun, meta: &Value) -> Value {
    let view = View { status: Status::Working, end: None, asked: Map::new(), ..run.view() };
    match run.kind {
        HandleKind::Extension => {
            let mut task = task(run, &view, ("ttlMs", "pollIntervalMs"));
            task.insert("resultType".into(), "task".into());
            task.insert("_meta".into(), meta.clone());
            task.into()
        }
        HandleKind::Requested | HandleKind::RunId => json!({ "task": requested_task(run, &view) }),
    }
}

/// The answer of `tasks/result`.
pub(super) fn result(id: &Id<'_>, run: &DetachedRun, end: End) -> ServerMessage {
    let mut members = match end {
        End::Result { members, .. } => members,
        End::Error(message) => {
            return ServerMessage::error(Some(id), &RpcError::new(ErrorCode::Internal, message));
        }
        End::Cancelled => members(&super::table::answer(End::Cancelled)),
    };
    members.insert("_meta".into(), related(run));
    ServerMessage::result(id, &members)
}

/// The `_meta` of a message that belongs to a task of 2025-11-25.
pub(super) fn related(run: &DetachedRun) -> Value {
    json!({ META_RELATED_TASK: { "taskId": run.id } })
}

/// Parameters of a question with the task that it belongs to.
pub(super) fn related_params(run: &DetachedRun, params: &Value) -> Value {
    let mut params = params.as_object().cloned().unwrap_or_default();
    params.insert("_meta".into(), related(run));
    params.into()
}

/// The notification of a change: of a subscription, or of 2025-11-25.
pub(in crate::server) fn notification(run: &DetachedRun, subscription: Option<&Id<'_>>) -> ServerMessage {
    let view = run.view();
    match subscription {
        Some(id) => {
            let mut params = detailed_task(run, &view);
            params.insert("_meta".into(), notify::meta(id));
            ServerMessage::notification("notifications/tasks", &params)
        }
        None => ServerMessage::notification("notifications/tasks/status", &requested_task(run, &view)),
    }
}
