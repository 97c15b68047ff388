//! Updates, before an instruction runs, the source tracking of the program: which servers' data the value in each
//! register depends on.

use super::exact::{self, Keyed};
use super::regions::{Regions, may_call};
use super::state::Calls;
use super::{Machine, Tracking};
use crate::builtins::Implementation;
use crate::bytecode::BuiltinId;
use crate::bytecode::instruction::{Args, Effect, Entries, Flow, Instruction};
use crate::context::{Context, Function, Unit};
use crate::interpreter::fiber::{Fiber, Frame};
use crate::interpreter::globals::Globals;
use crate::interpreter::operations::find_global;
use crate::sources::{Shadow, Sources};
use crate::value::Value;
use std::rc::Rc;

/// The instruction that runs next.
#[derive(Clone, Copy)]
struct At<'m> {
    cx: &'m Context,
    fiber: &'m Fiber,
    globals: &'m Globals,
    function: &'m Function,
    unit: &'m Unit,
    number: usize,
    pc: usize,
    base: usize,
}

impl<'m> At<'m> {
    fn value(self, register: u8) -> &'m Value {
        self.fiber.stack.get(self.base + usize::from(register)).unwrap_or(&Value::Nil)
    }
}

/// Registers from one on.
fn registers(args: Args) -> impl Iterator<Item = u8> {
    (u16::from(args.at)..u16::from(args.at) + u16::from(args.count)).filter_map(|at| u8::try_from(at).ok())
}

impl Tracking {
    /// Looks at the next instruction, which changes no register before.
    pub(super) fn before(&mut self, machine: &Machine<'_>) -> Option<Instruction> {
        let &Frame::Code { function: number, pc, base } = machine.fiber.frames.last()? else { return None };
        let function = machine.functions.get(number.index())?;
        let (pc, base) = (pc as usize, base as usize);
        let instruction = *function.code.get(pc)?;
        self.close_branches(pc, base, &function.unit.globals);
        let Machine { cx, fiber, globals, .. } = machine;
        let at = At { cx, fiber, globals, function, unit: &function.unit, number: number.index(), pc, base };
        match instruction {
            Instruction::Jump { .. } | Instruction::LoopBack { .. } | Instruction::CountLoop { .. } => {}
            Instruction::Call { .. }
            | Instruction::CallGlobal { .. }
            | Instruction::CallBuiltin { .. }
            | Instruction::Call1 { .. }
            | Instruction::Call2 { .. } => self.call(at, instruction),
            Instruction::Return { src } => {
                let value = self.read(at, src.0).marked(self.control());
                let is_truthy = at.value(src.0).is_truthy();
                // The branches that are open here meet at the end of the function, whichever way was taken.
                while let Some(open) = self.track.levels.last_mut().and_then(|level| level.open.pop()) {
                    self.leave(&open.region, open.sources, (base, &function.unit.globals));
                }
                if let Some(level) = self.track.levels.last_mut() {
                    level.returns = Some((value, is_truthy));
                }
                self.track.clear_from(base);
            }
            other if other.flow() == Flow::Branch => self.branch(at, other),
            other => self.compute(at, other),
        }
        Some(instruction)
    }

    fn read(&self, at: At<'_>, register: u8) -> Shadow {
        self.track.get(at.base + usize::from(register))
    }

    /// Leaves the branches that end here.
    fn close_branches(&mut self, pc: usize, base: usize, globals: &[u32]) {
        while let Some(level) = self.track.levels.last_mut()
            && level.open.last().is_some_and(|open| open.region.join as usize == pc)
            && let Some(open) = level.open.pop()
        {
            self.leave(&open.region, open.sources, (base, globals));
        }
    }

    /// The sources of everything that an instruction reads.
    fn operands(&self, at: At<'_>, instruction: Instruction) -> Sources {
        let mut sources = Sources::NONE;
        instruction.effects(&mut |effect| {
            if let Effect::Read(register) | Effect::Take(register) = effect {
                sources = sources.union(self.read(at, register).deep());
            }
        });
        sources
    }

    /// An instruction that goes on in one of two ways.
    fn branch(&mut self, at: At<'_>, instruction: Instruction) {
        let sources = match instruction {
            Instruction::JumpIfFalse { condition, .. }
            | Instruction::JumpIfTrue { condition, .. }
            | Instruction::JumpIfNil { condition, .. } => self.read(at, condition.reg).own,
            Instruction::Next { seq, dst, .. } => {
                let items = self.read(at, seq.0);
                let index = match at.value(seq.0.saturating_add(1)) {
                    Value::Int(index) => usize::try_from(*index).ok(),
                    _ => None,
                };
                let item = index.map_or_else(|| Shadow::flat(items.deep()), |index| items.item(index));
                let item = item.marked(self.control());
                self.track.set(at.base + usize::from(dst.0), item);
                items.own
            }
            other => self.operands(at, other),
        };
        let known = self.track.regions.clone();
        let Some(level) = self.track.levels.last_mut() else { return };
        // What a function does depends on what decides that it runs, whichever way it takes.
        if sources.is_within(level.control()) {
            return;
        }
        let code = &at.function.code;
        let regions =
            known.borrow_mut().entry(at.number).or_insert_with(|| Rc::new(Regions::of(code))).clone();
        level.open(regions.region(code, at.pc), sources);
    }

