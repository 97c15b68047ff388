//! The hot loop: the usual case of the frequent instructions, and nothing else.
//!
//! It exists for the register allocator. A loop that holds every instruction with its slow cases keeps
//! the program counter in memory, which costs more than most instructions; this one has few live
//! variables and hardly a call. Whatever it does not handle it leaves to [`super::run`], whose table is
//! complete: the hot loop may be removed without changing what any program does.
//!
//! Registers that were read for the last time may keep a scalar here: an empty register is one that
//! holds nothing to drop.

use super::chain;
use super::fiber::{Frame, WINDOW};
use super::operations::make_record;
use super::quick::{
    Below, call_many, call_one, call_two, fits, get_key, load_capture, make_closure, make_vector, modulo,
    related,
};
use super::run::{put, read};
use super::slots::{clear, fill_copy};
use super::{Machine, Stop};
use crate::bytecode::Proto;
use crate::bytecode::instruction::Instruction;
use crate::fault::Result;
use crate::globals::Callee;
use crate::heap;
use crate::native::Action;
use crate::unit::Unit;
use crate::value::Value;
use std::hint::cold_path;
use std::mem;

/// The loop limit where there is none.
const UNLIMITED: u64 = u64::MAX;

/// Why the hot loop ends.
pub(super) enum Hot {
    /// The next instruction needs the complete table.
    Table,
    /// The machine on top wants something.
    Act(Action),
    /// A function returned a value to what is no code; the slot is for code that it reaches in the end.
    Returned(Value, u32),
    /// A frame was pushed.
    Drive,
    /// The fiber must stop.
    Stop(Stop),
}

