//! Records the calls of a Lisp program in its journal, the log of the run on disk, and answers them from there when the
//! run is replayed or resumed.
//!
//! Answers are delivered only while the whole program waits, so that the order of events decides everything.

use super::{Execution, InFlight};
use crate::broker::header;
use crate::broker::{CallHistory, CallPayload, Permit, PreparedCall, WorldFault};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::environment::CompileEnvironment;
use crate::guest::{CallId, Guest, Progress, Reply};
use ptc_calls::journal::{
    Answer, AskedRecord, CallBegun, Due, EndRecord, ErrorRecord, Header, Language, PreludeRecord, Recorder,
    RunJournal, ServerRecord, Verdict, raw_json,
};
use ptc_calls::policy::CallOrigins;
use ptc_calls::run::client::asker::ClientIdentity;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, FailureKind};
use ptc_calls::tools::{Catalog, SnapshotMode, UpstreamTool};
use ptc_vm::{CallId as HostCall, Class, Context, Reason, Span};
use std::sync::Arc;

/// The journal of a program, and what waits for it.
pub(super) struct Journaled {
    pub(super) journal: Arc<RunJournal>,
    pub(super) is_replay: bool,
    /// Replies that came while the program was running.
    pub(super) undelivered: Vec<(CallId, Reply)>,
    /// All branches of the program wait.
    pub(super) is_blocked: bool,
    /// The catalog version of the tool lists in the journal.
    version: u64,
    pub(super) numbers: CallNumbers,
}

/// The numbers of calls in the journal, which begin with each run: a session that is restored has fewer calls behind it
/// than it had, since programs that failed do not run again.
#[derive(Clone, Copy)]
pub(super) struct CallNumbers {
    /// The first call of the run.
    first: HostCall,
}

impl CallNumbers {
    /// Those of a run with this first call.
    pub(super) fn begin(first: HostCall) -> CallNumbers {
        CallNumbers { first }
    }

    pub(super) fn seq(self, call: HostCall) -> u64 {
        call.0.saturating_sub(self.first.0)
    }

    fn call(self, seq: u64) -> HostCall {
        HostCall(self.first.0.saturating_add(seq))
    }
}

/// The position of a host call in the journal of its run and in the text of its program.
#[derive(Clone, Copy)]
pub(in crate::guest::lisp) struct CallPosition<'j> {
    journal: Option<&'j RunJournal>,
    seq: u64,
    place: Option<Span>,
    /// Where its arguments come from, if the run has labels on values.
    origins: Option<&'j Arc<CallOrigins>>,
}

