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
use super::run::{put, read};
use super::{Machine, operations};
use crate::builtins::{BuiltinId, Implementation};
use crate::bytecode::instruction::{Constant, Dst, Instruction, Src};
use crate::bytecode::{Proto, ProtoIndex, Shape};
use crate::context::Context;
use crate::fault::Result;
use crate::heap;
use crate::unit::Unit;
use crate::value::Value;

type Registers = [Value; WINDOW];

impl Machine<'_> {
    /// Runs until an instruction needs the complete table; the frame on top says which.
    ///
    /// # Errors
    /// A fault of a builtin; the frame on top is past its call.
    #[inline(never)]
    pub(super) fn run_hot(&mut self) -> Result<()> {
        let units = self.units;
        let Some(&Frame::Code { unit, proto, pc, base }) = self.fiber.frames.last() else { return Ok(()) };
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
                    match (&registers[usize::from($a.reg)], &registers[usize::from($b.reg)]) {
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
            // A condition that must be dropped is left to the complete table.
            macro_rules! condition {
                ($src:expr) => {{
                    let value = &registers[usize::from($src.reg)];
                    if $src.last && value.is_heap() {
                        break 'frame;
                    }
                    value
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
                    frames.push(Frame::Code { unit: $unit_id, proto: $index, pc: 0, base: next_base as u32 });
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
                        match &unit.constants[usize::from(constant.0)] {
                            Value::Str(text) => put(registers, dst.0, Value::Str(text.clone())),
                            Value::Keyword(symbol) => put(registers, dst.0, Value::Keyword(*symbol)),
                            Value::Int(int) => put(registers, dst.0, Value::Int(*int)),
                            Value::Float(float) => put(registers, dst.0, Value::Float(*float)),
                            _ => break 'frame,
                        }
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
                        if registers[usize::from(src.reg)].is_heap() {
                            break 'frame;
                        }
                    }
                    Instruction::LoadCapture { index, dst } => {
                        let Value::Closure(closure) = &registers[0] else { break 'frame };
                        let value = closure.captures()[usize::from(index.0)].clone();
                        put(registers, dst.0, value);
                    }
                    Instruction::Add { a, b, dst } => {
                        binary!(a, b, dst, i64::checked_add, |a: f64, b: f64| a + b);
                    }
                    Instruction::Subtract { a, b, dst } => {
                        binary!(a, b, dst, i64::checked_sub, |a: f64, b: f64| a - b);
                    }
                    Instruction::Multiply { a, b, dst } => {
                        binary!(a, b, dst, i64::checked_mul, |a: f64, b: f64| a * b);
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
                    Instruction::Not { a, dst } => {
                        let truthy = condition!(a).is_truthy();
                        put(registers, dst.0, Value::Bool(!truthy));
                    }
                    Instruction::Jump { to } => jump!(to),
                    Instruction::LoopBack { counter, to } => {
                        let Value::Int(rounds) = &mut registers[usize::from(counter.0)] else { break 'frame };
                        // The last round of the limit and of the slice are for the complete table.
                        if slice <= 0 || *rounds as u64 >= self.cx.loop_limit {
                            break 'frame;
                        }
                        *rounds += 1;
                        slice -= 1;
                        jump!(to);
                    }
                    Instruction::JumpIfFalse { condition, to } => {
                        if !condition!(condition).is_truthy() {
                            jump!(to);
                        }
                    }
                    Instruction::JumpIfTrue { condition, to } => {
                        if condition!(condition).is_truthy() {
                            jump!(to);
                        }
                    }
                    Instruction::JumpIfNil { condition, to } => {
                        if condition!(condition).is_nil() {
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
                    Instruction::GetKey { src, constant, dst } => {
                        if !get_key(self.cx, unit, registers, src, constant, dst) {
                            break 'frame;
                        }
                    }
                    Instruction::Call1 { builtin, a, dst } => {
                        let Implementation::Plain(run) = builtin.info().implementation else { break 'frame };
                        self.cx.fuel.slice = slice;
                        let mut arguments = [read(registers, a)];
                        match call_plain(self.cx, builtin, run, &mut arguments) {
                            Ok(value) => put(registers, dst.0, value),
                            Err(fault) => {
                                self.save(pc + 1);
                                return Err(fault);
                            }
                        }
                        slice = self.cx.fuel.slice;
                    }
                    Instruction::Call2 { builtin, a, b, dst } => {
                        let Implementation::Plain(run) = builtin.info().implementation else { break 'frame };
                        self.cx.fuel.slice = slice;
                        let mut arguments = [read(registers, a), read(registers, b)];
                        match call_plain(self.cx, builtin, run, &mut arguments) {
                            Ok(value) => put(registers, dst.0, value),
                            Err(fault) => {
                                self.save(pc + 1);
                                return Err(fault);
                            }
                        }
                        slice = self.cx.fuel.slice;
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
                        if !fits(callee, index, window.count) || slice <= 0 || frames.len() == frames.room() {
                            break 'frame;
                        }
                        if callee.needs_closure[usize::from(index.0)] {
                            put(registers, window.at, Value::Closure(closure.clone()));
                        }
                        enter!(closure.unit, callee, index, window.at);
                    }
                    Instruction::Call { window, .. } => {
                        let Value::Closure(closure) = &registers[usize::from(window.at)] else {
                            break 'frame;
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
                            break 'frame;
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
        Ok(())
    }

    /// Remembers where the frame on top is.
    #[inline]
    fn save(&mut self, pc: usize) {
        if let Some(Frame::Code { pc: saved, .. }) = self.fiber.frames.last_mut() {
            *saved = pc as u32;
        }
    }
}

/// True when a function takes exactly this many arguments, with no more arities to look at.
#[inline(always)]
fn fits(unit: &Unit, index: ProtoIndex, count: u8) -> bool {
    unit.program.protos[usize::from(index.0)].shape == Shape { fixed: count, variadic: false }
}

/// `(:key map)`; false when the complete table must do it.
#[inline(never)]
fn get_key(
    cx: &Context,
    unit: &Unit,
    registers: &mut Registers,
    src: Src,
    constant: Constant,
    dst: Dst,
) -> bool {
    let Value::Keyword(symbol) = unit.constants[usize::from(constant.0)] else { return false };
    let found = match &registers[usize::from(src.reg)] {
        Value::Map(map) => match map.find_named(cx, symbol) {
            Some(row) => map.entries()[row].value.clone(),
            None => Value::Nil,
        },
        _ => Value::Nil,
    };
    if src.last {
        registers[usize::from(src.reg)] = Value::Nil;
    }
    put(registers, dst.0, found);
    true
}

/// Calls a builtin that computes its value at once, and looks at the memory account.
#[inline(never)]
fn call_plain(
    cx: &mut Context,
    builtin: BuiltinId,
    run: fn(&mut Context, &mut [Value]) -> Result<Value>,
    arguments: &mut [Value],
) -> Result<Value> {
    operations::check_arity(builtin, arguments.len())?;
    let value = run(cx, arguments)?;
    if heap::attention() {
        operations::attend(cx)?;
    }
    Ok(value)
}