impl Machine<'_> {
    /// Runs until an instruction needs the complete table, of which the frame on top says which, or the
    /// machine on top wants something.
    ///
    /// # Errors
    /// A fault of a builtin; the frame on top is past its call.
    #[inline(never)]
    pub(super) fn run_hot(&mut self) -> Result<Hot> {
        let units = self.units;
        let Some(&Frame::Code { unit: mut unit_id, proto, pc, base }) = self.fiber.frames.last() else {
            return Ok(Hot::Drive);
        };
        let mut unit: &Unit = &units[unit_id.0 as usize];
        let mut protos: &[Proto] = &unit.program.protos;
        let mut code: &[Instruction] = &protos[usize::from(proto.0)].code;
        let mut pc = pc as usize;
        let mut base = base as usize;
        let mut slice = self.cx.fuel.slice;
        let is_limited = self.cx.loop_limit != UNLIMITED;
        'frame: loop {
            let window = self.fiber.stack.get_mut(base..).and_then(|window| window.first_chunk_mut());
            let (Some(registers), Some(rest)) = (window, code.get(pc..)) else {
                break 'frame;
            };
            let registers: &mut [Value; WINDOW] = registers;
            // The instructions to come.
            let mut next = rest.iter();
            // The index of the next instruction.
            macro_rules! pc {
                () => {
                    code.len() - next.as_slice().len()
                };
            }
            'run: {
                // Leaves the instruction to the complete table.
                macro_rules! leave {
                    () => {{
                        cold_path();
                        break 'run;
                    }};
                }
                macro_rules! jump {
                    ($to:expr) => {
                        // The verifier has checked that control stays inside the code.
                        match code.get(pc!().wrapping_add_signed($to.0 as isize)..) {
                            Some(rest) => next = rest.iter(),
                            None => leave!(),
                        }
                    };
                }
                macro_rules! binary {
                    ($a:expr, $b:expr, $dst:expr, $ints:expr, $floats:expr) => {
                        match (&registers[usize::from($a.reg)], $b) {
                            (Value::Int(a), Value::Int(b)) => {
                                let Some(result) = $ints(*a, *b) else { leave!() };
                                put(registers, $dst.0, Value::Int(result));
                            }
                            (Value::Float(a), Value::Float(b)) => {
                                cold_path();
                                let result = $floats(*a, *b);
                                put(registers, $dst.0, Value::Float(result));
                            }
                            _ => leave!(),
                        }
                    };
                }
                macro_rules! compare {
                    ($a:expr, $b:expr, $ints:path, $floats:path) => {
                        match (&registers[usize::from($a.reg)], &registers[usize::from($b.reg)]) {
                            (Value::Int(a), Value::Int(b)) => $ints(a, b),
                            (Value::Float(a), Value::Float(b)) => {
                                cold_path();
                                $floats(a, b)
                            }
                            _ => leave!(),
                        }
                    };
                }
                macro_rules! jump_unless {
                    ($a:expr, $ints:path, $to:expr) => {{
                        let Value::Int(a) = &registers[usize::from($a.reg)] else { leave!() };
                        if !$ints(a, &$a.value()) {
                            jump!($to);
                        }
                    }};
                }
                // Asks a value a question; the last reader drops it.
                macro_rules! condition {
                    ($src:expr, $question:ident) => {{
                        let register = &mut registers[usize::from($src.reg)];
                        let answer = register.$question();
                        if $src.last {
                            clear(register);
                        }
                        answer
                    }};
                }
                // Integer division: floats and zero are for the complete table.
                macro_rules! division {
                    ($a:expr, $b:expr, $dst:expr, $operation:path) => {
                        match ($a, $b) {
                            (Value::Int(a), Value::Int(b)) => {
                                let Some(result) = $operation(*a, *b) else { leave!() };
                                put(registers, $dst.0, Value::Int(result));
                            }
                            _ => leave!(),
                        }
                    };
                }
                macro_rules! related {
                    ($relation:expr, $a:expr, $constant:expr) => {{
                        let register = &mut registers[usize::from($a.reg)];
                        let constant = &unit.constants[usize::from($constant.0)];
                        let Some(answer) = related($relation, register, constant) else { leave!() };
                        if $a.last {
                            clear(register);
                        }
                        answer
                    }};
                }
                // Calls a builtin out of line; a fault or a machine leaves the loop.
                macro_rules! call_builtin {
                    ($call:ident, $($operand:expr),*) => {{
                        self.cx.fuel.slice = slice;
                        if !$call(self.cx, &mut self.pending, registers, $($operand),*) {
                            return self.settle_builtin(pc!());
                        }
                        slice = self.cx.fuel.slice;
                    }};
                }
                // Goes on in a function; mostly it is one of the same program.
                macro_rules! goto {
                    ($unit:expr, $index:expr, $pc:expr, $base:expr) => {{
                        if $unit != unit_id {
                            unit_id = $unit;
                            unit = &units[unit_id.0 as usize];
                            protos = &unit.program.protos;
                        }
                        code = &protos[usize::from($index.0)].code;
                        pc = $pc;
                        base = $base;
                        continue 'frame;
                    }};
                }
                macro_rules! enter {
                    ($unit:expr, $index:expr, $at:expr) => {{
                        let next_base = base + usize::from($at);
                        let frame = Frame::Code { unit: $unit, proto: $index, pc: 0, base: next_base as u32 };
                        if slice <= 0 || !self.fiber.frames.enter(pc!(), frame) {
                            leave!();
                        }
                        slice -= 1;
                        goto!($unit, $index, 0, next_base);
                    }};
                }
                while let Some(instruction) = next.next() {
                    match *instruction {
                        Instruction::LoadConst { constant, dst } => {
                            fill_copy(
                                &mut registers[usize::from(dst.0)],
                                &unit.constants[usize::from(constant.0)],
                            );
                        }
                        Instruction::LoadInt { value, dst } => {
                            put(registers, dst.0, Value::Int(i64::from(value.0)))
                        }
                        Instruction::LoadNil { dst } => put(registers, dst.0, Value::Nil),
                        Instruction::LoadBool { value, dst } => put(registers, dst.0, Value::Bool(value)),
                        Instruction::Move { src, dst } => {
                            // An integer was written in two parts: loading it whole would wait for the store.
                            if let Value::Int(int) = registers[usize::from(src.reg)] {
                                put(registers, dst.0, Value::Int(int));
                            } else {
                                let value = read(registers, src);
                                put(registers, dst.0, value);
                            }
                        }
                        Instruction::Drop { src } => {
                            let register = &mut registers[usize::from(src.reg)];
                            clear(register);
                        }
                        Instruction::LoadCapture { index, dst } => {
                            let Value::Closure(closure) = &registers[0] else { leave!() };
                            match &closure.captures()[usize::from(index.0)] {
                                &Value::Int(int) => put(registers, dst.0, Value::Int(int)),
                                _ => load_capture(registers, index, dst),
                            }
                        }
                        Instruction::LoadGlobal { global, dst } => {
                            let slot = unit.globals[usize::from(global.0)];
                            let Some(value) = self.globals.get(slot) else { leave!() };
                            if self.fiber.overlay.is_some() {
                                leave!();
                            }
                            fill_copy(&mut registers[usize::from(dst.0)], value);
                        }
                        Instruction::Add { a, b, dst } => {
                            binary!(
                                a,
                                &registers[usize::from(b.reg)],
                                dst,
                                i64::checked_add,
                                |a: f64, b: f64| a + b
                            );
                        }
                        Instruction::Subtract { a, b, dst } => {
                            binary!(
                                a,
                                &registers[usize::from(b.reg)],
                                dst,
                                i64::checked_sub,
                                |a: f64, b: f64| a - b
                            );
                        }
                        Instruction::Multiply { a, b, dst } => {
                            binary!(
                                a,
                                &registers[usize::from(b.reg)],
                                dst,
                                i64::checked_mul,
                                |a: f64, b: f64| a * b
                            );
                        }
                        Instruction::Modulo { a, b, dst } => {
                            division!(
                                &registers[usize::from(a.reg)],
                                &registers[usize::from(b.reg)],
                                dst,
                                modulo
                            );
                        }
                        Instruction::ModuloConst { a, constant, dst } => {
                            division!(
                                &registers[usize::from(a.reg)],
                                &unit.constants[usize::from(constant.0)],
                                dst,
                                modulo
                            );
                        }
                        Instruction::AddConst { a, constant, dst, .. } => {
                            binary!(
                                a,
                                &unit.constants[usize::from(constant.0)],
                                dst,
                                i64::checked_add,
                                |a: f64, b: f64| a + b
                            );
                        }
                        Instruction::MultiplyConst { a, constant, dst, .. } => {
                            binary!(
                                a,
                                &unit.constants[usize::from(constant.0)],
                                dst,
                                i64::checked_mul,
                                |a: f64, b: f64| a * b
                            );
                        }
                        Instruction::MultiplyInt { a, value, dst, .. } => {
                            let Value::Int(int) = registers[usize::from(a.reg)] else { leave!() };
                            let Some(product) = int.checked_mul(i64::from(value.0)) else { leave!() };
                            put(registers, dst.0, Value::Int(product));
                        }
                        Instruction::ModuloInt { a, value, dst } => {
                            let (Value::Int(int), 1..) = (&registers[usize::from(a.reg)], value.value())
                            else {
                                leave!();
                            };
                            put(registers, dst.0, Value::Int(int.rem_euclid(value.value())));
                        }
                        Instruction::QuotientInt { a, value, dst } => {
                            let (Value::Int(int), 1..) = (&registers[usize::from(a.reg)], value.value())
                            else {
                                leave!();
                            };
                            put(registers, dst.0, Value::Int(int / value.value()));
                        }
                        Instruction::AddSmall { a, value, dst, .. } => {
                            let Value::Int(int) = registers[usize::from(a.reg)] else { leave!() };
                            let Some(sum) = int.checked_add(i64::from(value.0)) else { leave!() };
                            put(registers, dst.0, Value::Int(sum));
                        }
                        Instruction::Equal { a, b, dst } => {
                            let result = compare!(a, b, i64::eq, f64::eq);
                            put(registers, dst.0, Value::Bool(result));
                        }
                        Instruction::Less { a, b, dst } => {
                            let result = compare!(a, b, i64::lt, f64::lt);
                            put(registers, dst.0, Value::Bool(result));
                        }
                        Instruction::LessEqual { a, b, dst } => {
                            let result = compare!(a, b, i64::le, f64::le);
                            put(registers, dst.0, Value::Bool(result));
                        }
                        Instruction::CompareConst { relation, a, constant, dst } => {
                            let answer = related!(relation, a, constant);
                            put(registers, dst.0, Value::Bool(answer));
                        }
                        Instruction::Not { a, dst } => {
                            let truthy = condition!(a, is_truthy);
                            put(registers, dst.0, Value::Bool(!truthy));
                        }
                        Instruction::Jump { to } => jump!(to),
                        Instruction::CountLoop { variable, step, to } => {
                            if let Value::Int(int) = registers[usize::from(variable.0)]
                                && let Some(sum) = int.checked_add(i64::from(step.0))
                                && slice > 0
                                && !is_limited
                            {
                                put(registers, variable.0, Value::Int(sum));
                                slice -= 1;
                                jump!(to);
                            }
                        }
                        Instruction::LoopBack { counter, to } => {
                            // The last round of the limit and of the slice are for the complete table.
                            if slice <= 0 {
                                leave!();
                            }
                            if is_limited {
                                match &mut registers[usize::from(counter.0)] {
                                    Value::Int(rounds) if (*rounds as u64) < self.cx.loop_limit => {
                                        *rounds += 1
                                    }
                                    _ => leave!(),
                                }
                            }
                            slice -= 1;
                            jump!(to);
                        }
                        Instruction::JumpIfFalse { condition, to } => {
                            if !condition!(condition, is_truthy) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpIfTrue { condition, to } => {
                            if condition!(condition, is_truthy) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpIfNil { condition, to } => {
                            if condition!(condition, is_nil) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessEqual { a, b, to } => {
                            if !compare!(a, b, i64::eq, f64::eq) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessLess { a, b, to } => {
                            if !compare!(a, b, i64::lt, f64::lt) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessLessEqual { a, b, to } => {
                            if !compare!(a, b, i64::le, f64::le) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessConst { relation, a, constant, to } => {
                            if !related!(relation, a, constant) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessEqualInt { a, to } => jump_unless!(a, i64::eq, to),
                        Instruction::JumpUnlessNotEqualInt { a, to } => jump_unless!(a, i64::ne, to),
                        Instruction::JumpUnlessLessInt { a, to } => jump_unless!(a, i64::lt, to),
                        Instruction::JumpUnlessLessEqualInt { a, to } => jump_unless!(a, i64::le, to),
                        Instruction::JumpUnlessGreaterInt { a, to } => jump_unless!(a, i64::gt, to),
                        Instruction::JumpUnlessGreaterEqualInt { a, to } => jump_unless!(a, i64::ge, to),
                        Instruction::Next { seq, dst, to } => {
                            let at = usize::from(seq.0);
                            let (Value::Vector(vector), Value::Int(index)) =
                                (&registers[at], &registers[at + 1])
                            else {
                                leave!();
                            };
                            let next = *index + 1;
                            match vector.get(*index as usize) {
                                None => jump!(to),
                                Some(_) if slice <= 0 => leave!(),
                                Some(item) => {
                                    registers[at + 1] = Value::Int(next);
                                    put(registers, dst.0, item);
                                    slice -= 1;
                                }
                            }
                        }
                        Instruction::GetKey { src, constant, dst } => {
                            if !get_key(self.cx, unit, registers, src, constant, dst) {
                                leave!();
                            }
                        }
                        Instruction::Element { src, index, dst } => {
                            let Value::Vector(vector) = &registers[usize::from(src.reg)] else {
                                leave!();
                            };
                            let item = vector.get(index.0 as usize).unwrap_or_default();
                            if src.last {
                                clear(&mut registers[usize::from(src.reg)]);
                            }
                            put(registers, dst.0, item);
                        }
                        Instruction::MakeVector { items, dst } => {
                            if heap::attention() {
                                leave!();
                            }
                            make_vector(registers, items, dst);
                        }
                        Instruction::MakeClosure { proto, captures, dst } => {
                            if heap::attention() {
                                leave!();
                            }
                            make_closure(registers, unit_id, proto, captures, dst);
                        }
                        Instruction::MakeRecord { keys, items, dst } => {
                            if heap::attention() {
                                leave!();
                            }
                            let keys = &unit.constants[usize::from(keys.0)];
                            let map = make_record(keys, registers, items);
                            put(registers, dst.0, map);
                        }
                        Instruction::Call1 { builtin, a, dst } if slice > 0 => {
                            call_builtin!(call_one, builtin, a, dst);
                        }
                        Instruction::Call2 { builtin, a, b, dst } if slice > 0 => {
                            call_builtin!(call_two, builtin, a, b, dst);
                        }
                        Instruction::CallBuiltin { builtin, window } if slice > 0 => {
                            call_builtin!(call_many, builtin, window);
                        }
                        Instruction::CallGlobal { global, window } => {
                            let slot = unit.globals[usize::from(global.0)];
                            let Some(&Callee { unit: callee, proto: index, ref entry }) =
                                self.globals.callee(slot)
                            else {
                                leave!();
                            };
                            if entry.arguments != window.count || self.fiber.overlay.is_some() {
                                leave!();
                            }
                            if entry.needs_closure {
                                let Some(Value::Closure(closure)) = self.globals.get(slot) else {
                                    leave!();
                                };
                                // A refused call finds the register as it was.
                                if slice <= 0 || !self.fiber.frames.has_room(1) {
                                    leave!();
                                }
                                put(registers, window.at, Value::Closure(closure.clone()));
                            }
                            enter!(callee, index, window.at);
                        }
                        Instruction::Call { window, .. } => {
                            let closure = match &registers[usize::from(window.at)] {
                                Value::Closure(closure) => closure,
                                Value::Combinator(_) if slice > 1 && window.count == 1 => {
                                    let at = base + usize::from(window.at);
                                    let Some(part) = chain::enter(self.fiber, units, at, pc!()) else {
                                        leave!();
                                    };
                                    slice -= part.calls;
                                    goto!(part.unit, part.proto, 0, at + 1);
                                }
                                _ => leave!(),
                            };
                            let (callee, index) = (closure.unit, closure.proto);
                            if !fits(&units[callee.0 as usize], index, window.count) {
                                leave!();
                            }
                            enter!(callee, index, window.at);
                        }
                        Instruction::Return { src } => {
                            let Some(&Frame::Code { unit: caller, proto: index, pc: at, base: caller_base }) =
                                self.fiber.frames.below()
                            else {
                                if slice > 0
                                    && let Some(next) = chain::advance(self.fiber, units, src)
                                {
                                    slice -= next.calls;
                                    goto!(next.unit, next.proto, next.pc as usize, next.base as usize);
                                }
                                if self.fiber.frames.len() < 2 || slice <= 0 || heap::attention() {
                                    leave!();
                                }
                                self.cx.fuel.slice = slice;
                                match self.return_to_machine(src, base)? {
                                    Below::Again => {
                                        slice = self.cx.fuel.slice;
                                        pc = 0;
                                        continue 'frame;
                                    }
                                    Below::Leave => {
                                        return Ok(mem::replace(&mut self.leaving, Hot::Table));
                                    }
                                }
                            };
                            // An integer was written in two parts: loading it whole would wait for the store.
                            if let Value::Int(int) = registers[usize::from(src.reg)] {
                                // Frees the closure, unless the function was called directly.
                                if registers[0].is_heap() {
                                    registers[0] = Value::Nil;
                                }
                                put(registers, 0, Value::Int(int));
                            } else {
                                let value = read(registers, src);
                                registers[0] = value;
                            }
                            self.fiber.frames.pop();
                            goto!(caller, index, at as usize, caller_base as usize);
                        }
                        // Named, so that the jump table needs no range check and a new instruction is thought of.
                        Instruction::LoadSelf { .. }
                        | Instruction::StoreGlobal { .. }
                        | Instruction::IsDefined { .. }
                        | Instruction::Quotient { .. }
                        | Instruction::Remainder { .. }
                        | Instruction::SubtractConst { .. }
                        | Instruction::QuotientConst { .. }
                        | Instruction::RemainderConst { .. }
                        | Instruction::AppendVector { .. }
                        | Instruction::MakeMap { .. }
                        | Instruction::AppendMap { .. }
                        | Instruction::MakeSet { .. }
                        | Instruction::AppendSet { .. }
                        | Instruction::CallBuiltin { .. }
                        | Instruction::Call1 { .. }
                        | Instruction::Call2 { .. }
                        | Instruction::Exit { .. } => leave!(),
                    }
                }
            }
            // The instruction that did not run.
            pc = pc!() - 1;
            break 'frame;
        }
        self.cx.fuel.slice = slice;
        self.save(pc);
        Ok(Hot::Table)
    }

    /// Remembers where the frame on top is.
    #[inline]
    pub(super) fn save(&mut self, pc: usize) {
        if let Some(Frame::Code { pc: saved, .. }) = self.fiber.frames.last_mut() {
            *saved = pc as u32;
        }
    }
}
