//! Decides which tool calls outlive their request, as MCP tasks or under a `run_id` that the client polls, and answers
//! the client's `tasks/…` requests about them. It knows both versions of MCP tasks.

use super::awaited::{AwaitedReply, cannot_cancel};
use super::run::{DetachedRun, HandleKind};
use super::table::{DetachedRuns, Handle};
use super::wire::{self, declares_tasks};
use crate::protocol::params::Params;
use crate::protocol::{Era, ErrorCode, Raw, RpcError, Version};
use crate::tools::{CallOwner, TaskSupport};
use ptc_upstream::Offered;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Most tasks on a page of `tasks/list`.
const PAGE: usize = 100;

/// Most tasks that one subscription follows.
const MOST_FOLLOWED: usize = 1_000;

/// How a method is answered.
pub(in crate::server) enum TaskReply {
    /// At once, with this result.
    Result(Value),
    /// When this call has ended.
    Await(Arc<DetachedRun>, AwaitedReply),
}

/// When a call goes on without its request.
#[derive(Debug)]
pub enum Detach {
    /// From the start.
    AtOnce(Handle),
    /// If it takes longer.
    Later(Handle, Duration),
}

/// A request for a call, as far as tasks are concerned.
pub(in crate::server) struct TaskWish<'r> {
    pub(in crate::server) era: Era,
    pub(in crate::server) version: Option<Version>,
    pub(in crate::server) tool: &'r str,
    pub(in crate::server) support: TaskSupport,
    /// The parameter `task`.
    pub(in crate::server) task: Option<Raw<'r>>,
    pub(in crate::server) capabilities: Option<Raw<'r>>,
    pub(in crate::server) offered: Offered,
}

/// Bound of a wished `ttl`, in seconds. What a task gets is bounded by less.
const LONGEST_TTL: f64 = 1e9;

#[derive(Deserialize)]
struct TaskParameters {
    /// Milliseconds, as a JSON number of any form.
    ttl: Option<f64>,
}

/// The error for a client that does not declare the extension.
fn missing_capability() -> RpcError {
    RpcError::missing_capability(wire::extension())
}

fn not_supported(message: String) -> RpcError {
    RpcError::new(ErrorCode::MethodNotFound, message)
}