    /// An instruction that computes a value from its operands.
    fn compute(&mut self, at: At<'_>, instruction: Instruction) {
        let control = self.control();
        let mut filled = None;
        let mut taken = Vec::new();
        instruction.effects(&mut |effect| match effect {
            Effect::Fill(register) => filled = Some(register),
            Effect::Take(register) => taken.push(register),
            _ => {}
        });
        let shadow = self.result(at, instruction, control);
        for register in taken {
            self.track.set(at.base + usize::from(register), Shadow::default());
        }
        if let Some(register) = filled {
            self.track.set(at.base + usize::from(register), shadow.marked(control));
        }
    }

    fn result(&mut self, at: At<'_>, instruction: Instruction, control: Sources) -> Shadow {
        match instruction {
            Instruction::Move { src, .. } => self.read(at, src.reg),
            Instruction::LoadCapture { index, .. } => self.read(at, 0).item(usize::from(index.0)),
            Instruction::LoadGlobal { global, .. } => self.global(at, global.0),
            Instruction::IsDefined { global, .. } => Shadow::flat(self.global(at, global.0).own),
            Instruction::StoreGlobal { global, src } => {
                let shadow = self.read(at, src.reg).marked(control);
                self.store(at, global.0, shadow);
                Shadow::default()
            }
            Instruction::GetKey { src, key, .. } => {
                let keyed = at.unit.constants.get(usize::from(key.0));
                let keyed = keyed
                    .map_or(Keyed::Unknown(Sources::NONE), |key| exact::keyed(at.cx, key, Sources::NONE));
                exact::found(at.value(src.reg), &self.read(at, src.reg), keyed)
            }
            Instruction::Element { src, index, .. } => match usize::try_from(index.0) {
                Ok(index) => self.read(at, src.reg).item(index),
                Err(_) => Shadow::flat(self.read(at, src.reg).deep()),
            },
            Instruction::MakeVector { items, .. } => {
                let items = registers(items).map(|register| self.read(at, register)).collect();
                Shadow::of_items(control, items, Sources::NONE)
            }
            Instruction::MakeClosure { template, .. } => {
                let captures = registers(template.captures).map(|register| self.read(at, register));
                Shadow::of_items(control, captures.collect(), Sources::NONE)
            }
            Instruction::AppendVector { src, items, .. } => {
                let more: Vec<Shadow> = registers(items).map(|register| self.read(at, register)).collect();
                exact::appended(at.value(src.0), &self.read(at, src.0), more)
            }
            Instruction::MakeRecord { entries, .. } => self.record(at, entries),
            Instruction::MakeMap { items, .. } => self.entries(at, Shadow::flat(control), items),
            Instruction::AppendMap { src, items, .. } => {
                let map = self.read(at, src.0);
                self.entries(at, map, items)
            }
            other => Shadow::flat(self.operands(at, other)),
        }
    }