impl<'j> CallPosition<'j> {
    /// The position of this call, which stands at this place of the program's text.
    pub(super) fn new(
        journaled: Option<&'j Journaled>,
        call: HostCall,
        place: Option<Span>,
        origins: Option<&'j Arc<CallOrigins>>,
    ) -> CallPosition<'j> {
        let seq = journaled.map_or(call.0, |journaled| journaled.numbers.seq(call));
        CallPosition { journal: journaled.map(|journaled| &*journaled.journal), seq, place, origins }
    }

    /// The arguments of the call, if it was entered in an earlier process: it is made with these.
    pub(in crate::guest::lisp) fn entered(self) -> Option<Arc<str>> {
        self.journal?.entered(self.seq)
    }

    /// Fuel that the program has used.
    fn fuel(cx: &Context) -> u64 {
        cx.fuel.used()
    }

    /// Enters a call with its arguments, and says in its permit which call it is for. Server and subject name what is
    /// called.
    ///
    /// # Errors
    /// A recording does not have the call.
    pub(in crate::guest::lisp) fn departs(
        self,
        cx: &Context,
        called: (&str, Option<&str>),
        permit: &mut Permit,
        arguments: &str,
    ) -> Result<Verdict, WorldFault> {
        permit.seq = self.journal.map(|_| self.seq);
        permit.place = self.place;
        permit.origins = self.origins.cloned();
        let verdict = self.verdict(cx, called, permit.tool(), arguments);
        permit.history = match verdict {
            Ok(Verdict::Replayed) => CallHistory::Answered,
            Ok(Verdict::Again) => CallHistory::Entered,
            _ => CallHistory::New,
        };
        verdict
    }

    fn verdict(
        self,
        cx: &Context,
        (server, subject): (&str, Option<&str>),
        tool: &UpstreamTool,
        arguments: &str,
    ) -> Result<Verdict, WorldFault> {
        let Some(journal) = self.journal else { return Ok(Verdict::Live) };
        // Arguments are encoded as JSON of one line.
        let Some(args) = raw_json(arguments.as_bytes()) else { return Ok(Verdict::Live) };
        let call = CallBegun {
            seq: self.seq,
            server: server.to_owned(),
            tool: tool.name.to_string(),
            subject: subject.map(str::to_owned),
            effect: tool.effect().name().to_owned(),
            args,
            fuel: CallPosition::fuel(cx),
        };
        let label = call.label();
        match journal.call(call) {
            Verdict::NotRecorded => Err(WorldFault::not_recorded(&label)),
            verdict => Ok(verdict),
        }
    }

    /// Enters a call that was refused before it left.
    pub(in crate::guest::lisp) fn refused(self, cx: &Context, fault: &WorldFault) {
        if let Some(journal) = self.journal {
            let (seq, fuel) = (self.seq, CallPosition::fuel(cx));
            journal.end(|| EndRecord { seq, fuel, answer: Some(fault.recorded()), at_once: true });
        }
    }

    /// Enters a question that the host answers at once. Returns the recorded answer instead, if there is one.
    pub(in crate::guest::lisp) fn asked(
        self,
        cx: &Context,
        form: &str,
        answer: impl FnOnce() -> serde_json::Value,
    ) -> Option<serde_json::Value> {
        let journal = self.journal?;
        let (seq, form, fuel) = (self.seq, form.to_owned(), CallPosition::fuel(cx));
        journal.asked(AskedRecord { seq, form, fuel, answer: answer() })
    }
}

impl Journaled {
    /// The journal of a program that is about to be compiled.
    pub(super) fn begin(
        lisp: &Lisp,
        environment: &CompileEnvironment,
        source: &str,
        options: &mut RunOptions,
        asker: Option<&ClientIdentity>,
    ) -> Option<Journaled> {
        let catalog = lisp.broker.catalog().snapshot();
        let keep = options.keep.take();
        let journal = match options.journal.take() {
            Some(journal) => {
                if journal.is_collecting() {
                    journal.begin(header(None, lisp, &catalog, environment, source, options, asker));
                }
                journal
            }
            None => {
                let (recorder, durable) = (lisp.broker.recorder(), lisp.broker.durable());
                if recorder.is_none() && durable.is_none() {
                    return None;
                }
                let texts = environment.prelude().zip(durable).map(|(prelude, durable)| {
                    durable.share(prelude, || prelude.sources().map(|source| source.text.clone()).collect())
                });
                let mut header = header(recorder, lisp, &catalog, environment, source, options, asker);
                for (prelude, (digest, _)) in
                    header.preludes.iter_mut().zip(texts.iter().flat_map(|texts| texts.iter()))
                {
                    prelude.text.clone_from(digest);
                }
                Arc::new(RunJournal::written(recorder, durable, header, texts)?)
            }
        };
        if let Some(keep) = keep {
            keep.begun(&journal);
        }
        let is_replay = journal.is_replay();
        let (undelivered, version) = (Vec::new(), catalog.version());
        let numbers = CallNumbers::begin(HostCall(0));
        Some(Journaled { journal, is_replay, undelivered, is_blocked: false, version, numbers })
    }

    /// Says how its calls are numbered, once that is known.
    pub(super) fn number(&mut self, numbers: CallNumbers) {
        self.numbers = numbers;
    }