impl DetachedRuns {
    /// Whether and when a call goes on without its request.
    ///
    /// # Errors
    /// The tool has no tasks and one is asked for, or the other way round.
    pub(in crate::server) fn wanted(&self, wish: &TaskWish<'_>) -> Result<Option<Detach>, RpcError> {
        let handle = |kind, ttl| Handle { kind, tool: wish.tool.to_owned(), offered: wish.offered, ttl };
        let later = |kind, after: Option<Duration>| {
            let after = after.filter(|_| wish.support == TaskSupport::Optional);
            after.map(|after| Detach::Later(handle(kind, None), after))
        };
        if wish.era == Era::Stateless {
            let declares = wish.capabilities.is_some_and(|capabilities| declares_tasks(capabilities.get()));
            return match (wish.support, declares) {
                (TaskSupport::Required, false) => Err(missing_capability()),
                (TaskSupport::Required, true) => {
                    Ok(Some(Detach::AtOnce(handle(HandleKind::Extension, None))))
                }
                (_, true) => Ok(later(HandleKind::Extension, Some(self.limits.tasks_after))),
                (_, false) => Ok(later(HandleKind::RunId, self.limits.runs_after)),
            };
        }
        let task =
            wish.task.filter(|task| Version::has_requested_tasks(wish.version) && task.get() != "null");
        match (task, wish.support) {
            (Some(_), TaskSupport::Forbidden) => {
                Err(not_supported(format!("{} cannot be called as a task", wish.tool)))
            }
            (Some(task), _) => {
                let parameters: TaskParameters = serde_json::from_str(task.get())
                    .map_err(|error| RpcError::invalid_params(&format!("task: {error}")))?;
                let ttl = parameters.ttl.map(|ms| ms / 1000.0);
                if ttl.is_some_and(|seconds| seconds < 0.0) {
                    return Err(RpcError::invalid_params("task: ttl is negative"));
                }
                let ttl = ttl.map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST_TTL)));
                Ok(Some(Detach::AtOnce(handle(HandleKind::Requested, ttl))))
            }
            (None, TaskSupport::Required) => {
                Err(not_supported(format!("{} can only be called as a task", wish.tool)))
            }
            (None, _) => Ok(later(HandleKind::RunId, self.limits.runs_after)),
        }
    }

    /// Answers a method of the extension.
    pub(in crate::server) fn extension_method(
        &self,
        method: &str,
        params: &Params<'_>,
        owner: CallOwner,
        meta: &Value,
    ) -> Result<TaskReply, RpcError> {
        if !matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel") {
            return Err(RpcError::method_not_found());
        }
        declared(params)?;
        let run = self.named(owner, params)?;
        let mut result = match method {
            "tasks/get" => wire::detailed_task(&run, &run.view()).into(),
            "tasks/update" => {
                run.update(params.responses()?);
                json!({})
            }
            _ => json!({}),
        };
        result["resultType"] = "complete".into();
        result["_meta"] = meta.clone();
        Ok(match method == "tasks/cancel" && run.cancel() {
            true => TaskReply::Await(run, AwaitedReply::Acknowledged(result)),
            false => TaskReply::Result(result),
        })
    }

    /// Answers a method of 2025-11-25.
    pub(in crate::server) fn requested_method(
        &self,
        method: &str,
        params: &Params<'_>,
        (owner, version): (CallOwner, Option<Version>),
    ) -> Result<TaskReply, RpcError> {
        if !Version::has_requested_tasks(version) {
            return Err(RpcError::method_not_found());
        }
        let task = |run: &DetachedRun| TaskReply::Result(wire::requested_task(run, &run.view()).into());
        match method {
            "tasks/get" => Ok(task(&*self.named(owner, params)?)),
            "tasks/result" => Ok(TaskReply::Await(self.named(owner, params)?, AwaitedReply::Result)),
            "tasks/cancel" => {
                let run = self.named(owner, params)?;
                match run.cancel() {
                    true => Ok(TaskReply::Await(run, AwaitedReply::Cancelled)),
                    false => Err(cannot_cancel(run.view().status)),
                }
            }
            "tasks/list" if self.limits.knows_clients => self.list(owner, params.cursor),
            _ => Err(RpcError::method_not_found()),
        }
    }

    fn list(&self, owner: CallOwner, cursor: Option<Raw<'_>>) -> Result<TaskReply, RpcError> {
        let after = match cursor.filter(|cursor| cursor.get() != "null") {
            None => None,
            Some(cursor) => {
                let number =
                    serde_json::from_str::<String>(cursor.get()).ok().and_then(|text| text.parse().ok());
                Some(number.ok_or_else(|| RpcError::invalid_params("unknown cursor"))?)
            }
        };
        let mut runs = self.table.all(owner);
        runs.retain(|run| after.is_none_or(|after: u64| run.number > after));
        runs.sort_by_key(|run| run.number);
        let next = runs.get(PAGE).and_then(|_| runs.get(PAGE - 1)).map(|last| last.number.to_string());
        let tasks: Vec<Value> =
            runs.iter().take(PAGE).map(|run| wire::requested_task(run, &run.view()).into()).collect();
        let mut result = json!({ "tasks": tasks });
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        Ok(TaskReply::Result(result))
    }

    /// The tasks that a subscription is to follow, of those that this owner has.
    ///
    /// # Errors
    /// The client does not declare the extension.
    pub(in crate::server) fn followed(
        &self,
        params: &Params<'_>,
        ids: &[String],
        owner: CallOwner,
    ) -> Result<Vec<Arc<DetachedRun>>, RpcError> {
        declared(params)?;
        let mut runs: Vec<Arc<DetachedRun>> = Vec::new();
        for id in ids.iter().take(MOST_FOLLOWED) {
            if let Some(run) = self.find(owner, id).filter(|run| !runs.iter().any(|known| known.id == run.id))
            {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    /// The call that a request names.
    fn named(&self, owner: CallOwner, params: &Params<'_>) -> Result<Arc<DetachedRun>, RpcError> {
        let id: Option<String> = params.task_id.and_then(|id| serde_json::from_str(id.get()).ok());
        let id = id.ok_or_else(|| RpcError::invalid_params("taskId must be a string"))?;
        self.find(owner, &id).ok_or_else(|| {
            let why = if self.table.was_removed(owner, &id) { "Task has expired" } else { "Task not found" };
            RpcError::new(ErrorCode::InvalidParams, format!("Failed to retrieve task: {why}"))
        })
    }
}

/// # Errors
/// The client does not declare the extension.
fn declared(params: &Params<'_>) -> Result<(), RpcError> {
    let capabilities = params.meta.as_ref().and_then(|meta| meta.client_capabilities);
    match capabilities.is_some_and(|capabilities| declares_tasks(capabilities.get())) {
        true => Ok(()),
        false => Err(missing_capability()),
    }
}
