//! Runs a fiber (a thread of control in a program) while tracking which servers' data each of its values depends on
//! (sources), for data-flow rules.
//!
//! The complete loop runs each instruction; this module looks at the fiber before and after it, and keeps the shadows
//! of registers ([`crate::sources`]). The loops themselves do not know of it, so a run that is not tracked costs
//! nothing.
//!
//! Rules:
//! - A value depends on the operands of its instruction, and on what decides that the instruction runs (*control*): the
//!   conditions of the branches around it, those around the call of its function, and the choice of the function.
//! - A branch ends where its ways meet ([`regions`]). What one of the ways may change depends on the condition.
//! - A machine (a builtin with callbacks) and everything that it calls share one set of sources, which grows with each
//!   result of a callback; the usual ones have exact rules ([`exact`]).
//!
//! # Layout
//! - this file: the loop, calls and returns; [`clear`]: functions that can meet no source; [`before`]: what an
//!   instruction does to shadows; [`exact`]: builtins with exact rules; [`regions`]: what depends on a branch;
//!   [`state`]: the tracked state of a fiber

mod before;
mod clear;
mod exact;
mod regions;
pub(crate) mod state;

use super::fiber::Frame;
use super::{Machine, Stop};
use crate::builtins;
use crate::bytecode::instruction::Instruction;
use crate::bytecode::{CombinatorKind, Const, Known};
use crate::context::Function;
use crate::fault::Result;
use crate::native::Native;
use crate::sources::{Shadow, Sources, Tracker};
use regions::Region;
pub(crate) use state::AnswerShadow;
use state::{Calls, Each, FiberTrack, Level};

/// The tracked state of a fiber and of its isolate, while the fiber runs.
pub(super) struct Tracking {
    pub(super) tracker: Box<Tracker>,
    pub(super) track: Box<FiberTrack>,
}

impl Machine<'_> {
    /// [`Machine::run`] of a tracked program.
    #[cold]
    pub(crate) fn run_tracked(&mut self) -> Stop {
        let Some(tracker) = self.cx.tracker.take() else { return self.run() };
        let mut tracking = Tracking { tracker, track: self.fiber.track.take().unwrap_or_default() };
        tracking.tracker.may_memoize |= self.cx.memos.exist();
        tracking.look_at_functions(self.functions);
        self.cx.is_observed = true;
        let stop = match tracking.run(self) {
            Ok(stop) => stop,
            Err(mut fault) => {
                self.fiber.locate(self.functions, &mut fault);
                Stop::Fault(fault)
            }
        };
        self.cx.is_observed = false;
        self.cx.tracker = Some(tracking.tracker);
        self.fiber.track = Some(tracking.track);
        stop
    }
}

impl Tracking {
    fn run(&mut self, machine: &mut Machine<'_>) -> Result<Stop> {
        let mut stop = self.deliver(machine)?;
        loop {
            self.settle(machine, stop.as_ref());
            if let Some(stop) = stop {
                return Ok(stop);
            }
            stop = match machine.fiber.frames.last() {
                Some(&Frame::Code { base, .. }) => match self.is_clear(machine, base as usize) {
                    true => self.run_clear(machine)?,
                    false => self.instruction(machine)?,
                },
                Some(Frame::Native { .. } | Frame::Chain { .. } | Frame::Floor) => machine.drive(None)?,
                None => Some(Stop::Done(crate::Value::Nil)),
            };
        }
    }

    /// Delivers what has arrived while the fiber did not run.
    fn deliver(&mut self, machine: &mut Machine<'_>) -> Result<Option<Stop>> {
        let Some(delivery) = machine.fiber.delivery.take() else { return Ok(None) };
        let awaited = std::mem::take(&mut self.track.awaits);
        let answer = self.track.answer.take().map(|AnswerShadow { shadow, server }| match server {
            // Another fiber may have called the server, or others, while it answered.
            Some(server) => shadow.marked(self.tracker.given(&server).union(self.tracker.effects.calls)),
            None => shadow,
        });
        // An answer of which the host has said nothing may be anything.
        let answer = answer.or_else(|| awaited.then(|| Shadow::flat(Sources::ANYTHING)));
        let branches = std::mem::take(&mut self.track.branches);
        let is_code = matches!(machine.fiber.frames.last(), Some(Frame::Code { .. }));
        let calls = self.track.calls();
        if !branches.is_empty() {
            calls.result = calls.result.union(branches);
            if calls.each == Each::Any {
                calls.machine = calls.machine.union(branches);
            }
        }
        if let Some(answer) = answer {
            match is_code {
                true => calls.exact = Some(answer),
                false => calls.returned(&answer, None),
            }
        }
        machine.deliver(delivery.value, delivery.dst)
    }