    /// Enters tool lists that are new, or publishes those that a replay has from here on.
    pub(super) fn follow_lists(&mut self, lisp: &Lisp) {
        let catalog = lisp.broker.catalog();
        if self.is_replay {
            for ServerRecord { server, tools, .. } in self.journal.tools_due() {
                match tools.and_then(|digest| header::list_from(&self.journal.shared(&digest)?)) {
                    Some(list) => catalog.publish(&server, list, SnapshotMode::Live),
                    None => catalog.outdate(&server),
                }
            }
            return;
        }
        let recorder = lisp.broker.recorder();
        let now = catalog.snapshot();
        if std::mem::replace(&mut self.version, now.version()) != now.version() {
            header::servers(recorder, &now).into_iter().for_each(|server| self.journal.tools(server));
        }
    }
}

fn header(
    recorder: Option<&Recorder>,
    lisp: &Lisp,
    catalog: &Catalog,
    environment: &CompileEnvironment,
    source: &str,
    options: &RunOptions,
    asker: Option<&ClientIdentity>,
) -> Header {
    let preludes =
        environment.prelude().into_iter().flat_map(|prelude| prelude.sources().zip(prelude.digests()));
    Header {
        source_name: options.source_name.to_string(),
        context: options.context.as_deref().and_then(|context| raw_json(context.as_bytes())),
        strict_data: options.strict_data,
        now_ms: options.now_ms,
        rendering: options.rendering(),
        owner: asker.and_then(|asker| asker.token.as_deref()).map(str::to_owned),
        scopes: asker.map(|asker| asker.scopes.to_vec()).unwrap_or_default(),
        under_policy: lisp.broker.policy().current().is_some(),
        preludes: preludes
            .map(|(source, digest)| PreludeRecord {
                name: source.name.clone(),
                text: match recorder {
                    Some(recorder) => recorder.store(source.text.as_bytes()),
                    None => digest.to_owned(),
                },
                origin: source.origin.clone(),
            })
            .collect(),
        ..header::begun(Language::Lisp, source, &options.limits, header::servers(recorder, catalog))
    }
}

impl Execution {
    /// Takes new tool lists into account.
    pub(super) fn follow_lists(&mut self) {
        if let Some(journaled) = &mut self.journaled {
            journaled.follow_lists(&self.lisp);
        }
    }

    /// Enters that a call waits.
    pub(super) fn note_wait(&self, call: HostCall) {
        if let Some(journaled) = &self.journaled {
            journaled.journal.wait(journaled.numbers.seq(call), self.isolate.fuel_used());
        }
    }

    /// Enters the answer that the program is about to receive; `None`: a call that waited goes on.
    pub(super) fn note_end(&self, call: HostCall, answer: impl FnOnce() -> Option<Answer>) {
        if let Some(journaled) = &self.journaled {
            let (seq, fuel) = (journaled.numbers.seq(call), self.isolate.fuel_used());
            journaled.journal.end(|| EndRecord { seq, fuel, answer: answer(), at_once: false });
        }
    }

    /// Enters a reply that is about to be delivered.
    pub(super) fn note_reply(&mut self, call: HostCall, reply: &Reply) {
        self.follow_lists();
        match reply {
            Reply::Answer(Ok(answer)) => self.note_end(call, || Some(answer.payload().recorded())),
            Reply::Permit(Err(error)) | Reply::Answer(Err(error)) | Reply::Payload(Err(error)) => {
                self.note_end(call, || Some(error.recorded()));
            }
            Reply::Permit(Ok(_)) | Reply::Started => self.note_end(call, || None),
            Reply::Looked(_) | Reply::Payload(Ok(_)) => {}
        }
    }

    /// Retains a call that has a recorded answer.
    pub(super) fn await_recorded(&mut self, call: HostCall, prepared: Option<PreparedCall>) {
        let tag = prepared.as_ref().map(PreparedCall::tag);
        let granted = prepared.as_ref().and_then(|prepared| prepared.granted().cloned());
        self.in_flight.insert(call, InFlight { call: tag, granted, prepared, task: None });
        let fuel = self.isolate.fuel_used();
        let at_once =
            self.journaled.as_ref().and_then(|it| it.journal.due_at_once(it.numbers.seq(call), fuel));
        if let Some(answer) = at_once {
            self.deliver_recorded(call, answer);
        }
    }