    fn record(&mut self, at: At<'_>, entries: Entries) -> Shadow {
        let keys = match at.unit.constants.get(usize::from(entries.keys)) {
            Some(Value::Set(keys)) => keys.members(),
            _ => &[],
        };
        // All at once: an entry without sources that is added alone is not known by its name.
        let mut known: Vec<(Rc<str>, Shadow)> = Vec::with_capacity(keys.len());
        let mut rest = Sources::NONE;
        for (key, register) in keys.iter().zip(registers(entries.items)) {
            let value = self.read(at, register);
            match exact::keyed(at.cx, key, Sources::NONE) {
                Keyed::Name(name, _) => match known.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, part)) => *part = part.join(&value),
                    None => known.push((name, value)),
                },
                Keyed::Index(..) | Keyed::Unknown(_) => rest = rest.union(value.deep()),
            }
        }
        Shadow::of_keys(Sources::NONE, known, rest)
    }

    fn entries(&mut self, at: At<'_>, mut map: Shadow, items: Args) -> Shadow {
        let registers: Vec<u8> = registers(items).collect();
        for pair in registers.chunks_exact(2) {
            let keyed = exact::keyed(at.cx, at.value(pair[0]), self.read(at, pair[0]).deep());
            map = exact::with_entry(at.cx, None, &map, keyed, None, self.read(at, pair[1]));
        }
        map
    }

    fn global(&self, at: At<'_>, global: u16) -> Shadow {
        at.unit.globals.get(usize::from(global)).map(|slot| self.tracker.name(*slot)).unwrap_or_default()
    }

    fn store(&mut self, at: At<'_>, global: u16, shadow: Shadow) {
        let Some(slot) = at.unit.globals.get(usize::from(global)).copied() else { return };
        // What a branch of `pmap` defines only the branch sees.
        let shadow = match at.fiber.overlay {
            Some(_) => shadow.join(&self.tracker.name(slot)),
            None => shadow,
        };
        self.tracker.define(slot, shadow);
    }

    /// A call: notes what it gets, and where its result goes.
    fn call(&mut self, at: At<'_>, instruction: Instruction) {
        match instruction {
            Instruction::Call { window, .. } => {
                let callee = self.read(at, window.at);
                self.call_value(at, (window.at, window.count), &callee, Some(at.value(window.at)));
            }
            Instruction::CallGlobal { global, window } => {
                let callee = self.global(at, global.0);
                self.track.set(at.base + usize::from(window.at), callee.clone());
                let slot = at.unit.globals.get(usize::from(global.0));
                let value = slot.and_then(|slot| find_global(at.globals, &at.fiber.overlay, *slot));
                self.call_value(at, (window.at, window.count), &callee, value);
            }
            Instruction::CallBuiltin { builtin, window } => {
                let from = Args { at: window.at.wrapping_add(1), count: window.count };
                self.call_builtin(at, builtin, registers(from).collect(), window.at);
            }
            Instruction::Call1 { builtin, a, dst } => self.call_builtin(at, builtin, vec![a.reg], dst.0),
            Instruction::Call2 { builtin, a, b, dst } => {
                self.call_builtin(at, builtin, vec![a.reg, b.reg], dst.0);
            }
            _ => {}
        }
    }

    fn call_value(&mut self, at: At<'_>, (dst, count): (u8, u8), callee: &Shadow, value: Option<&Value>) {
        let control = self.control();
        let from = Args { at: dst.wrapping_add(1), count };
        let arguments: Vec<Shadow> = registers(from).map(|register| self.read(at, register)).collect();
        let deep = arguments.iter().fold(callee.deep(), |all, argument| all.union(argument.deep()));
        let mut calls = Calls { dst: Some(at.base + usize::from(dst)), may_call: true, ..Calls::default() };
        match value {
            Some(Value::Closure(_)) => {
                calls.is_direct = true;
                calls.machine = control.union(callee.own);
            }
            Some(key @ Value::Keyword(_)) if count == 1 => {
                let keyed = exact::keyed(at.cx, key, callee.deep());
                calls.may_call = false;
                calls.exact = Some(exact::found(at.value(from.at), &arguments[0], keyed));
            }
            _ => calls.machine = control.union(deep),
        }
        calls.arguments = arguments;
        self.begin(calls);
    }

    fn call_builtin(&mut self, at: At<'_>, builtin: BuiltinId, from: Vec<u8>, dst: u8) {
        let control = self.control();
        let info = builtin.info();
        let arguments: Vec<Shadow> = from.iter().map(|register| self.read(at, *register)).collect();
        let values: Vec<&Value> = from.iter().map(|register| at.value(*register)).collect();
        let deep = arguments.iter().fold(control, |all, argument| all.union(argument.deep()));
        if !may_call(builtin) {
            let result = match (info.name, values.first()) {
                ("%data", Some(key)) => Some(self.context(at, key)),
                _ => exact::direct(at.cx, info, &arguments, &values),
            };
            let result = result.unwrap_or_else(|| Shadow::flat(deep)).marked(control);
            self.track.set(at.base + usize::from(dst), result);
            return;
        }
        let is_host = matches!(info.implementation, Implementation::Host(_));
        let calls = match exact::each(info, &arguments, &values) {
            _ if is_host => Calls { machine: control, is_host, ..Calls::default() },
            Some(each) => Calls { machine: control.union(each.machine), ..each },
            None => Calls { machine: deep, ..Calls::default() },
        };
        self.begin(Calls { dst: Some(at.base + usize::from(dst)), may_call: true, arguments, ..calls });
    }

    fn begin(&mut self, calls: Calls) {
        if let Some(level) = self.track.levels.last_mut() {
            level.calls = calls;
        }
    }

    /// An entry of the program's input data.
    fn context(&mut self, at: At<'_>, key: &Value) -> Shadow {
        if !self.tracker.marks_context {
            return Shadow::default();
        }
        match at.cx.name(key) {
            Some(name) => {
                let source = self.tracker.source(&format!("data/{name}"));
                self.tracker.note_answer(source);
                Shadow::flat(source)
            }
            None => Shadow::flat(Sources::ANYTHING),
        }
    }
}