    /// Runs one instruction.
    fn instruction(&mut self, machine: &mut Machine<'_>) -> Result<Option<Stop>> {
        let instruction = self.before(machine);
        let stop = machine.run_one()?;
        if let Some(Instruction::Return { .. }) = instruction {
            self.returned();
        }
        Ok(stop)
    }

    /// A function has returned what [`Tracking::before`] has put aside.
    fn returned(&mut self) {
        let Some(level) = self.track.levels.pop() else { return };
        let Some((value, is_truthy)) = level.returns else { return };
        let is_direct = self.track.levels.last().is_some_and(|caller| caller.index + 1 == level.index);
        let calls = self.track.calls();
        match is_direct {
            true => calls.exact = Some(value.marked(calls.machine)),
            false => calls.returned(&value, Some(is_truthy)),
        }
    }

    /// Follows the frames: a function was entered, or the result of a call is there.
    fn settle(&mut self, machine: &mut Machine<'_>, stop: Option<&Stop>) {
        let depth = machine.fiber.frames.len();
        self.note_memos(machine);
        if let Some(Stop::Host(_)) = stop {
            self.ask(machine);
            return;
        }
        let Some(&Frame::Code { function, base, .. }) = machine.fiber.frames.last() else { return };
        match self.track.levels.last_mut() {
            Some(level) if level.index + 1 == depth => {
                if let Some(dst) = level.calls.dst.take() {
                    self.land(dst);
                }
            }
            _ => self.enter(machine, function.index(), base as usize, depth - 1),
        }
    }

    /// The result of a call is in its register.
    fn land(&mut self, dst: usize) {
        let control = self.control();
        let calls = std::mem::take(self.track.calls());
        let mut result = calls.landed().marked(control);
        if calls.may_call {
            result = result.marked(self.tracker.effects.memos);
            self.may_have_called(calls.machine);
        }
        if calls.is_memoized {
            let memos = &mut self.tracker.effects.memos;
            *memos = memos.union(calls.machine).union(calls.result);
        }
        self.track.set(dst, result);
    }

    /// Functions were called, or not, because of these sources.
    fn may_have_called(&mut self, sources: Sources) {
        if sources.is_empty() {
            return;
        }
        let effects = &mut self.tracker.effects;
        effects.calls = effects.calls.union(sources);
        if self.tracker.may_define {
            effects.names = effects.names.union(sources);
        }
        if self.tracker.may_memoize {
            effects.memos = effects.memos.union(sources);
        }
        if self.tracker.may_exit {
            effects.exits = effects.exits.union(sources);
        }
    }

    /// A memoized function is called: whether that calls something depends on what was called before.
    fn note_memos(&mut self, machine: &Machine<'_>) {
        // The machines above the topmost function that has been looked at.
        let (natives, frames) = (&machine.fiber.natives, &machine.fiber.frames);
        let known = self.track.levels.last().map_or(0, |level| level.index + 1);
        let above = frames.get(known..).unwrap_or_default();
        let count = above.iter().filter(|frame| matches!(frame, Frame::Native { .. })).count();
        let mut natives = natives.iter().rev().take(count);
        if natives.any(|native| matches!(native, Native::Memoize(_))) {
            let answered = self.tracker.answered();
            let calls = self.track.calls();
            calls.is_memoized = true;
            calls.machine = calls.machine.union(answered);
            let all = calls.machine.union(calls.result);
            self.tracker.effects.memos = self.tracker.effects.memos.union(all);
        }
    }

