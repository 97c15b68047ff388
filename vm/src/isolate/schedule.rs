//! Schedules the fibers (threads of control) of one program: which are ready, which wait for the host, which wait for
//! parallel branches.
//!
//! Architecture invariant: a program is deterministic given the host's answers, whatever the size of its slices. Ready
//! fibers run in the order they became ready, a fiber that a slice ends under goes on first in the next one, and
//! branches start in index order.

use super::CallId;
use crate::builtins::HostFunction;
use crate::context::Context;
use crate::fault::{CallSite, Fault, Reason, Result, Span, UnitId};
use crate::interpreter::fiber::{Delivery, FIRST_SLOT, Fiber, Frame};
use crate::interpreter::globals::Globals;
use crate::interpreter::{HostRequest, Machine, Stop};
use crate::native::Native;
use crate::native::parallel::Parallel;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::code_ref::FunctionId;
use std::collections::{BTreeMap, VecDeque};

/// Number of a fiber: its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FiberId(u32);

/// A host call in flight.
pub(super) struct PendingCall {
    fiber: FiberId,
    pub(super) function: HostFunction,
    pub(super) arguments: Arguments,
    dst: u32,
}

/// A fiber in its slot.
struct Slot {
    fiber: Fiber,
    /// The fiber that forked this branch, and the branch's index.
    parent: Option<(FiberId, usize)>,
    /// Live branches, if this fiber has forked.
    children: Vec<FiberId>,
    /// A fault that came as the answer of a host call.
    fault: Option<Box<Fault>>,
    call: Option<CallId>,
}

/// The fibers of an isolate.
#[derive(Default)]
pub(super) struct Schedule {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    ready: VecDeque<FiberId>,
    /// Forked fibers that may start more branches when one ends, oldest first.
    forking: VecDeque<FiberId>,
    pub(super) calls: BTreeMap<CallId, PendingCall>,
    next_call: u64,
    /// Live branches at all depths.
    branches: usize,
    /// Calls of cancelled fibers.
    pub(super) cancelled: Vec<CallId>,
    /// The main fiber has returned, there is no other, and its memory stays in its slot for the next program.
    recycled: bool,
}

impl Schedule {
    /// Starts the main fiber of a program.
    pub(super) fn start(&mut self, function: FunctionId) {
        let frame = Frame::Code { function, pc: 0, base: FIRST_SLOT as u32 };
        if self.recycled
            && let [Some(slot)] = &mut self.slots[..]
        {
            self.recycled = false;
            slot.fiber.reuse();
            slot.fiber.frames.push(frame);
            self.ready.push_back(FiberId(0));
            return;
        }
        self.clear();
        let mut fiber = Fiber::default();
        fiber.frames.push(frame);
        let id = self.insert(fiber, None);
        self.ready.push_back(id);
    }

    /// Drops the remains of a run, except the memory of a main fiber that returned.
    pub(super) fn end_run(&mut self) {
        if !self.recycled {
            self.clear();
        }
    }

