//! The part of the message handler for tool calls that outlive their requests: answers the request early, with a task
//! or a `run_id` to poll, and resumes such calls from stored runs.

use super::requested::RequestedCall;
use super::{Handler, Ticket};
use crate::protocol::{Era, RpcError, ServerMessage};
use crate::server::detached::{self, Detach, DetachedRun, HandleKind, TaskWish};
use crate::server::outbox::{Outbox, Route};
use crate::tools::lisp_run::still_running;
use crate::tools::{CallContext, CallOwner, Job, SessionTag, Tool, ToolAnswer};
use serde_json::json;

impl Handler {
    /// Whether and when a call goes on without its request.
    pub(super) fn detach(
        &self,
        call: &RequestedCall<'_>,
        tool: Option<&dyn Tool>,
    ) -> Result<Option<Detach>, RpcError> {
        let Some(tool) = tool else { return Ok(None) };
        self.detached.wanted(&TaskWish {
            era: call.era,
            version: call.connection.version,
            tool: call.tool(),
            support: tool.task_support(),
            task: call.params.task,
            capabilities: call.params.declared_capabilities(),
            offered: call.offered(),
        })
    }

    /// Answers the request of a call that goes on without it.
    pub(in crate::server) fn handed_over(&self, ticket: &Ticket, run: &DetachedRun, out: &mut impl Outbox) {
        match run.kind {
            HandleKind::RunId => {
                let answer = still_running(self.profile, &run.id);
                self.answer(&ticket.id, ticket.era, &answer, out);
            }
            HandleKind::Requested | HandleKind::Extension => {
                let created = detached::created(run, &json!(self.result_meta));
                out.send(Route::Request(&ticket.id), ServerMessage::result(&ticket.id, &created));
            }
        }
    }

    /// The job that goes on with a stored run; `None` if its tool does not, or is gone.
    pub(in crate::server) fn resume(
        &self,
        tool: &str,
        run: &str,
        memo: &str,
        owner: CallOwner,
    ) -> Option<Job> {
        let context = CallContext {
            owner,
            session: SessionTag::default(),
            profile: self.profile,
            era: Era::default(),
            log: None,
            frame_bytes: 0,
            logs_turns: false,
            trace: None,
        };
        self.registry.find(tool)?.resume(run, memo, &context)
    }
}

impl Ticket {
    /// Records the answer of a call that was answered otherwise.
    pub(in crate::server) fn recorded(self, answer: &ToolAnswer<'_>) {
        if let Some(record) = self.record {
            record.answered(answer);
        }
    }
}
