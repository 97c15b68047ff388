//! The calls of one connection: which wait, which are started, and which still need an answer.
//!
//! One connection owns it, so nothing here is shared or locked. [`super::gate`] decides when a job may start.

use super::gate::{Flow, JobPermit, PermitRequest, QueueFull, QueueHandle, Tenant};
use super::handler::{AcceptedCall, Finished, Handler, Ticket};
use super::input_required::{
    AttachedRequest, CallKey, ClientRequests, InputRequiredCall, InputRequiredReporter, ParkedCall,
    ParkedCalls, ResumedCall, input_requests, input_required,
};
use super::mailbox::{Event, JobReporter, Mailbox, Slot};
use super::outbox::{Outbox, Route};
use super::progress::{ProgressFeed, ProgressReporter};
use crate::answer::RefusalReason;
use crate::protocol::{Id, RpcError, ServerMessage};
use crate::tools::{CallOwner, Cancel, Job, Reporter};
use ptc_runtime::asker::ClientIdentity;
use ptc_runtime::upstream::{CallingClient, ClientTag, Offered, ServedClient};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// The calls of one connection. Dropping it cancels them.
pub(super) struct Calls {
    handler: Arc<Handler>,
    owner: CallOwner,
    gate: QueueHandle,
    mailbox: Arc<Mailbox>,
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
}

struct Accepted {
    /// `None` once it was cancelled: nothing more is sent for it.
    id: Option<Id<'static>>,
    state: CallState,
    progress: Option<Arc<ProgressFeed>>,
    /// Its run and its identity, if its client is asked in responses.
    input_required: Option<(InputRequiredCall, CallKey)>,
}

enum CallState {
    /// Waits for a permit.
    Waiting(Box<Waiting>),
    /// `None` once the job was cancelled.
    Started(Option<Cancel>),
}

struct Waiting {
    ticket: Ticket,
    job: Job,
    request: PermitRequest,
    caller: Option<CallingClient>,
    key: Option<CallKey>,
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

    /// The handler that writes answers.
    pub(super) fn handler(&self) -> &Arc<Handler> {
        &self.handler
    }

    /// Where jobs report.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
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

    /// Admits a call with a message of `bytes` bytes. It hands the ticket back when there is no room.
    pub(super) fn admit(&mut self, call: AcceptedCall, bytes: usize) -> Result<(), (Ticket, QueueFull)> {
        let AcceptedCall { ticket, job, progress, offered, key } = call;
        let full = self.full();
        if full == Some(QueueFull::Server) {
            return Err((ticket, QueueFull::Server));
        }
        let slot = self.next_slot();
        let request = PermitRequest { slot, queued_bytes: bytes, memory_bytes: job.memory_bytes() };
        match full {
            None => self.gate.request_permit(request),
            Some(_) => {
                if let Err(full) = self.gate.displace_last(request) {
                    return Err((ticket, full));
                }
            }
        }
        let id = ticket.id.clone();
        self.ids.insert(id.clone(), slot);
        let caller = self.caller.clone().map(|caller| CallingClient { offered, ..caller });
        let state = CallState::Waiting(Box::new(Waiting { ticket, job, request, caller, key }));
        let progress = progress.map(ProgressFeed::new);
        self.calls.insert(slot, Accepted { id: Some(id), state, progress, input_required: None });
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
        let ResumedCall { ticket, progress, offered, mut key, state, responses } = call;
        let parked = match self.parked.take(&state, self.owner, &mut key) {
            Ok(parked) => parked,
            Err(wrong) => {
                self.handler.reject(ticket, &RpcError::invalid_params(wrong.message()), out);
                return false;
            }
        };
        let (run, cancel, asked) = parked.resume();
        let (slot, id) = (self.next_slot(), ticket.id.clone());
        let (feed, mailbox) = (progress.map(ProgressFeed::new), self.mailbox.clone());
        let progress = reporter(slot, &mailbox, feed.as_ref());
        let request = AttachedRequest { slot, ticket, mailbox, progress, offered };
        self.ids.insert(id.clone(), slot);
        let (state, input_required) = (CallState::Started(cancel), Some((run.clone(), key)));
        self.calls.insert(slot, Accepted { id: Some(id), state, progress: feed, input_required });
        run.attach(Box::new(request), &self.handler);
        run.answered(asked, responses);
        true
    }