    fn insert(&mut self, fiber: Fiber, parent: Option<(FiberId, usize)>) -> FiberId {
        let slot = Slot { fiber, parent, children: Vec::new(), fault: None, call: None };
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(slot);
                FiberId(index)
            }
            None => {
                self.slots.push(Some(slot));
                FiberId(self.slots.len() as u32 - 1)
            }
        }
    }

    fn slot(&mut self, id: FiberId) -> Option<&mut Slot> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    fn remove(&mut self, id: FiberId) -> Option<Slot> {
        let slot = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        if slot.parent.is_some() {
            self.branches -= 1;
        }
        Some(slot)
    }

    /// Locates a fault at the fiber that runs next, or at the first one that waits for the host.
    pub(super) fn locate(&self, cx: &Context, fault: &mut Fault) {
        let waiting = || self.calls.values().next().map(|call| call.fiber);
        let next = self.ready.front().copied().or_else(waiting);
        let slot = next.and_then(|id| self.slots.get(id.0 as usize)?.as_ref());
        if let Some(slot) = slot {
            slot.fiber.locate(&cx.functions, fault);
        }
    }

    /// Locates a fault at a fiber.
    pub(super) fn locate_in(&mut self, id: FiberId, cx: &Context, fault: &mut Fault) {
        if let Some(slot) = self.slot(id) {
            slot.fiber.locate(&cx.functions, fault);
        }
    }

    /// The next fiber to run.
    pub(super) fn next_ready(&mut self) -> Option<FiberId> {
        self.ready.pop_front()
    }

    /// Queues the fiber that the end of a slice interrupted, in front: the order of fibers, and so the fuel of a program
    /// whose branch faults, must not depend on the size of slices.
    pub(super) fn requeue(&mut self, id: FiberId) {
        self.ready.push_front(id);
    }

    /// Runs a fiber until it stops. Lines printed by a branch stay with the branch.
    pub(super) fn run_fiber(&mut self, id: FiberId, cx: &mut Context, globals: &mut Globals) -> Stop {
        let Some(slot) = self.slot(id) else { return Stop::Done(Value::Nil) };
        if let Some(mut fault) = slot.fault.take() {
            // The call that the host refused.
            slot.fiber.locate(&cx.functions, &mut fault);
            return Stop::Fault(fault);
        }
        let fiber = &mut slot.fiber;
        fiber.unpark();
        if let Some(prints) = &mut fiber.prints {
            std::mem::swap(prints, &mut cx.prints);
        }
        let functions = cx.functions.clone();
        let is_tracked = cx.tracker.is_some();
        let mut machine = Machine::new(cx, fiber, globals, &functions);
        let stop = if is_tracked { machine.run_tracked() } else { machine.run() };
        if let Some(prints) = &mut fiber.prints {
            std::mem::swap(prints, &mut cx.prints);
        }
        stop
    }

    /// The number of the next host call.
    pub(super) fn next_call(&self) -> CallId {
        CallId(self.next_call)
    }

    /// Makes a fiber wait for the host.
    pub(super) fn suspend(&mut self, id: FiberId, request: HostRequest, cx: &Context) -> CallId {
        let HostRequest { function, arguments, dst } = request;
        let call = self.next_call();
        self.next_call += 1;
        self.calls.insert(call, PendingCall { fiber: id, function, arguments, dst });
        if let Some(slot) = self.slot(id) {
            slot.call = Some(call);
            slot.fiber.park(dst, &cx.functions);
        }
        call
    }

    /// Delivers the host's answer.
    pub(super) fn answer(&mut self, call: CallId, answer: Result<Value>) {
        let Some(pending) = self.calls.remove(&call) else { return };
        let Some(slot) = self.slot(pending.fiber) else { return };
        slot.call = None;
        match answer {
            Ok(value) => slot.fiber.delivery = Some(Delivery { value, dst: pending.dst }),
            Err(fault) => slot.fault = Some(fault),
        }
        self.ready.push_back(pending.fiber);
    }

    /// True for a branch of `pmap` or `pcalls`.
    pub(super) fn is_branch(&mut self, id: FiberId) -> bool {
        self.slot(id).is_some_and(|slot| slot.parent.is_some())
    }

    fn parallel(&mut self, id: FiberId) -> Option<&mut Parallel> {
        match self.slot(id)?.fiber.natives.last_mut() {
            Some(Native::Parallel(parallel)) => Some(parallel),
            _ => None,
        }
    }

    /// Starts branches of a forked fiber, as many as the width allows.
    pub(super) fn fork(&mut self, parent: FiberId, cx: &mut Context) -> Result<()> {
        self.forking.push_back(parent);
        self.start_branches(cx)
    }

    /// Starts waiting branches while there is room. A fiber without a running branch may always start one: it uses
    /// its own slot, so nested forms cannot wait for each other for ever.
    fn start_branches(&mut self, cx: &mut Context) -> Result<()> {
        let mut waiting = VecDeque::new();
        while let Some(parent) = self.forking.pop_front() {
            let more = loop {
                let room = self.branches < cx.parallel_width;
                let Some(parallel) = self.parallel(parent) else { break false };
                if !room && parallel.running > 0 {
                    break true;
                }
                let Some((index, function, arguments)) = parallel.next_branch(cx)? else { break false };
                self.start_branch(parent, index, function, arguments, cx)?;
            };
            if more {
                waiting.push_back(parent);
            }
        }
        self.forking = waiting;
        Ok(())
    }

    fn start_branch(
        &mut self,
        parent: FiberId,
        index: usize,
        function: Value,
        arguments: Arguments,
        cx: &mut Context,
    ) -> Result<()> {
        // Stack, frames and slot of a branch.
        const BRANCH_BYTES: usize = 6 * 1024;
        cx.reserve(BRANCH_BYTES)?;
        let overlay = self.slot(parent).and_then(|slot| slot.fiber.overlay.clone());
        let mut fiber = Fiber::branch(overlay.unwrap_or_default(), cx.prints.branch());
        let track = self.slot(parent).and_then(|slot| slot.fiber.track.as_mut());
        fiber.track = track.map(|track| Box::new(track.branch()));
        // The branch begins as a machine that tail-calls the function.
        fiber.push_native(
            Native::Combine(crate::native::combine::Combine::call(function, arguments)),
            0,
            FIRST_SLOT as u32,
        );
        let id = self.insert(fiber, Some((parent, index)));
        self.branches += 1;
        if let Some(slot) = self.slot(parent) {
            slot.children.push(id);
        }
        self.ready.push_back(id);
        Ok(())
    }

    /// A fiber has returned. `Some` for the main fiber.
    pub(super) fn finish(&mut self, id: FiberId, value: Value, cx: &mut Context) -> Option<Value> {
        let is_alone = self.slots.len() == 1;
        let place = self.slots.get_mut(id.0 as usize)?;
        if let Some(slot) = place.as_mut().filter(|slot| slot.parent.is_none()) {
            if is_alone && slot.fiber.recycle() {
                self.recycled = true;
                return Some(value);
            }
            // Dropped in place: a fiber is large.
            *place = None;
            self.free.push(id.0);
            return Some(value);
        }
        let mut slot = self.remove(id)?;
        let (parent, index) = slot.parent?;
        let prints = slot.fiber.prints.take();
        let track = slot.fiber.track.take();
        drop(slot);
        if let Some(parent_slot) = self.slot(parent) {
            if let (Some(parent), Some(track)) = (&mut parent_slot.fiber.track, track) {
                parent.branches = parent.branches.union(track.finished());
            }
            // Most branches end in the order in which they began; that order is preserved.
            if let Some(place) = parent_slot.children.iter().position(|&child| child == id) {
                parent_slot.children.remove(place);
            }
        }
        let finished = self.parallel(parent)?.finish_branch(cx, index, value, prints);
        let begun = finished.and_then(|finished| {
            if finished {
                self.deliver(parent, cx);
            }
            self.start_branches(cx)
        });
        if let Err(fault) = begun {
            // No memory for the next branch: the fault goes to the waiting parent.
            if let Some(slot) = self.slot(parent) {
                slot.fault = Some(fault);
                self.ready.push_back(parent);
            }
        }
        None
    }

    /// Delivers the branches' results to a fiber, and passes their printed lines on.
    fn deliver(&mut self, parent: FiberId, cx: &mut Context) {
        let nested = self.is_branch(parent);
        let Some(parallel) = self.parallel(parent) else { return };
        let (results, prints) = parallel.finish();
        let Some(slot) = self.slot(parent) else { return };
        for mut branch in prints {
            match &mut slot.fiber.prints {
                Some(own) if nested => own.join(&mut branch),
                _ => cx.prints.join(&mut branch),
            }
        }
        slot.fiber.delivery = Some(Delivery { value: results, dst: 0 });
        self.ready.push_back(parent);
    }

    /// The fault of a branch that called `return` or `fail`.
    pub(super) fn signal_fault(&mut self, id: FiberId, name: &str) -> Box<Fault> {
        let parent = self.slot(id).and_then(|slot| slot.parent);
        let form =
            parent.and_then(|(parent, _)| self.parallel(parent)).map_or("pmap", |parallel| parallel.name());
        Fault::runtime(format_args!("{name} called inside {form}"))
            .hint(format_args!("Give the value back from the branch and look at it after {form}."))
    }

    /// A fiber has faulted: the siblings of a branch are cancelled and the fault is passed to the parent. `Some` if
    /// the program ends with it.
    pub(super) fn branch_failed(
        &mut self,
        mut id: FiberId,
        mut fault: Box<Fault>,
        cx: &Context,
    ) -> Option<Box<Fault>> {
        loop {
            let Some((parent, index)) = self.slot(id).and_then(|slot| slot.parent) else {
                return Some(fault);
            };
            if let Some(parallel) = self.parallel(parent) {
                fault = parallel.branch_fault(index, fault);
                self.note_call(parent, cx, &mut fault);
            }
            let children = match self.slot(parent) {
                Some(slot) => std::mem::take(&mut slot.children),
                None => return Some(fault),
            };
            self.cancel(children);
            // The parent's machine faults in turn, so the next level up is asked.
            if matches!(
                fault.reason,
                Reason::Timeout | Reason::Cancelled | Reason::FuelExceeded | Reason::MemoryExceeded
            ) {
                return Some(fault);
            }
            id = parent;
        }
    }

    /// The fiber that makes a host call, and the number of its arguments.
    pub(super) fn caller(&mut self, call: CallId) -> Option<(&mut Fiber, usize)> {
        let pending = self.calls.get(&call)?;
        let (fiber, count) = (pending.fiber, pending.arguments.len());
        Some((&mut self.slot(fiber)?.fiber, count))
    }

    /// Where a host call is made.
    pub(super) fn place(&mut self, call: CallId, cx: &Context) -> Option<(UnitId, Span)> {
        let fiber = self.calls.get(&call)?.fiber;
        self.slot(fiber)?.fiber.location(&cx.functions)
    }

    /// Adds the parallel form of a branch to the calls that led to its fault, unless the branch's source is inside
    /// the form.
    fn note_call(&mut self, parent: FiberId, cx: &Context, fault: &mut Fault) {
        const MOST: usize = 4;
        let name = self.parallel(parent).map_or("pmap", |parallel| parallel.name());
        let Some((unit, span)) = self.slot(parent).and_then(|slot| slot.fiber.location(&cx.functions)) else {
            return;
        };
        let is_around =
            fault.location.is_some_and(|(inside, location)| inside == unit && span.covers(location));
        if !is_around && fault.calls.len() < MOST {
            fault.calls.push(CallSite { function: name.into(), unit, span });
        }
    }

    /// Cancels fibers and everything they forked.
    fn cancel(&mut self, fibers: Vec<FiberId>) {
        let mut doomed = fibers;
        while let Some(id) = doomed.pop() {
            if let Some(slot) = self.remove(id) {
                doomed.extend_from_slice(&slot.children);
                if let Some(call) = slot.call {
                    self.calls.remove(&call);
                    self.cancelled.push(call);
                }
                self.ready.retain(|&ready| ready != id);
                self.forking.retain(|&parent| parent != id);
            }
        }
    }

    /// Ends all fibers without freeing them: freeing may take long after a deep recursion, and the outcome need not
    /// wait for it.
    pub(super) fn abandon(&mut self) {
        if !self.calls.is_empty() {
            self.cancelled.extend(self.calls.keys().copied());
            self.calls.clear();
        }
        self.ready.clear();
        self.forking.clear();
    }

    /// Ends and drops all fibers.
    pub(super) fn clear(&mut self) {
        self.abandon();
        self.slots.clear();
        self.free.clear();
        self.branches = 0;
        self.recycled = false;
    }
}
