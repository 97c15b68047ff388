//! Records the tool calls of a Python script in the journal, the log of the run, and in a replay answers them from
//! there: a number assigned to each call finds the recorded answer.
//!
//! The journal of a PTC-Lisp program is kept by its worker, which alone knows when a branch receives an answer.

use super::header;
use super::reserve::refuse;
use super::{CallError, CallPayload, CallResponse, PreparedCall, ToolBroker, WorldFault};
use ptc_calls::journal::{CallBegun, EndRecord, Header, Language, RunJournal, Verdict, raw_json};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::Effect;
use ptc_calls::tools::CallTarget;
use std::sync::Arc;

/// What a journal of a script begins with.
#[derive(Clone, Copy, Debug)]
pub struct JournaledScript<'s> {
    /// Its text.
    pub program: &'s str,
    /// Its name in diagnostics.
    pub source_name: &'s str,
    /// Limit of its output, which is part of what the run computes.
    pub output_bytes: usize,
}

/// Name of the limit of the output in the header of a journal.
const OUTPUT: &str = "output_bytes";

/// Limit of the output of a script.
pub(crate) fn output_bytes(header: &Header) -> Option<usize> {
    header.rendering.get(OUTPUT).and_then(|bytes| usize::try_from(*bytes).ok())
}

impl ToolBroker {
    /// Begins the journal of a script if runs are recorded, or goes on with the one that is replayed.
    pub fn begin_journal(
        &self,
        account: &RunAccount,
        script: JournaledScript<'_>,
        replayed: Option<Arc<RunJournal>>,
    ) {
        let journal = replayed.or_else(|| {
            let recorder = self.recorder()?;
            let servers = header::servers(Some(recorder), &self.catalog().snapshot());
            let header = Header {
                source_name: script.source_name.to_owned(),
                rendering: [(OUTPUT.to_owned(), script.output_bytes as u64)].into(),
                owner: account.asker().token().map(str::to_owned),
                under_policy: self.policy().current().is_some(),
                ..header::begun(Language::Python, script.program, account.limits(), servers)
            };
            RunJournal::written(Some(recorder), None, header, None).map(Arc::new)
        });
        if let Some(journal) = journal {
            journal.number_calls();
            account.set_journal(journal);
        }
    }

    /// Enters a call into the journal of its script; `None` if there is none.
    pub(super) fn journaled_call(
        &self,
        account: &RunAccount,
        (server, target): (&str, &CallTarget),
        arguments: &str,
    ) -> Option<JournaledCall> {
        let journal = account.journal()?;
        let args = raw_json(arguments.as_bytes())?;
        let seq = journal.next_number()?;
        let (tool, subject, effect) = match target {
            CallTarget::Tool(name) => {
                let known = self.catalog().snapshot().tool(server, name).map(|tool| tool.effect());
                (&**name, None, known.unwrap_or(Effect::Unknown))
            }
            other => (other.method(), other.subject().map(str::to_owned), Effect::Read),
        };
        let verdict = journal.call(CallBegun {
            seq,
            server: server.to_owned(),
            tool: tool.to_owned(),
            subject,
            effect: effect.name().to_owned(),
            args,
            fuel: 0,
        });
        let label = format!("{server}/{tool}");
        Some(JournaledCall { journal: journal.clone(), seq, verdict, label })
    }
}

/// A call of a script in the journal of its run.
pub(super) struct JournaledCall {
    journal: Arc<RunJournal>,
    seq: u64,
    verdict: Verdict,
    label: String,
}

/// Carries a call out, or answers it from the recording of its run. `prepared` is the call up to the point where it would
/// leave: a replayed one takes the same steps until then.
pub(super) async fn settle(
    journaled: Option<JournaledCall>,
    prepared: impl Future<Output = Result<PreparedCall, CallError>>,
) -> Result<CallPayload, CallError> {
    let sent = async |prepared: Result<PreparedCall, CallError>| Ok(prepared?.send().await?.settled());
    let prepared = prepared.await;
    let Some(JournaledCall { journal, seq, verdict, label }) = journaled else { return sent(prepared).await };
    match verdict {
        Verdict::Live | Verdict::Again => {
            let answer = sent(prepared).await;
            let recorded = Some(answer.as_ref().map_or_else(CallError::recorded, CallPayload::recorded));
            journal.end(|| EndRecord { seq, fuel: 0, answer: recorded, at_once: false });
            answer
        }
        Verdict::Replayed => {
            let answer = journal.recorded_answer(seq).await;
            match prepared {
                Ok(prepared) => prepared.replayed(answer).map(CallResponse::settled),
                // It was not sent then, either.
                Err(_) => CallPayload::from_recorded(answer),
            }
        }
        Verdict::NotRecorded | Verdict::Diverged => {
            Err(refuse(prepared?.into_open().1, WorldFault::not_recorded(&label)).into())
        }
    }
}
