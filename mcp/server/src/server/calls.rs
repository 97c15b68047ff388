//! Tracks the tool calls of one connection from admission to answer: waiting, progress, cancellation, questions to the
//! client, and runs that go on without their request.
//!
//! One connection owns it, so nothing here is shared or locked. [`super::gate`] decides when a job may start.

use super::detached::{AwaitedTask, Detach, DetachedRun, Handle, HandleKind, Watcher};
use super::gate::{Flow, JobPermit, PermitRequest, QueueFull, QueueHandle, Tenant};
use super::handler::{AcceptedCall, Handler, Ticket};
use super::input_required::{
    AttachedRequest, CallKey, ClientRequests, InputRequiredCall, JobReporter, ParkedCall, ParkedCalls,
    ResumedCall, input_requests, input_required,
};
use super::mailbox::{Event, Mailbox, Slot};
use super::outbox::{Outbox, Route};
use super::progress::{ProgressFeed, ProgressReporter};
use crate::answer::RefusalReason;
use crate::protocol::{Id, RpcError, ServerMessage};
use crate::tools::{CallOwner, Cancel, Job, Started};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::asker::ClientIdentity;
use ptc_calls::journal::RunKeeper;
use ptc_upstream::{CallingClient, ClientTag, Offered, ServedClient};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The calls of one connection. Dropping it cancels them.
pub(super) struct Calls {
    /// The handler that writes answers.
    pub(super) handler: Arc<Handler>,
    owner: CallOwner,
    gate: QueueHandle,
    /// Where jobs report.
    pub(super) mailbox: Arc<Mailbox>,
    calls: HashMap<Slot, Accepted>,
    /// Ids that have neither been answered nor cancelled.
    ids: HashMap<Id<'static>, Slot>,
    next: u64,
    /// Calls with progress that their clients have not been sent.
    unreported: Vec<Slot>,
    /// The calling client, where a process has several clients or its client is stateless.
    caller: Option<CallingClient>,
    /// Runs that wait for their clients to call again.
    parked: Arc<ParkedCalls>,
    /// Calls that are to go on without their requests, and when.
    detaching: BTreeSet<(Instant, Slot)>,
    /// Tasks that the client has asked for, if it is notified of their changes.
    pub(super) begun: Vec<Arc<DetachedRun>>,
    pub(super) follows_tasks: bool,
}

struct Accepted {
    /// `None` once it was cancelled: nothing more is sent for it.
    id: Option<Id<'static>>,
    state: CallState,
    progress: Option<Arc<ProgressFeed>>,
    /// Its run, if it can go on without this request.
    run: Option<InputRequiredCall>,
    /// Its identity, if its client is asked in responses.
    key: Option<CallKey>,
    /// What it becomes when it goes on without its request.
    handle: Option<Box<Handle>>,
}

enum CallState {
    /// Waits for a permit.
    Waiting(Box<AcceptedCall>, PermitRequest),
    Started(StartedJob),
    /// It goes on without its request, which is answered once that is stored.
    HandedOver(Ticket, Arc<DetachedRun>),
    /// The request waits for the end of a call that goes on without its own.
    Awaiting(AwaitedTask),
}

/// What is needed of a job that was started.
#[derive(Default)]
pub(super) struct StartedJob {
    /// `None` once it was cancelled.
    pub(super) cancel: Option<Cancel>,
    keeper: Option<RunKeeper>,
    memo: Option<String>,
    /// It has done what it does: it is not cancelled any more.
    is_settled: bool,
}

impl StartedJob {
    fn new(started: Started, memo: Option<String>) -> StartedJob {
        StartedJob { cancel: Some(started.cancel), keeper: started.keeper, memo, is_settled: false }
    }
}

impl Accepted {
    fn new(id: Id<'static>, state: CallState) -> Accepted {
        Accepted { id: Some(id), state, progress: None, run: None, key: None, handle: None }
    }
}

impl Calls {
    /// No calls yet. Runs that wait for their clients are stored in `parked`.
    pub(super) fn new(
        handler: Arc<Handler>,
        owner: CallOwner,
        tenant: &Arc<Tenant>,
        flow: Arc<Flow>,
        parked: Arc<ParkedCalls>,
    ) -> Calls {
        let mailbox = Arc::<Mailbox>::default();
        Calls {
            handler,
            owner,
            gate: tenant.join(flow, mailbox.clone()),
            mailbox,
            calls: HashMap::new(),
            ids: HashMap::new(),
            next: 0,
            unreported: Vec::new(),
            caller: None,
            parked,
            detaching: BTreeSet::new(),
            begun: Vec::new(),
            follows_tasks: false,
        }
    }