    /// Answers a call with the open questions, and parks its run until the client calls again.
    fn park(&mut self, slot: Slot, out: &mut impl Outbox) {
        let Some(Accepted {
            id: Some(_),
            state: CallState::Started(cancel),
            input_required: Some((run, key)),
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
        let (run, cancel) = (run.clone(), cancel.take());
        let requests = input_requests(&asked);
        let parked = ParkedCall { owner, key, run, cancel, asked, since };
        match self.parked.park(parked, self.gate.most_jobs()) {
            Ok(state) => {
                let progress = self.calls.remove(&slot).and_then(|call| call.progress);
                self.ids.remove(request.ticket.id.as_json());
                if let Some(progress) = progress {
                    let id = &request.ticket.id;
                    progress.flush(since, |report| out.send(Route::Request(id), report));
                }
                let answer = input_required(requests, state);
                let Finished { answer, .. } = self.handler.finish(&mut request.ticket, &answer);
                out.send(Route::Request(&request.ticket.id), answer);
            }
            Err((parked, why)) => {
                let (run, cancel, asked) = parked.resume();
                if let Some(Accepted { state: CallState::Started(stop), .. }) = self.calls.get_mut(&slot) {
                    *stop = cancel;
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

    /// Cancels a request: a waiting one is withdrawn, a running job is stopped. An unknown id is ignored.
    pub(super) fn cancel(&mut self, id: &Id<'_>) {
        let Some(slot) = self.ids.remove(id.as_json()) else { return };
        let Some(call) = self.calls.get_mut(&slot) else { return };
        call.id = None;
        call.progress = None;
        match &mut call.state {
            CallState::Waiting(_) => {
                self.calls.remove(&slot);
                self.gate.withdraw(slot);
            }
            // Its permit is free once the job has really ended.
            CallState::Started(cancel) => {
                if let Some(cancel) = cancel.take() {
                    cancel();
                }
            }
        }
    }

    /// Handles an event of a job.
    pub(super) fn handle(&mut self, slot: Slot, event: Event, now: Instant, out: &mut impl Outbox) {
        match event {
            Event::Admitted(permit) => self.start(slot, permit),
            Event::Displaced => {
                self.gate.forget(slot);
                let Some(call) = self.calls.remove(&slot) else { return };
                if let (Some(id), CallState::Waiting(waiting)) = (call.id, call.state) {
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
                let is_sent = !self.gate.is_held()
                    && progress.report(now, |report| out.send(Route::Request(id), report));
                if !is_sent && !self.unreported.contains(&slot) {
                    self.unreported.push(slot);
                }
            }
            Event::InputRequired => self.park(slot, out),
            Event::Ended(finished) => {
                let Some(Accepted { id: Some(id), progress, .. }) = self.calls.remove(&slot) else { return };
                self.ids.remove(id.as_json());
                if let Some(progress) = progress {
                    progress.flush(now, |report| out.send(Route::Request(&id), report));
                }
                let Finished { log, answer } = finished.unwrap_or_else(|| Finished {
                    log: Vec::new(),
                    answer: ServerMessage::error(Some(&id), &RpcError::internal()),
                });
                for message in log {
                    out.send(Route::Request(&id), message);
                }
                out.send(Route::Request(&id), answer);
            }
        }
    }

    /// When [`Calls::report`] has something to send.
    pub(super) fn next_report(&self) -> Option<Instant> {
        if self.gate.is_held() {
            return None;
        }
        let due = |slot: &Slot| Some(self.calls.get(slot)?.progress.as_ref()?.due());
        self.unreported.iter().filter_map(due).min()
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
    }

    /// Starts a job with its permit. A permit that cannot be used is dropped, which frees it.
    fn start(&mut self, slot: Slot, permit: JobPermit) {
        self.gate.forget(slot);
        let Some(call) = self.calls.get_mut(&slot) else { return };
        if self.gate.is_held() {
            if let CallState::Waiting(waiting) = &call.state {
                self.gate.requeue(waiting.request, permit);
            }
            return;
        }
        let CallState::Waiting(waiting) = std::mem::replace(&mut call.state, CallState::Started(None)) else {
            return;
        };
        let Waiting { ticket, job, caller, key, .. } = *waiting;
        let (handler, mailbox) = (self.handler.clone(), self.mailbox.clone());
        let (progress, answered) = (reporter(slot, &mailbox, call.progress.as_ref()), false);
        let reporter: Box<dyn Reporter> = match (caller, key) {
            (Some(caller), Some(key)) => {
                let offered = caller.offered;
                let request = AttachedRequest { slot, ticket, mailbox, progress, offered };
                let run = InputRequiredCall::new(request);
                call.input_required = Some((run.clone(), key));
                let caller = CallingClient { asked: Some(run.requests()), ..caller };
                Box::new(InputRequiredReporter { call: run, handler, caller, permit, answered })
            }
            (caller, _) => {
                Box::new(JobReporter { slot, ticket, handler, mailbox, progress, caller, permit, answered })
            }
        };
        call.state = CallState::Started(Some(job.start(reporter)));
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
            if let CallState::Started(Some(cancel)) = call.state {
                cancel();
            }
        }
    }
}
