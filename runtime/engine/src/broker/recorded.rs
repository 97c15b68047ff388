//! Converts answers and errors of tool calls to records in the log of a run and back, so that a replay answers calls
//! from the log.

use super::payload::{Chosen, PayloadContent, PayloadSource};
use super::reserve::refuse;
use super::send::{RecordedCall, Route, answered};
use super::{CallError, CallPayload, CallResponse, PreparedCall, ToolBroker, WorldFault};
use ptc_calls::journal::{Answer, Content};
use ptc_calls::run::account::{CallLabel, RunAccount};
use ptc_calls::run::ledger::OpenCall;
use ptc_calls::run::outcome::{CallFault, CallStatus, Effect};
use ptc_calls::tools::{CallTarget, WrongCall};
use ptc_upstream::RawAnswer;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

impl CallPayload {
    /// The payload as the journal of a run has it.
    pub(crate) fn recorded(&self) -> Answer {
        let bytes = self.bytes();
        if self.spilled().is_some() {
            return Answer::Stored { bytes };
        }
        let json =
            |place: &Option<Range<usize>>| place.as_ref().map(|place| Content::from_json(self.part(place)));
        match &self.content {
            PayloadContent::Success { value, blocks } => {
                let value = match value {
                    Chosen::Structured(place) => Some(Content::from_json(self.part(place))),
                    Chosen::Text(text) => Some(Content::Text(text.clone())),
                    Chosen::Verbatim(place) => {
                        Some(Content::Verbatim(String::from_utf8_lossy(self.part(place)).into_owned()))
                    }
                    Chosen::Nothing => None,
                };
                Answer::Ok { value, blocks: json(blocks), bytes }
            }
            PayloadContent::ToolError { message, blocks, structured } => {
                let (message, blocks, structured) = (message.clone(), json(blocks), json(structured));
                Answer::ToolError { message, blocks, structured, bytes }
            }
            PayloadContent::Malformed(why) => Answer::Malformed { why: why.clone().into_owned() },
        }
    }

    /// The payload again.
    ///
    /// # Errors
    /// The call had no payload.
    pub(crate) fn from_recorded(answer: Answer) -> Result<CallPayload, CallError> {
        let mut raw = Vec::new();
        let mut place = |content: Content| {
            let start = raw.len();
            raw.extend(content.to_bytes());
            start..raw.len()
        };
        let (content, bytes) = match answer {
            Answer::Ok { value, blocks, bytes } => {
                let value = match value {
                    None => Chosen::Nothing,
                    Some(Content::Text(text)) => Chosen::Text(text),
                    Some(text @ Content::Verbatim(_)) => Chosen::Verbatim(place(text)),
                    Some(json) => Chosen::Structured(place(json)),
                };
                (PayloadContent::Success { value, blocks: blocks.map(&mut place) }, bytes)
            }
            Answer::ToolError { message, blocks, structured, bytes } => {
                let (blocks, structured) = (blocks.map(&mut place), structured.map(&mut place));
                (PayloadContent::ToolError { message, blocks, structured }, bytes)
            }
            Answer::Malformed { why } => (PayloadContent::Malformed(why.into()), 0),
            Answer::Fault { reason, message } => {
                let reason = CallFault::parse(&reason).unwrap_or(CallFault::UpstreamError);
                return Err(WorldFault { reason, message }.into());
            }
            Answer::Wrong { message, hints } => return Err(WrongCall { message, hints }.into()),
            Answer::OverMemory { bytes } => return Err(CallError::OverMemory { bytes }),
            Answer::Stored { bytes } => {
                let message =
                    format!("its answer of {bytes} bytes was stored in a file, which is not recorded");
                return Err(WorldFault { reason: CallFault::NotRecorded, message }.into());
            }
        };
        Ok(CallPayload::from_parts(content, bytes, PayloadSource::Raw(RawAnswer::from_bytes(raw))))
    }
}

impl CallError {
    /// The error as the journal of a run has it.
    pub(crate) fn recorded(&self) -> Answer {
        match self {
            CallError::Wrong(WrongCall { message, hints }) => {
                Answer::Wrong { message: message.clone(), hints: hints.clone() }
            }
            CallError::World(fault) => fault.recorded(),
            CallError::OverMemory { bytes } => Answer::OverMemory { bytes: *bytes },
        }
    }
}