    /// Sets the calling client, and the channel on which it is asked, if it can be.
    pub(super) fn set_caller(
        &mut self,
        tag: ClientTag,
        identity: ClientIdentity,
        asked: Option<Arc<ClientRequests>>,
    ) {
        let asked = asked.map(|asked| asked as Arc<dyn ServedClient>);
        let (owner, offered) = (self.owner.0, Offered::default());
        self.caller = Some(CallingClient { tag, owner, identity, offered, asked });
    }

    /// True while the request with this id is running or waiting.
    pub(super) fn contains(&self, id: &Id<'_>) -> bool {
        self.ids.contains_key(id.as_json())
    }

    /// How many answers are owed.
    pub(super) fn in_flight(&self) -> usize {
        self.ids.len()
    }

    /// Which queue has no room for another call, if one is full.
    pub(super) fn full(&self) -> Option<QueueFull> {
        self.gate.full()
    }

    /// Admits a call with a message of `bytes` bytes: it starts at once, or waits. It hands the ticket back when there is
    /// no room.
    pub(super) fn admit(
        &mut self,
        mut call: Box<AcceptedCall>,
        bytes: usize,
        out: &mut impl Outbox,
    ) -> Result<(), (Ticket, QueueFull)> {
        let full = self.full();
        if full == Some(QueueFull::Server) {
            return Err((call.ticket, QueueFull::Server));
        }
        let (slot, memory_bytes) = (self.next_slot(), call.job.memory_bytes);
        let permit = self.gate.try_permit(memory_bytes);
        let request = PermitRequest { slot, queued_bytes: bytes, memory_bytes };
        match full {
            _ if permit.is_some() => {}
            None => self.gate.request_permit(request),
            Some(_) => {
                if let Err(full) = self.gate.displace_last(request) {
                    return Err((call.ticket, full));
                }
            }
        }
        let id = call.ticket.id.clone();
        self.ids.insert(id.clone(), slot);
        let (progress, key) = (call.progress.take().map(ProgressFeed::new), call.key.take());
        let accepted = |state| Accepted { progress, key, ..Accepted::new(id, state) };
        match permit {
            Some(permit) => {
                self.calls.insert(slot, accepted(CallState::Started(StartedJob::default())));
                self.run(slot, *call, permit, out);
            }
            None => {
                self.calls.insert(slot, accepted(CallState::Waiting(call, request)));
            }
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Slot {
        let slot = Slot(self.next);
        self.next += 1;
        slot
    }

    /// Goes on with a run after its client was asked. The run still has its permit. Returns false, and answers
    /// with an error, when there is no such run.
    pub(super) fn resume(&mut self, call: ResumedCall, out: &mut impl Outbox) -> bool {
        let ResumedCall { ticket, progress, offered, mut key, state, responses, detach } = call;
        let parked = match self.parked.take(&state, self.owner, &mut key) {
            Ok(parked) => parked,
            Err(wrong) => {
                self.handler.reject(ticket, &RpcError::invalid_params(wrong.message()), out);
                return false;
            }
        };
        let (run, job, asked) = parked.resume();
        let (slot, id) = (self.next_slot(), ticket.id.clone());
        let (feed, mailbox) = (progress.map(ProgressFeed::new), self.mailbox.clone());
        let progress = reporter(slot, &mailbox, feed.as_ref());
        let request = AttachedRequest { slot, ticket, mailbox, progress, offered };
        self.ids.insert(id.clone(), slot);
        let state = CallState::Started(job);
        let call =
            Accepted { progress: feed, run: Some(run.clone()), key: Some(key), ..Accepted::new(id, state) };
        self.calls.insert(slot, call);
        self.detach_later(slot, detach);
        run.attach(Box::new(request), &self.handler);
        run.answered(asked, responses);
        true
    }

    /// Answers a call with the open questions, and parks its run until the client calls again.
    fn park(&mut self, slot: Slot, out: &mut impl Outbox) {
        let Some(Accepted {
            id: Some(_),
            state: CallState::Started(job),
            run: Some(run),
            key: Some(key),
            ..
        }) = self.calls.get_mut(&slot)
        else {
            return;
        };
        let asked = run.questions();
        if asked.is_empty() {
            return;
        }
        // Without a request the run has ended; [`Event::Ended`] follows.
        let Some(mut request) = run.detach() else { return };
        let (owner, key, since) = (self.owner, key.digest(), Instant::now());
        let (run, job) = (run.clone(), std::mem::take(job));
        let requests = input_requests(&asked);
        let parked = ParkedCall { owner, key, run, job, asked, since };
        match self.parked.park(parked, self.gate.most_jobs()) {
            Ok(state) => {
                let progress = self.calls.remove(&slot).and_then(|call| call.progress);
                self.ids.remove(request.ticket.id.as_json());
                if let Some(progress) = progress {
                    let id = &request.ticket.id;
                    progress.flush(since, |report| out.send(Route::Request(id), report));
                }
                let answer = input_required(requests, state);
                for message in self.handler.finish(&mut request.ticket, &answer) {
                    out.send(Route::Request(&request.ticket.id), message);
                }
            }
            Err((parked, why)) => {
                let (run, job, asked) = parked.resume();
                if let Some(Accepted { state: CallState::Started(started), .. }) = self.calls.get_mut(&slot) {
                    *started = job;
                }
                run.attach(request, &self.handler);
                run.refuse(&asked, why.message());
            }
        }
    }

    /// Starts no further job while `held`: the client does not read its answers.
    pub(super) fn hold(&mut self, held: bool) {
        self.gate.hold(held);
    }

    /// Cancels a request for its client. False if there is no such request, or if its job has done what it does: its answer
    /// follows.
    pub(super) fn cancel_for_client(&mut self, id: &Id<'_>) -> bool {
        let call = self.ids.get(id.as_json()).and_then(|slot| self.calls.get(slot));
        let may_cancel = match call.map(|call| &call.state) {
            None => false,
            Some(CallState::Started(job)) => !job.is_settled,
            Some(_) => true,
        };
        if may_cancel {
            self.cancel(id);
        }
        may_cancel
    }

    /// Cancels a request: a waiting one is withdrawn, a running job is stopped. An unknown id is ignored.
    pub(super) fn cancel(&mut self, id: &Id<'_>) {
        let Some(slot) = self.ids.remove(id.as_json()) else { return };
        let Some(call) = self.calls.get_mut(&slot) else { return };
        call.id = None;
        call.progress = None;
        match &mut call.state {
            CallState::Waiting(..) => {
                self.calls.remove(&slot);
                self.gate.withdraw(slot);
            }
            // Its permit is free once the job has really ended.
            CallState::Started(job) => {
                if let Some(cancel) = job.cancel.take() {
                    cancel();
                }
            }
            CallState::HandedOver(_, run) => {
                self.handler.detached.remove(run);
                self.calls.remove(&slot);
            }
            CallState::Awaiting(_) => drop(self.calls.remove(&slot)),
        }
    }

    /// Handles an event of a job.
    pub(super) fn handle(&mut self, slot: Slot, event: Event, now: Instant, out: &mut impl Outbox) {
        match event {
            Event::Admitted(permit) => self.start(slot, permit, out),
            Event::Displaced => {
                self.gate.forget(slot);
                let Some(call) = self.calls.remove(&slot) else { return };
                if let (Some(id), CallState::Waiting(waiting, _)) = (call.id, call.state) {
                    self.ids.remove(id.as_json());
                    self.handler.refuse(
                        waiting.ticket,
                        RefusalReason::Busy,
                        QueueFull::Tenant.message(),
                        out,
                    );
                }
            }
            Event::Progress => {
                let Some(call) = self.calls.get(&slot) else { return };
                let (Some(progress), Some(id)) = (&call.progress, &call.id) else { return };
                let is_sent =
                    !self.gate.held && progress.report(now, |report| out.send(Route::Request(id), report));
                if !is_sent && !self.unreported.contains(&slot) {
                    self.unreported.push(slot);
                }
            }
            Event::Settled => {
                if let Some(Accepted { state: CallState::Started(job), .. }) = self.calls.get_mut(&slot) {
                    job.is_settled = true;
                }
            }
            Event::InputRequired => self.park(slot, out),
            Event::Detached => self.follow(slot, out),
            Event::Ended(messages) => {
                let Some(Accepted { id: Some(id), progress, .. }) = self.calls.remove(&slot) else { return };
                self.ids.remove(id.as_json());
                if let Some(progress) = progress {
                    progress.flush(now, |report| out.send(Route::Request(&id), report));
                }
                let defect = || vec![ServerMessage::error(Some(&id), &RpcError::internal())];
                for message in messages.unwrap_or_else(defect) {
                    out.send(Route::Request(&id), message);
                }
            }
        }
    }

    /// When [`Calls::report`] has something to send.
    pub(super) fn next_report(&self) -> Option<Instant> {
        if self.gate.held {
            return None;
        }
        let due = |slot: &Slot| Some(self.calls.get(slot)?.progress.as_ref()?.due());
        let detached = self.detaching.first().map(|(due, _)| *due);
        self.unreported.iter().filter_map(due).chain(detached).min()
    }

    /// Sends progress that was held back and is due now.
    pub(super) fn report(&mut self, now: Instant, out: &mut impl Outbox) {
        let calls = &self.calls;
        self.unreported.retain(|slot| {
            let Some(Accepted { id: Some(id), progress: Some(progress), .. }) = calls.get(slot) else {
                return false;
            };
            !progress.report(now, |report| out.send(Route::Request(id), report))
        });
        while let Some(&(due, slot)) = self.detaching.first().filter(|(due, _)| *due <= now) {
            self.detaching.remove(&(due, slot));
            self.detach(slot, now, out);
        }
    }

    /// Starts a waiting call with its permit. A permit that cannot be used is dropped, which frees it.
    fn start(&mut self, slot: Slot, permit: JobPermit, out: &mut impl Outbox) {
        self.gate.forget(slot);
        let Some(call) = self.calls.get_mut(&slot) else { return };
        if self.gate.held {
            if let CallState::Waiting(_, request) = &call.state {
                self.gate.requeue(*request, permit);
            }
            return;
        }
        let started = CallState::Started(StartedJob::default());
        if let CallState::Waiting(waiting, _) = std::mem::replace(&mut call.state, started) {
            self.run(slot, *waiting, permit, out);
        }
    }

    /// Starts the job of an accepted call.
    fn run(&mut self, slot: Slot, accepted: AcceptedCall, permit: JobPermit, out: &mut impl Outbox) {
        let Some(call) = self.calls.get_mut(&slot) else { return };
        let AcceptedCall { ticket, job, offered, detach, .. } = accepted;
        let caller = self.caller.clone().map(|caller| CallingClient { offered, ..caller });
        let memo = job.memo.clone();
        let later = match detach {
            Some(Detach::AtOnce(handle)) => {
                return self.start_detached(slot, (ticket, job, memo), caller, handle, permit, out);
            }
            Some(Detach::Later(handle, after)) => Some((handle, after)),
            None => None,
        };
        let (handler, mailbox) = (self.handler.clone(), self.mailbox.clone());
        let (progress, answered) = (reporter(slot, &mailbox, call.progress.as_ref()), false);
        let asks_in_responses = call.key.is_some() && caller.is_some();
        let offered = caller.as_ref().map(|caller| caller.offered).unwrap_or_default();
        let run = InputRequiredCall::new(AttachedRequest { slot, ticket, mailbox, progress, offered });
        call.run = Some(run.clone());
        let caller = match asks_in_responses {
            true => caller.map(|caller| CallingClient { asked: Some(run.requests.clone()), ..caller }),
            false => caller,
        };
        let reporter = JobReporter { call: run, handler, caller, permit: Some(permit), answered };
        call.state = CallState::Started(StartedJob::new((job.start)(Box::new(reporter)), memo));
        self.detach_later(slot, later);
    }

    /// Lets a call go on without its request after this time, if it still runs then.
    fn detach_later(&mut self, slot: Slot, later: Option<(Handle, Duration)>) {
        let Some((handle, after)) = later else { return };
        if let (Some(call), Some(due)) = (self.calls.get_mut(&slot), Instant::now().checked_add(after)) {
            call.handle = Some(Box::new(handle));
            self.detaching.insert((due, slot));
        }
    }

    /// Starts a call without its request, which is answered at once.
    fn start_detached(
        &mut self,
        slot: Slot,
        (ticket, job, memo): (Ticket, Job, Option<String>),
        caller: Option<CallingClient>,
        handle: Handle,
        permit: JobPermit,
        out: &mut impl Outbox,
    ) {
        let (call, answer, offered) =
            (InputRequiredCall::vacant("question"), ticket.unrecorded(), handle.offered);
        let detached = self.handler.detached.clone();
        let run = match detached.begin(self.owner, handle, &call, Some(ticket), None) {
            Ok(run) => run,
            Err((refused, ticket)) => {
                self.calls.remove(&slot);
                self.ids.remove(answer.id.as_json());
                let ticket = ticket.unwrap_or(answer);
                return self.handler.refuse(ticket, RefusalReason::Busy, refused.message(), out);
            }
        };
        call.detach_to(&run);
        let (tag, owner, identity) = (ClientTag::unique(), self.owner.0, ClientIdentity::default());
        let caller = caller.unwrap_or(CallingClient { tag, owner, identity, offered, asked: None });
        let caller = Some(CallingClient { asked: Some(call.requests.clone()), ..caller });
        let (handler, permit, answered) = (self.handler.clone(), Some(permit), false);
        let reporter = JobReporter { call, handler, caller, permit, answered };
        let Started { cancel, keeper } = (job.start)(Box::new(reporter));
        run.set_cancel(Some(cancel));
        self.hand_over(slot, answer, run, (keeper, memo), out);
    }

    /// Lets a started call go on without its request. If there is no room for that, or it has ended, it stays as it is.
    fn detach(&mut self, slot: Slot, now: Instant, out: &mut impl Outbox) {
        let Some(Accepted {
            id: Some(_),
            state: CallState::Started(job),
            run: Some(call),
            handle,
            progress,
            ..
        }) = self.calls.get_mut(&slot)
        else {
            return;
        };
        let (Some(handle), detached) = (handle.take(), self.handler.detached.clone()) else { return };
        let Ok(run) = detached.begin(self.owner, *handle, call, None, None) else { return };
        let Some(request) = call.detach_to(&run) else {
            // It has ended, and its answer is on its way.
            return detached.remove(&run);
        };
        let AttachedRequest { ticket, .. } = *request;
        let (answer, job) = (ticket.unrecorded(), std::mem::take(job));
        if let Some(progress) = progress.take() {
            progress.flush(now, |report| out.send(Route::Request(&answer.id), report));
        }
        run.set_ticket(Some(ticket));
        run.set_cancel(job.cancel);
        self.hand_over(slot, answer, run, (job.keeper, job.memo), out);
    }

    /// Answers a request with what its call has become, once that is stored.
    fn hand_over(
        &mut self,
        slot: Slot,
        ticket: Ticket,
        run: Arc<DetachedRun>,
        (keeper, memo): (Option<RunKeeper>, Option<String>),
        out: &mut impl Outbox,
    ) {
        let Some(call) = self.calls.get_mut(&slot) else { return };
        let stored = self.handler.detached.store(&run, keeper, memo);
        call.state = CallState::HandedOver(ticket, run);
        match stored {
            None => self.follow(slot, out),
            Some(stored) => {
                let mailbox = self.mailbox.clone();
                tasks::spawn(TaskOwner::Connection, async move {
                    stored.await;
                    mailbox.push((slot, Event::Detached));
                });
            }
        }
    }

    /// Waits for the end of a call that goes on without its request.
    pub(super) fn await_task(&mut self, awaited: AwaitedTask) {
        let (slot, id) = (self.next_slot(), awaited.id.clone());
        awaited.run.watch(Watcher { mailbox: Arc::downgrade(&self.mailbox), slot: Some(slot) });
        self.ids.insert(id.clone(), slot);
        self.calls.insert(slot, Accepted::new(id, CallState::Awaiting(awaited)));
        // It may be over, or ask something.
        self.mailbox.push((slot, Event::Detached));
    }

    /// A call that goes on without its request was stored or has changed.
    fn follow(&mut self, slot: Slot, out: &mut impl Outbox) {
        let Some(call) = self.calls.get_mut(&slot) else { return };
        let is_done = match &mut call.state {
            CallState::HandedOver(ticket, run) => {
                self.handler.handed_over(ticket, run, out);
                true
            }
            CallState::Awaiting(awaited) => awaited.follow(out),
            CallState::Waiting(..) | CallState::Started(_) => false,
        };
        if is_done && let Some(Accepted { id: Some(id), state, .. }) = self.calls.remove(&slot) {
            self.ids.remove(id.as_json());
            if let CallState::HandedOver(_, run) = state {
                let is_followed = self.follows_tasks && run.kind == HandleKind::Requested;
                self.begun.extend(is_followed.then_some(run));
            }
        }
    }
}

/// Where a job reports its progress, if its client wants any.
fn reporter(
    slot: Slot,
    mailbox: &Arc<Mailbox>,
    feed: Option<&Arc<ProgressFeed>>,
) -> Option<Arc<ProgressReporter>> {
    let mailbox = mailbox.clone();
    feed.map(|feed| Arc::new(ProgressReporter { slot, mailbox, feed: feed.clone() }))
}

impl Drop for Calls {
    // No one reads the answers any more.
    fn drop(&mut self) {
        for (_, call) in self.calls.drain() {
            match call.state {
                CallState::Started(StartedJob { cancel: Some(cancel), .. }) => cancel(),
                // Its client does not know it.
                CallState::HandedOver(_, run) => self.handler.detached.remove(&run),
                _ => {}
            }
        }
    }
}
