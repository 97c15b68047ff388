//! The hot loop: the usual case of the frequent instructions, and nothing else.
//!
//! It exists for the register allocator. A loop that holds every instruction with its slow cases keeps
//! the program counter in memory, which costs more than most instructions; this one has few live
//! variables and hardly a call. Whatever it does not handle it leaves to [`super::run`], whose table is
//! complete: the hot loop may be removed without changing what any program does.
//!
//! Registers that were read for the last time may keep a scalar here: an empty register is one that
//! holds nothing to drop.

use super::fiber::{Frame, WINDOW};
use super::operations::make_record;
use super::quick::{Below, call_many, call_one, call_two, fits, get_key, modulo, related};
use super::run::{put, read};
use super::slots::{clear, fill_copy};
use super::{Machine, Stop};
use crate::bytecode::Proto;
use crate::bytecode::instruction::Instruction;
use crate::fault::Result;
use crate::heap;
use crate::native::Action;
use crate::unit::Unit;
use crate::value::Value;
use std::mem;

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
        'reload: loop {
            let Some(&Frame::Code { unit, proto, pc, base }) = self.fiber.frames.last() else {
                return Ok(Hot::Drive);
            };
            let mut unit: &Unit = &units[unit.0 as usize];
            let mut proto: &Proto = &unit.program.protos[usize::from(proto.0)];
            let mut pc = pc as usize;
            let mut base = base as usize;
            let mut slice = self.cx.fuel.slice;
            'frame: loop {
                let code: &[Instruction] = &proto.code;
                let Some(registers) =
                    self.fiber.stack.get_mut(base..).and_then(|window| window.first_chunk_mut::<WINDOW>())
                else {
                    break 'frame;
                };
                macro_rules! jump {
                    ($to:expr) => {
                        pc = pc.wrapping_add_signed($to.0 as isize)
                    };
                }
                macro_rules! binary {
                    ($a:expr, $b:expr, $dst:expr, $ints:expr, $floats:expr) => {
                        match (&registers[usize::from($a.reg)], $b) {
                            (Value::Int(a), Value::Int(b)) => {
                                let Some(result) = $ints(*a, *b) else { break 'frame };
                                put(registers, $dst.0, Value::Int(result));
                            }
                            (Value::Float(a), Value::Float(b)) => {
                                let result = $floats(*a, *b);
                                put(registers, $dst.0, Value::Float(result));
                            }
                            _ => break 'frame,
                        }
                    };
                }
                macro_rules! compare {
                    ($a:expr, $b:expr, $ints:path, $floats:path) => {
                        match (&registers[usize::from($a.reg)], &registers[usize::from($b.reg)]) {
                            (Value::Int(a), Value::Int(b)) => $ints(a, b),
                            (Value::Float(a), Value::Float(b)) => $floats(a, b),
                            _ => break 'frame,
                        }
                    };
                }
                macro_rules! compare_small {
                    ($a:expr, $value:expr, $ints:path) => {
                        match &registers[usize::from($a.reg)] {
                            Value::Int(a) => $ints(a, &i64::from($value.0)),
                            _ => break 'frame,
                        }
                    };
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
                                let Some(result) = $operation(*a, *b) else { break 'frame };
                                put(registers, $dst.0, Value::Int(result));
                            }
                            _ => break 'frame,
                        }
                    };
                }
                macro_rules! related {
                    ($relation:expr, $a:expr, $constant:expr) => {{
                        let register = &mut registers[usize::from($a.reg)];
                        let constant = &unit.constants[usize::from($constant.0)];
                        let Some(answer) = related($relation, register, constant) else { break 'frame };
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
                            return self.settle_builtin(pc + 1);
                        }
                        slice = self.cx.fuel.slice;
                    }};
                }
                macro_rules! enter {
                    ($unit_id:expr, $callee:expr, $index:expr, $at:expr) => {{
                        let next_base = base + usize::from($at);
                        let frames = &mut self.fiber.frames;
                        if slice <= 0 || frames.len() == frames.room() {
                            break 'frame;
                        }
                        slice -= 1;
                        if let Some(Frame::Code { pc: saved, .. }) = frames.last_mut() {
                            *saved = pc as u32 + 1;
                        }
                        frames.push(Frame::Code {
                            unit: $unit_id,
                            proto: $index,
                            pc: 0,
                            base: next_base as u32,
                        });
                        unit = $callee;
                        proto = &unit.program.protos[usize::from($index.0)];
                        base = next_base;
                        pc = 0;
                        continue 'frame;
                    }};
                }
                loop {
                    // The verifier has checked that control stays inside the code.
                    match code[pc] {
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
                            let [Value::Closure(closure), others @ ..] = registers else { break 'frame };
                            let capture = &closure.captures()[usize::from(index.0)];
                            fill_copy(&mut others[usize::from(dst.0) - 1], capture);
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
                        Instruction::QuotientConst { a, constant, dst } => {
                            division!(
                                &registers[usize::from(a.reg)],
                                &unit.constants[usize::from(constant.0)],
                                dst,
                                i64::checked_div
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
                        Instruction::AddSmall { a, value, dst, .. } => {
                            let Value::Int(int) = registers[usize::from(a.reg)] else { break 'frame };
                            let Some(sum) = int.checked_add(i64::from(value.0)) else { break 'frame };
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
                        Instruction::LoopBack { counter, to } => {
                            let Value::Int(rounds) = &mut registers[usize::from(counter.0)] else {
                                break 'frame;
                            };
                            // The last round of the limit and of the slice are for the complete table.
                            if slice <= 0 || *rounds as u64 >= self.cx.loop_limit {
                                break 'frame;
                            }
                            *rounds += 1;
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
                        Instruction::JumpUnlessEqualSmall { a, value, to } => {
                            if !compare_small!(a, value, i64::eq) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessLessSmall { a, value, to } => {
                            if !compare_small!(a, value, i64::lt) {
                                jump!(to);
                            }
                        }
                        Instruction::JumpUnlessGreaterSmall { a, value, to } => {
                            if !compare_small!(a, value, i64::gt) {
                                jump!(to);
                            }
                        }
                        Instruction::Next { seq, dst, to } => {
                            let at = usize::from(seq.0);
                            let (Value::Vector(vector), Value::Int(index)) =
                                (&registers[at], &registers[at + 1])
                            else {
                                break 'frame;
                            };
                            let next = *index + 1;
                            match vector.get(*index as usize) {
                                None => jump!(to),
                                Some(_) if slice <= 0 => break 'frame,
                                Some(item) => {
                                    registers[at + 1] = Value::Int(next);
                                    put(registers, dst.0, item);
                                    slice -= 1;
                                }
                            }
                        }
                        Instruction::GetKey { src, constant, dst } => {
                            if !get_key(self.cx, unit, registers, src, constant, dst) {
                                break 'frame;
                            }
                        }
                        Instruction::Element { src, index, dst } => {
                            let Value::Vector(vector) = &registers[usize::from(src.reg)] else {
                                break 'frame;
                            };
                            let item = vector.get(index.0 as usize).unwrap_or_default();
                            if src.last {
                                clear(&mut registers[usize::from(src.reg)]);
                            }
                            put(registers, dst.0, item);
                        }
                        Instruction::MakeRecord { keys, items, dst } => {
                            if heap::attention() {
                                break 'frame;
                            }
                            let keys = &unit.constants[usize::from(keys.0)];
                            let map = make_record(self.cx, keys, registers, items);
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
                            if self.fiber.overlay.is_some() {
                                break 'frame;
                            }
                            let Some(Some(Value::Closure(closure))) = self.globals.get(slot as usize) else {
                                break 'frame;
                            };
                            let callee: &Unit = &units[closure.unit.0 as usize];
                            let index = closure.proto;
                            let frames = &self.fiber.frames;
                            if !fits(callee, index, window.count)
                                || slice <= 0
                                || frames.len() == frames.room()
                            {
                                break 'frame;
                            }
                            if callee.needs_closure[usize::from(index.0)] {
                                put(registers, window.at, Value::Closure(closure.clone()));
                            }
                            enter!(closure.unit, callee, index, window.at);
                        }
                        Instruction::Call { window, .. } => {
                            let closure = match &registers[usize::from(window.at)] {
                                Value::Closure(closure) => closure,
                                Value::Combinator(_) if slice > 1 => {
                                    self.cx.fuel.slice = slice;
                                    self.save(pc + 1);
                                    if self.enter_chain(base + usize::from(window.at), window.count) {
                                        continue 'reload;
                                    }
                                    break 'frame;
                                }
                                _ => break 'frame,
                            };
                            let callee: &Unit = &units[closure.unit.0 as usize];
                            let (unit_id, index) = (closure.unit, closure.proto);
                            if !fits(callee, index, window.count) {
                                break 'frame;
                            }
                            enter!(unit_id, callee, index, window.at);
                        }
                        Instruction::Return { src } => {
                            let frames = &mut self.fiber.frames;
                            let Some(&Frame::Code { unit: caller, proto: index, pc: at, base: caller_base }) =
                                frames.len().checked_sub(2).and_then(|below| frames.get(below))
                            else {
                                if frames.len() < 2 || slice <= 0 || heap::attention() {
                                    break 'frame;
                                }
                                self.cx.fuel.slice = slice;
                                match self.return_to_machine(src, base)? {
                                    Below::Again => {
                                        slice = self.cx.fuel.slice;
                                        pc = 0;
                                        continue 'frame;
                                    }
                                    Below::Frame => continue 'reload,
                                    Below::Leave => return Ok(mem::replace(&mut self.leaving, Hot::Table)),
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
                            frames.pop();
                            unit = &units[caller.0 as usize];
                            proto = &unit.program.protos[usize::from(index.0)];
                            pc = at as usize;
                            base = caller_base as usize;
                            continue 'frame;
                        }
                        _ => break 'frame,
                    }
                    pc += 1;
                }
            }
            self.cx.fuel.slice = slice;
            self.save(pc);
            return Ok(Hot::Table);
        }
    }

    /// Remembers where the frame on top is.
    #[inline]
    pub(super) fn save(&mut self, pc: usize) {
        if let Some(Frame::Code { pc: saved, .. }) = self.fiber.frames.last_mut() {
            *saved = pc as u32;
        }
    }
}