impl WorldFault {
    /// The fault of a call in doubt.
    pub(crate) fn outcome_unknown() -> WorldFault {
        let message = "the process ended while the call was under way; it may have been made".to_owned();
        WorldFault { reason: CallFault::OutcomeUnknown, message }
    }

    /// The fault of a call that a recording does not have.
    pub(crate) fn not_recorded(label: &str) -> WorldFault {
        let message = format!("the recording has no call of {label} with these arguments");
        WorldFault { reason: CallFault::NotRecorded, message }
    }

    /// The fault as the journal of a run has it.
    pub(crate) fn recorded(&self) -> Answer {
        Answer::Fault { reason: self.reason.name().to_owned(), message: self.message.clone() }
    }
}

impl ToolBroker {
    /// Opens a call of a session that is restored, or of a run that goes on. Its server, tools and policies are not asked:
    /// the call was made in another process. `None`: the budget does not suffice.
    pub(crate) fn open_recorded(
        &self,
        account: &Arc<RunAccount>,
        (server, target): (&str, &CallTarget),
        granted: Option<Arc<str>>,
        effect: Effect,
    ) -> Option<PreparedCall> {
        let label = CallLabel { server: server.into(), tool: target.shared_label(), effect };
        if !account.take_call() {
            let reason = CallFault::CapExhausted;
            account.refuse_call(label, Instant::now(), reason, reason.name());
            return None;
        }
        account.count_call_of(server);
        let call = OpenCall::begin(account, label, Instant::now(), None);
        let (server, target, policy) = (server.into(), target.clone(), self.policy.clone());
        let call = RecordedCall { server, target, policy, account: account.clone(), call, granted };
        Some(PreparedCall { route: Route::Recorded(call) })
    }

    /// Enters a call into the ledger that was refused in another process.
    pub(crate) fn refuse_recorded(
        &self,
        account: &RunAccount,
        (server, target): (&str, &CallTarget),
        answer: Answer,
    ) -> Option<CallError> {
        let error = CallPayload::from_recorded(answer).err()?;
        if let CallError::World(fault) = &error {
            let (server, tool) = (server.into(), target.shared_label());
            let label = CallLabel { server, tool, effect: Effect::Unknown };
            account.refuse_call(label, Instant::now(), fault.reason, &fault.message);
        }
        Some(error)
    }
}

impl RecordedCall {
    /// Notes that the data of its run may have this answer. A refused call had none.
    fn note_answer(&self, answer: &Answer) {
        let is_refusal = matches!(answer, Answer::Fault { reason, .. }
            if CallFault::parse(reason).is_some_and(CallFault::is_refusal));
        if !is_refusal {
            self.policy.note_answer(&self.account, &self.server, self.target.label());
        }
    }
}

impl PreparedCall {
    /// Says what a call may change that was opened by [`ToolBroker::open_recorded`].
    pub(crate) fn set_effect(&self, effect: Effect) {
        if let Route::Recorded(RecordedCall { call, .. }) = &self.route {
            call.set_effect(effect);
        }
    }

    /// Takes back a call that was opened by [`ToolBroker::open_recorded`]: it is to be made, after all.
    pub(crate) fn take_back(self) {
        if let Route::Recorded(RecordedCall { server, account, call, .. }) = self.route {
            call.withdraw();
            account.return_call(&server);
        }
    }

    /// Answers it from the journal of its run instead of sending it.
    ///
    /// # Errors
    /// The recorded error.
    pub(crate) fn replayed(self, answer: Answer) -> Result<CallResponse, CallError> {
        if let Route::Recorded(call) = &self.route {
            call.note_answer(&answer);
        }
        let (account, call) = self.into_open();
        match CallPayload::from_recorded(answer) {
            Ok(payload) => answered(&account, call, payload),
            Err(CallError::World(fault)) => Err(refuse(call, fault).into()),
            Err(CallError::OverMemory { bytes }) => {
                let duration = call.elapsed();
                call.end(CallStatus::Ok, duration, Some(bytes));
                Err(CallError::OverMemory { bytes })
            }
            Err(wrong) => {
                call.withdraw();
                Err(wrong)
            }
        }
    }

    /// Its run, and its place in the ledger.
    pub(super) fn into_open(self) -> (Arc<RunAccount>, OpenCall) {
        match self.route {
            Route::Loaded(loaded) => (loaded.plan.account, loaded.call),
            Route::Recorded(RecordedCall { account, call, .. }) => (account, call),
        }
    }
}