    /// A function was entered.
    fn enter(&mut self, machine: &Machine<'_>, function: usize, base: usize, index: usize) {
        let code = machine.functions.get(function);
        let Some(proto) = code.and_then(Function::compiled) else { return };
        let caller = self.track.levels.last().map(|level| level.index);
        let is_adjacent = caller.is_some_and(|caller| caller + 1 == index);
        let is_machine = caller.map_or(0, |caller| caller + 1) + 1 == index;
        let fixed = usize::from(proto.shape.fixed);
        let calls = self.track.calls();
        let control = calls.machine;
        match is_adjacent && calls.is_direct {
            true => {
                let count = calls.arguments.len();
                if proto.shape.variadic {
                    let rest = calls.arguments.get(fixed.min(count)..).unwrap_or_default().to_vec();
                    self.track.set(base + 1 + fixed, Shadow::of_items(control, rest, Sources::NONE));
                }
            }
            false => {
                let item = calls.next_item().filter(|_| is_machine && fixed == 1 && !proto.shape.variadic);
                let all = Shadow::flat(calls.all());
                let closure = calls.function.clone().unwrap_or_else(|| all.clone());
                self.track.set(base, closure);
                for register in base + 1..=base + fixed + usize::from(proto.shape.variadic) {
                    self.track.set(register, item.clone().unwrap_or_else(|| all.clone()));
                }
            }
        }
        self.track.levels.push(Level::new(index, control));
    }

    /// The fiber asks the host: puts aside where the arguments come from.
    fn ask(&mut self, machine: &Machine<'_>) {
        let depth = machine.fiber.frames.len();
        let is_code = matches!(machine.fiber.frames.last(), Some(Frame::Code { .. }));
        let is_direct = is_code && self.track.levels.last().is_some_and(|level| level.index + 1 == depth);
        let control = self.control();
        let calls = self.track.calls();
        let control = control.union(calls.machine);
        let arguments = match is_direct && calls.is_host {
            true => calls.arguments.clone(),
            false => Vec::new(),
        };
        let others = Shadow::flat(calls.all().union(control));
        self.track.asked = Some(state::Asked { control, arguments, others });
        self.track.awaits = true;
    }

    /// What decides that the current instruction runs.
    pub(super) fn control(&self) -> Sources {
        let level = self.track.levels.last();
        let control = level.map_or(self.track.root.machine, Level::control);
        control.union(self.tracker.effects.exits)
    }

    /// The ways of a branch have met.
    fn leave(&mut self, region: &Region, sources: Sources, (base, globals): (usize, &[u32])) {
        if sources.is_empty() {
            return;
        }
        for register in region.writes() {
            self.track.mark(base + register, sources);
        }
        for store in &region.stores {
            if let Some(slot) = globals.get(usize::from(*store)) {
                self.tracker.may_define(*slot, sources);
            }
        }
        if region.calls {
            self.may_have_called(sources);
        }
        if region.exits {
            self.tracker.effects.exits = self.tracker.effects.exits.union(sources);
        }
    }

    /// Finds out what functions of the isolate may do.
    fn look_at_functions(&mut self, functions: &[Function]) {
        if self.tracker.looked_at == functions.len() {
            return;
        }
        self.tracker.looked_at = functions.len();
        let (memoize, data) = (builtins::lookup(None, "memoize"), Known::DataEntry.id());
        debug_assert!(memoize.is_some());
        for function in functions {
            if function.is_vacant() {
                continue;
            }
            let program = &function.unit.program;
            if function.proto == program.entry {
                let is_memo =
                    |constant: &Const| matches!(constant, Const::Combinator(CombinatorKind::Memoize, _));
                self.tracker.may_read_context |= program.mentions(data);
                self.tracker.may_memoize |= memoize.is_some_and(|memoize| program.mentions(memoize))
                    || program.constants.iter().any(is_memo);
                continue;
            }
            for instruction in function.code.iter() {
                self.tracker.may_define |= matches!(instruction, Instruction::StoreGlobal { .. });
                self.tracker.may_exit |= matches!(instruction, Instruction::Exit { .. });
            }
        }
    }
}

/// While no function runs, the calls are the root's.
impl FiberTrack {
    /// The calls of the topmost function, or of the fiber itself.
    pub(super) fn calls(&mut self) -> &mut Calls {
        match self.levels.last_mut() {
            Some(level) => &mut level.calls,
            None => &mut self.root,
        }
    }
}
