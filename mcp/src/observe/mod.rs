//! What the server remembers of calls, for an operator who asks what it has been doing.
//!
//! Recording copies numbers and texts and looks into none of them; whoever asks pays for that.
//!
//! # Layout
//!
//! - here: [`CallRecorder`], told of every call, and [`OpenRecord`], a call under way.
//! - [`entry`]: one call. [`ring`]: the last calls. [`stats`]: many calls together.
//! - [`payload`]: how much of programs, contexts and answers is shown.
//!
//! Invariant: a call that was begun is entered once: with its answer, or as cancelled when whatever works on it is
//! dropped.

pub mod entry;
pub mod payload;
pub mod ring;
pub mod stats;

use crate::answer::{CallSummary, EdgeReason, ToolAnswer};
use crate::protocol::Id;
use crate::protocol::borrowed::Raw;
use entry::{CallArguments, CallEntry, RecordedCall, RunEntry, bounded_id, kept_call};
use payload::PayloadPolicy;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::secrets::SecretRegistry;
use ring::CallRing;
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Is told of calls, and keeps records of them.
pub struct CallRecorder {
    ring: CallRing,
    policy: PayloadPolicy,
    secrets: SecretRegistry,
}

impl CallRecorder {
    /// Keeps so many records, which show no secret.
    pub fn new(ring_size: usize, policy: PayloadPolicy, secrets: SecretRegistry) -> CallRecorder {
        CallRecorder { ring: CallRing::new(ring_size), policy, secrets }
    }

    /// A call begins.
    pub fn begin(
        self: &Arc<CallRecorder>,
        id: &Id<'_>,
        tool: &str,
        arguments: Option<Raw<'_>>,
        protocol: Option<&'static str>,
    ) -> OpenRecord {
        OpenRecord(Some(Box::new(BegunCall {
            recorder: self.clone(),
            request_id: bounded_id(id.as_json()),
            tool: tool.into(),
            arguments: arguments.map(CallArguments::of),
            protocol,
            begun: Instant::now(),
        })))
    }

    /// The last calls.
    pub fn ring(&self) -> &CallRing {
        &self.ring
    }

    /// How much records show.
    pub fn policy(&self) -> PayloadPolicy {
        self.policy
    }

    /// What records must not show.
    pub fn secrets(&self) -> &SecretRegistry {
        &self.secrets
    }
}

impl fmt::Debug for CallRecorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CallRecorder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A call under way. Dropped without an answer, it is entered as cancelled.
#[derive(Debug)]
pub struct OpenRecord(Option<Box<BegunCall>>);

#[derive(Debug)]
struct BegunCall {
    recorder: Arc<CallRecorder>,
    request_id: Box<str>,
    tool: Box<str>,
    arguments: Option<CallArguments>,
    protocol: Option<&'static str>,
    begun: Instant,
}

impl OpenRecord {
    /// It was answered.
    pub fn answered(mut self, answer: &ToolAnswer<'_>) {
        if let Some(call) = self.0.take() {
            call.end(answer.result.is_error, &answer.summary);
        }
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.end(true, &CallSummary::failed("cancelled"));
        }
    }
}

impl BegunCall {
    fn end(self, is_error: bool, summary: &CallSummary<'_>) {
        let BegunCall { recorder, request_id, tool, arguments, protocol, begun } = self;
        let reason = summary.reason.as_deref();
        // Of what was refused nothing is known, not even how large it is.
        let refused = [EdgeReason::ArgsError, EdgeReason::Busy].map(EdgeReason::name);
        let arguments = arguments.filter(|_| !reason.is_some_and(|reason| refused.contains(&reason)));
        let entry = CallEntry {
            request_id,
            tool,
            ended: SystemTime::now(),
            duration: begun.elapsed(),
            protocol,
            is_error,
            reason: reason.map(Into::into),
            run: summary.run.map(|run| run_entry(run, summary.result_bytes)),
        };
        recorder.ring.push(RecordedCall { entry: Arc::new(entry), arguments });
    }
}

fn run_entry(run: &Outcome, result_bytes: Option<u64>) -> RunEntry {
    RunEntry {
        result_bytes,
        prints: (run.prints.len(), run.prints.iter().map(|line| line.len() as u64).sum()),
        usage: run.usage,
        calls: run.upstream_calls.iter().map(kept_call).collect(),
        message: run.result.as_ref().err().map(|failure| failure.message.as_str().into()),
    }
}