    /// The program goes on.
    pub(super) fn unblock(&mut self) {
        if let Some(journaled) = &mut self.journaled {
            journaled.is_blocked = false;
        }
    }

    /// All branches of the program wait. Delivers what has come for it, and returns whether anything has.
    pub(super) fn blocked(&mut self) -> bool {
        let Some(journaled) = &mut self.journaled else { return false };
        journaled.is_blocked = true;
        let undelivered = std::mem::take(&mut journaled.undelivered);
        if undelivered.is_empty() {
            return self.replay_due();
        }
        for (call, reply) in undelivered {
            self.answer(call, reply);
        }
        self.unblock();
        true
    }

    /// Delivers the recorded answers that are due; returns whether any was.
    fn replay_due(&mut self) -> bool {
        let Some(journaled) = self.journaled.as_deref().filter(|journaled| journaled.is_replay) else {
            return false;
        };
        let (journal, numbers) = (journaled.journal.clone(), journaled.numbers);
        let mut is_first = true;
        loop {
            self.follow_lists();
            match journal.due(self.isolate.fuel_used(), is_first) {
                Due::Answer(seq, answer) => self.deliver_recorded(numbers.call(seq), answer),
                Due::Proceed(seq) => {
                    // What the log has of it comes next, or the log is over.
                    let is_in_log = journal.is_answered_from_log();
                    if !is_in_log {
                        self.take_back(numbers.call(seq));
                    }
                    self.issue(numbers.call(seq), is_in_log || !journal.resumes());
                }
                Due::GoOn(departed) => {
                    self.go_on(&departed);
                    return true;
                }
                Due::Later | Due::Never | Due::Diverged => return !is_first,
            }
            is_first = false;
        }
    }

    pub(super) fn deliver_recorded(&mut self, call: HostCall, answer: Answer) {
        let Some(InFlight { granted, prepared, .. }) = self.in_flight.remove(&call) else {
            return self.undelivered(call);
        };
        let replayed = match prepared {
            Some(prepared) => prepared.replayed(answer).map(Some),
            None => CallPayload::from_recorded(answer).map(|_| None),
        };
        match replayed {
            Ok(Some(response)) => self.on_tool_response(call, granted.as_deref(), response),
            // A call that was never prepared has no answer but an error.
            Ok(None) => self.undelivered(call),
            Err(error) => self.on_call_error(call, granted.as_deref(), error),
        }
    }

    fn undelivered(&self, call: HostCall) {
        if let Some(journaled) = &self.journaled {
            journaled.journal.undelivered(journaled.numbers.seq(call));
        }
    }

    /// The end of a replay that has diverged, or that waits where its recording ends.
    pub(super) fn replay_over(&mut self, is_stuck: bool) -> Option<Progress> {
        const DIVERGED: FailureKind = FailureKind::new("replay_diverged", Class::RuntimeError);
        let Journaled { journal, is_replay: true, .. } = self.journaled.as_deref()? else { return None };
        let is_stuck = is_stuck && self.in_flight.values().all(|call| call.task.is_none());
        let message = match journal.divergence() {
            Some(divergence) => divergence,
            None if !is_stuck => return None,
            None => match journal.interrupted() {
                Some(ErrorRecord { reason, message }) => {
                    let interrupts = [Reason::Timeout, Reason::Cancelled];
                    let reason = interrupts.into_iter().find(|known| known.raw() == reason);
                    let failure = Failure::new(reason.map_or(DIVERGED, FailureKind::from), message);
                    return Some(Progress::Finished(self.end(Err(failure))));
                }
                None => "the recording ends while the program waits".to_owned(),
            },
        };
        Some(Progress::Finished(self.end(Err(Failure::new(DIVERGED, message)))))
    }
}
