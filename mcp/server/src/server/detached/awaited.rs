//! Serves a client's request that waits until an MCP task (a tool call in the background) ends: sends the task's
//! questions to the client, then the answer to the request.

use super::run::{DetachedRun, Status};
use super::table::question_id;
use super::wire;
use crate::protocol::{ErrorCode, Id, RpcError, ServerMessage};
use crate::server::outbox::{Outbox, Route};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// What a request that waits is answered with.
#[derive(Debug)]
pub(in crate::server) enum AwaitedReply {
    /// With the result of the call (`tasks/result` of 2025-11-25). It asks the questions of the task meanwhile.
    Result,
    /// With the state of the task, if it was cancelled (2025-11-25).
    Cancelled,
    /// With this, once the task is cancelled.
    Acknowledged(Value),
}

/// The error of a cancellation that came too late (2025-11-25).
pub(super) fn cannot_cancel(status: Status) -> RpcError {
    let why = format!("Cannot cancel task: already in terminal status '{}'", status.name());
    RpcError::new(ErrorCode::InvalidParams, why)
}

/// A request that waits for the end of a task.
pub struct AwaitedTask {
    pub(in crate::server) id: Id<'static>,
    pub(in crate::server) run: Arc<DetachedRun>,
    reply: AwaitedReply,
    /// Questions that it has asked.
    asked: HashSet<String>,
    /// One of several requests for a task asks. The right to ask ends with this.
    asks: Arc<()>,
}

impl AwaitedTask {
    pub(in crate::server) fn new(id: &Id<'_>, run: Arc<DetachedRun>, reply: AwaitedReply) -> AwaitedTask {
        AwaitedTask { id: id.clone().into_owned(), run, reply, asked: HashSet::new(), asks: Arc::new(()) }
    }

    /// Sends what is new: questions, or the answer. Returns true after the answer.
    pub(in crate::server) fn follow(&mut self, out: &mut impl Outbox) -> bool {
        let view = self.run.view();
        let to = Route::Request(&self.id);
        if self.run.is_elsewhere() {
            let error =
                RpcError::new(ErrorCode::Unavailable, "another node goes on with the task; ask again");
            out.send(to, ServerMessage::error(Some(&self.id), &error));
            return true;
        }
        if let Some(end) = view.end {
            out.send(
                to,
                match &self.reply {
                    AwaitedReply::Result => wire::result(&self.id, &self.run, end),
                    AwaitedReply::Cancelled => match view.status {
                        Status::Cancelled => ServerMessage::result(
                            &self.id,
                            &wire::requested_task(&self.run, &self.run.view()),
                        ),
                        status => ServerMessage::error(Some(&self.id), &cannot_cancel(status)),
                    },
                    AwaitedReply::Acknowledged(result) => ServerMessage::result(&self.id, result),
                },
            );
            return true;
        }
        let asks = matches!(self.reply, AwaitedReply::Result);
        if asks && !view.asked.is_empty() && self.run.may_ask(&self.asks) {
            for (name, request) in view.asked {
                if self.asked.insert(name.clone()) {
                    let params = wire::related_params(&self.run, &request["params"]);
                    let method = request["method"].as_str().unwrap_or_default();
                    let id = question_id(&self.run.id, &name);
                    out.send(to, ServerMessage::request(&id, method, &params.to_string()));
                }
            }
        }
        false
    }
}
