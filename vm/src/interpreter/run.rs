//! The instruction loop.
//!
//! A register write forgets the old value instead of dropping it: the compiler guarantees, and the
//! verifier has checked, that the register is empty, so that what is forgotten is a scalar (see
//! `bytecode`). Debug builds assert it.

use super::fiber::{Fiber, Frame};
use super::operations::{
    add_entries, add_members, find_global, holds, less, less_equal, loop_limit, make_record, take_args,
    target, unbound,
};
use super::{Machine, Stop};
use crate::apply::check_arity;
use crate::arith;
use crate::builtins::Implementation;
use crate::bytecode::instruction::{Instruction, Relation, Side, Src};
use crate::bytecode::{Proto, WINDOW};
use crate::context::{Context, Unit};
use crate::fault::{Fault, Reason, Result};
use crate::memory::account;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use crate::value::relation::equal::equal;
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use crate::value::{Closure, Value};
use std::mem;

type Registers = [Value; WINDOW];

/// Fills an empty register.
#[inline(always)]
pub(super) fn put(registers: &mut Registers, dst: u8, value: Value) {
    debug_assert!(!registers[usize::from(dst)].is_heap(), "r{dst} is written while full");
    mem::forget(mem::replace(&mut registers[usize::from(dst)], value));
}

/// Reads a register; the last reader takes the value.
#[inline(always)]
pub(super) fn read(registers: &mut Registers, src: Src) -> Value {
    let register = &mut registers[usize::from(src.reg)];
    if src.last { mem::take(register) } else { register.clone() }
}

/// What the loop does after an instruction that may leave the frame.
pub(super) enum After {
    /// Reload the frame on top and go on.
    Reload,
    /// Leave the loop.
    Stop(Stop),
}

impl Machine<'_> {
    /// Runs one instruction of the frame on top, whatever it is.
    #[allow(clippy::too_many_lines)] // One arm an instruction; splitting it would hide the table.
    #[inline(never)]
    pub(super) fn run_one(&mut self) -> Result<After> {
        let units = self.units;
        let Some(&Frame::Code { unit, proto, pc, base }) = self.fiber.frames.last() else {
            return Ok(After::Reload);
        };
        // Frames are made from verified programs of this isolate.
        let unit: &Unit = &units[unit.0 as usize];
        let proto: &Proto = &unit.program.protos[usize::from(proto.0)];
        let (mut pc, base) = (pc as usize, base as usize);
        let cx: &mut Context = self.cx;
        Fiber::reserve_window(&mut self.fiber.stack, base);
        // Recursion grows the stack, which only this sees.
        if account::attention() {
            cx.attend()?;
        }
        let Some(registers) = self.fiber.stack[base..].first_chunk_mut::<WINDOW>() else {
            return Err(Fault::new(Reason::ExecutionError, "no register window"));
        };
        // Remembers where this frame is before control may leave it.
        macro_rules! save {
            () => {
                if let Some(Frame::Code { pc: saved, .. }) = self.fiber.frames.last_mut() {
                    *saved = pc as u32;
                }
            };
        }
        macro_rules! check {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(fault) => {
                        save!();
                        return Err(fault);
                    }
                }
            };
        }
        // After an instruction that allocates: memory, garbage, copies.
        macro_rules! safepoint {
            () => {
                if account::attention() {
                    check!(cx.attend());
                }
            };
        }
        // Goes on in a function whose arguments are in place.
        macro_rules! enter {
            ($unit_id:expr, $index:expr, $at:expr) => {{
                let unit_id = $unit_id;
                let base = base + usize::from($at);
                let frame = Frame::Code { unit: unit_id, proto: $index, pc: 0, base: base as u32 };
                self.fiber.frames.push(frame);
                cx.fuel.slice -= 1;
                if cx.fuel.slice < 0 {
                    return Ok(After::Stop(Stop::SliceEnd));
                }
                return Ok(After::Reload);
            }};
        }
        macro_rules! jump {
            ($to:expr) => {
                pc = pc.wrapping_add_signed($to as isize)
            };
        }
        // Integers and floats were tried by the hot loop; these operations know all numbers.
        macro_rules! binary {
            ($a:expr, $b:expr, $dst:expr, $operation:path) => {{
                let a = read(registers, $a);
                let b = read(registers, $b);
                let result = check!($operation(cx, a, b));
                put(registers, $dst.0, result);
                safepoint!();
            }};
        }
        macro_rules! compare {
            ($a:expr, $b:expr, $operation:path) => {{
                let a = read(registers, $a);
                let b = read(registers, $b);
                check!($operation(cx, &a, &b))
            }};
        }
        macro_rules! jump_unless_int {
            ($relation:expr, $a:expr, $to:expr) => {{
                let a = read(registers, $a.src());
                if !check!(holds(cx, $relation, &a, &Value::Int($a.value()))) {
                    jump!($to.0);
                }
            }};
        }
        macro_rules! constant {
            ($constant:expr) => {
                unit.constants[usize::from($constant.0)].clone()
            };
        }
        macro_rules! with_constant {
            ($a:expr, $constant:expr, $dst:expr, $side:expr, $operation:path) => {{
                let a = read(registers, $a);
                let constant = $constant;
                let result = check!(match $side {
                    Side::Right => $operation(cx, a, constant),
                    Side::Left => $operation(cx, constant, a),
                });
                put(registers, $dst.0, result);
                safepoint!();
            }};
        }

        // Asks a value a question; the last reader drops it.
        macro_rules! condition {
            ($src:expr, $question:ident) => {{
                let register = &mut registers[usize::from($src.reg)];
                let answer = register.$question();
                if $src.last {
                    *register = Value::Nil;
                }
                answer
            }};
        }

        // The verifier has checked that control stays inside the code.
        let instruction = proto.code[pc];
        pc += 1;
        'one: {
            match instruction {
                Instruction::LoadConst { constant, dst } => {
                    put(registers, dst.0, unit.constants[usize::from(constant.0)].clone());
                }
                Instruction::LoadInt { value, dst } => {
                    put(registers, dst.0, Value::Int(i64::from(value.0)));
                }
                Instruction::LoadNil { dst } => put(registers, dst.0, Value::Nil),
                Instruction::LoadBool { value, dst } => put(registers, dst.0, Value::Bool(value)),
                Instruction::Move { src, dst } => {
                    let value = read(registers, src);
                    put(registers, dst.0, value);
                }
                Instruction::Drop { src } => {
                    registers[usize::from(src.reg)] = Value::Nil;
                }
                Instruction::LoadCapture { index, dst } => {
                    if let Value::Closure(closure) = &registers[0] {
                        let value = closure.captures()[usize::from(index.0)].clone();
                        put(registers, dst.0, value);
                    }
                }
                Instruction::LoadSelf { dst } => {
                    let value = registers[0].clone();
                    put(registers, dst.0, value);
                }

                Instruction::LoadGlobal { global, dst } => {
                    let slot = unit.globals[usize::from(global.0)];
                    let value = match find_global(self.globals, &self.fiber.overlay, slot) {
                        Some(value) => value.clone(),
                        None => check!(unbound(unit, global.0)),
                    };
                    put(registers, dst.0, value);
                }
                Instruction::StoreGlobal { global, src } => {
                    let value = read(registers, src);
                    let slot = unit.globals[usize::from(global.0)];
                    match &mut self.fiber.overlay {
                        Some(overlay) => {
                            overlay.insert(slot, value);
                        }
                        None => self.globals.set(slot, value, units),
                    }
                }
                Instruction::IsDefined { global, dst } => {
                    let slot = unit.globals[usize::from(global.0)];
                    let defined = find_global(self.globals, &self.fiber.overlay, slot).is_some();
                    put(registers, dst.0, Value::Bool(defined));
                }

                Instruction::Add { a, b, dst } => {
                    binary!(a, b, dst, arith::add);
                }
                Instruction::Subtract { a, b, dst } => {
                    binary!(a, b, dst, arith::subtract);
                }
                Instruction::Multiply { a, b, dst } => {
                    binary!(a, b, dst, arith::multiply);
                }
                Instruction::Modulo { a, b, dst } => binary!(a, b, dst, arith::modulo),
                Instruction::Quotient { a, b, dst } => binary!(a, b, dst, arith::quotient),
                Instruction::Remainder { a, b, dst } => binary!(a, b, dst, arith::remainder),
                Instruction::AddConst { a, constant, dst, side } => {
                    with_constant!(a, constant!(constant), dst, side, arith::add);
                }
                Instruction::SubtractConst { a, constant, dst, side } => {
                    with_constant!(a, constant!(constant), dst, side, arith::subtract);
                }
                Instruction::MultiplyConst { a, constant, dst, side } => {
                    with_constant!(a, constant!(constant), dst, side, arith::multiply);
                }
                Instruction::ModuloConst { a, constant, dst } => {
                    with_constant!(a, constant!(constant), dst, Side::Right, arith::modulo);
                }
                Instruction::QuotientConst { a, constant, dst } => {
                    with_constant!(a, constant!(constant), dst, Side::Right, arith::quotient);
                }
                Instruction::RemainderConst { a, constant, dst } => {
                    with_constant!(a, constant!(constant), dst, Side::Right, arith::remainder);
                }
                Instruction::MultiplyInt { a, value, dst, side } => {
                    with_constant!(a, Value::Int(i64::from(value.0)), dst, side, arith::multiply);
                }
                Instruction::ModuloInt { a, value, dst } => {
                    with_constant!(a, Value::Int(value.value()), dst, Side::Right, arith::modulo);
                }
                Instruction::QuotientInt { a, value, dst } => {
                    with_constant!(a, Value::Int(value.value()), dst, Side::Right, arith::quotient);
                }
                Instruction::AddSmall { a, value, dst, written } => {
                    let a = read(registers, a);
                    let sum = check!(arith::add_small(cx, a, i64::from(value.0), written));
                    put(registers, dst.0, sum);
                    safepoint!();
                }
                Instruction::Equal { a, b, dst } => {
                    let result = compare!(a, b, equal);
                    put(registers, dst.0, Value::Bool(result));
                }
                Instruction::Less { a, b, dst } => {
                    let result = compare!(a, b, less);
                    put(registers, dst.0, Value::Bool(result));
                }
                Instruction::LessEqual { a, b, dst } => {
                    let result = compare!(a, b, less_equal);
                    put(registers, dst.0, Value::Bool(result));
                }
                Instruction::CompareConst { relation, a, constant, dst } => {
                    let a = read(registers, a);
                    let constant = &unit.constants[usize::from(constant.0)];
                    let result = check!(holds(cx, relation, &a, constant));
                    put(registers, dst.0, Value::Bool(result));
                }
                Instruction::Not { a, dst } => {
                    let truthy = condition!(a, is_truthy);
                    put(registers, dst.0, Value::Bool(!truthy));
                }

                Instruction::GetKey { src, constant, dst } => {
                    let key = &unit.constants[usize::from(constant.0)];
                    let found = match &registers[usize::from(src.reg)] {
                        Value::Map(map) => {
                            let row = match key {
                                Value::Keyword(symbol) => map.find_named(cx, *symbol),
                                key => check!(map.find_flexible(cx, key)),
                            };
                            row.map_or(Value::Nil, |row| map.value(row).clone())
                        }
                        _ => Value::Nil,
                    };
                    if src.last {
                        registers[usize::from(src.reg)] = Value::Nil;
                    }
                    put(registers, dst.0, found);
                }

                Instruction::Element { src, index, dst } => {
                    let item = match &registers[usize::from(src.reg)] {
                        Value::Vector(vector) => {
                            usize::try_from(index.0).ok().and_then(|index| vector.get(index))
                        }
                        _ => None,
                    };
                    if src.last {
                        registers[usize::from(src.reg)] = Value::Nil;
                    }
                    put(registers, dst.0, item.unwrap_or_default());
                }

                Instruction::MakeVector { items, dst } => {
                    let items = take_args(registers, items);
                    put(registers, dst.0, Value::Vector(VectorNode::new(items)));
                    safepoint!();
                }
                Instruction::AppendVector { src, items, dst } => {
                    let mut vector = match read(registers, src) {
                        Value::Vector(node) => node,
                        _ => VectorNode::new(Vec::new()),
                    };
                    for item in take_args(registers, items) {
                        vector = check!(VectorNode::push(vector, cx, item));
                    }
                    put(registers, dst.0, Value::Vector(vector));
                    safepoint!();
                }
                Instruction::MakeMap { items, dst } => {
                    let map = MapNode::with_capacity(usize::from(items.count / 2));
                    let map = check!(add_entries(cx, map, take_args(registers, items)));
                    put(registers, dst.0, Value::Map(map));
                    safepoint!();
                }
                Instruction::MakeRecord { keys, items, dst } => {
                    let map = make_record(&unit.constants[usize::from(keys.0)], registers, items);
                    put(registers, dst.0, map);
                    safepoint!();
                }
                Instruction::AppendMap { src, items, dst } => {
                    let map = match read(registers, src) {
                        Value::Map(map) => map,
                        _ => MapNode::empty(),
                    };
                    let map = check!(add_entries(cx, map, take_args(registers, items)));
                    put(registers, dst.0, Value::Map(map));
                    safepoint!();
                }
                Instruction::MakeSet { items, dst } => {
                    let set = SetNode::with_capacity(usize::from(items.count));
                    let set = check!(add_members(cx, set, take_args(registers, items)));
                    put(registers, dst.0, Value::Set(set));
                    safepoint!();
                }
                Instruction::AppendSet { src, items, dst } => {
                    let set = match read(registers, src) {
                        Value::Set(set) => set,
                        _ => SetNode::empty(),
                    };
                    let set = check!(add_members(cx, set, take_args(registers, items)));
                    put(registers, dst.0, Value::Set(set));
                    safepoint!();
                }
                Instruction::MakeClosure { proto, captures, dst } => {
                    let closure = Closure::new(&unit.code, proto, take_args(registers, captures));
                    put(registers, dst.0, Value::Closure(closure));
                    safepoint!();
                }

                Instruction::Jump { to } => jump!(to.0),
                // The next two instructions do it.
                Instruction::CountLoop { .. } => {}
                Instruction::LoopBack { counter, to } => {
                    jump!(to.0);
                    if let Value::Int(rounds) = &mut registers[usize::from(counter.0)] {
                        *rounds += 1;
                        if *rounds as u64 > cx.loop_limit {
                            let fault = loop_limit(cx.loop_limit);
                            save!();
                            return Err(fault);
                        }
                    }
                    cx.fuel.slice -= 1;
                    if cx.fuel.slice < 0 {
                        save!();
                        return Ok(After::Stop(Stop::SliceEnd));
                    }
                }
                Instruction::JumpIfFalse { condition, to } => {
                    if !condition!(condition, is_truthy) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpIfTrue { condition, to } => {
                    if condition!(condition, is_truthy) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpIfNil { condition, to } => {
                    if condition!(condition, is_nil) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpUnlessEqual { a, b, to } => {
                    if !compare!(a, b, equal) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpUnlessLess { a, b, to } => {
                    if !compare!(a, b, less) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpUnlessLessEqual { a, b, to } => {
                    if !compare!(a, b, less_equal) {
                        jump!(to.0);
                    }
                }
                Instruction::JumpUnlessEqualInt { a, to } => {
                    jump_unless_int!(Relation::Equal, a, to);
                }
                Instruction::JumpUnlessNotEqualInt { a, to } => {
                    jump_unless_int!(Relation::NotEqual, a, to);
                }
                Instruction::JumpUnlessLessInt { a, to } => {
                    jump_unless_int!(Relation::Less, a, to);
                }
                Instruction::JumpUnlessLessEqualInt { a, to } => {
                    jump_unless_int!(Relation::LessEqual, a, to);
                }
                Instruction::JumpUnlessGreaterInt { a, to } => {
                    jump_unless_int!(Relation::Greater, a, to);
                }
                Instruction::JumpUnlessGreaterEqualInt { a, to } => {
                    jump_unless_int!(Relation::GreaterEqual, a, to);
                }
                Instruction::JumpUnlessConst { relation, a, constant, to } => {
                    let a = read(registers, a);
                    let constant = &unit.constants[usize::from(constant.0)];
                    if !check!(holds(cx, relation, &a, constant)) {
                        jump!(to.0);
                    }
                }
                Instruction::Next { seq, dst, to } => {
                    let index = match registers[usize::from(seq.0) + 1] {
                        Value::Int(index) => index as usize,
                        _ => 0,
                    };
                    let item = match &registers[usize::from(seq.0)] {
                        Value::Vector(vector) => vector.get(index),
                        _ => None,
                    };
                    match item {
                        None => jump!(to.0),
                        Some(item) => {
                            registers[usize::from(seq.0) + 1] = Value::Int(index as i64 + 1);
                            put(registers, dst.0, item);
                            cx.fuel.slice -= 1;
                            if cx.fuel.slice < 0 {
                                save!();
                                return Ok(After::Stop(Stop::SliceEnd));
                            }
                        }
                    }
                }

                Instruction::Call1 { builtin, a, dst } => {
                    let mut arguments = [read(registers, a)];
                    let implementation = builtin.info().implementation;
                    if let Implementation::Plain(run) = implementation {
                        check!(check_arity(cx, builtin, 1));
                        let result = check!(run(cx, &mut arguments));
                        put(registers, dst.0, result);
                        safepoint!();
                        break 'one;
                    }
                    save!();
                    let dst = base + usize::from(dst.0);
                    let top = base + usize::from(proto.registers);
                    return self.call_builtin(builtin, &mut arguments, dst, top);
                }
                Instruction::Call2 { builtin, a, b, dst } => {
                    let mut arguments = [read(registers, a), read(registers, b)];
                    let implementation = builtin.info().implementation;
                    if let Implementation::Plain(run) = implementation {
                        check!(check_arity(cx, builtin, 2));
                        let result = check!(run(cx, &mut arguments));
                        put(registers, dst.0, result);
                        safepoint!();
                        break 'one;
                    }
                    save!();
                    let dst = base + usize::from(dst.0);
                    let top = base + usize::from(proto.registers);
                    return self.call_builtin(builtin, &mut arguments, dst, top);
                }
                Instruction::CallBuiltin { builtin, window } => {
                    let from = usize::from(window.at) + 1;
                    let count = usize::from(window.count);
                    if let Implementation::Plain(run) = builtin.info().implementation {
                        check!(check_arity(cx, builtin, count));
                        let arguments = &mut registers[from..from + count];
                        let result = check!(run(cx, arguments));
                        registers[from..from + count].fill(Value::Nil);
                        put(registers, window.at, result);
                        safepoint!();
                        break 'one;
                    }
                    let mut arguments = check!(Arguments::taken(cx, &mut registers[from..from + count]));
                    save!();
                    let dst = base + usize::from(window.at);
                    let top = base + usize::from(proto.registers);
                    return self.call_builtin(builtin, &mut arguments, dst, top);
                }
                Instruction::CallGlobal { global, window } => {
                    save!();
                    let slot = unit.globals[usize::from(global.0)];
                    let callee = match find_global(self.globals, &self.fiber.overlay, slot) {
                        Some(Value::Closure(closure)) => {
                            if let Some((callee, index)) = target(units, closure, window.count) {
                                // A function that does not look at register 0 needs no closure there.
                                if callee.entries[usize::from(index.0)].needs_closure() {
                                    put(registers, window.at, Value::Closure(closure.clone()));
                                }
                                enter!(closure.unit, index, window.at);
                            }
                            Value::Closure(closure.clone())
                        }
                        Some(value) => value.clone(),
                        None => unbound(unit, global.0)?,
                    };
                    put(registers, window.at, callee);
                    return self.call_window(base, proto, window);
                }
                Instruction::Call { window, .. } => {
                    save!();
                    if let Value::Closure(closure) = &registers[usize::from(window.at)]
                        && let Some((_, index)) = target(units, closure, window.count)
                    {
                        enter!(closure.unit, index, window.at);
                    }
                    return self.call_window(base, proto, window);
                }
                Instruction::Return { src } => {
                    let value = read(registers, src);
                    // Frees the closure, unless the function was called directly.
                    registers[0] = Value::Nil;
                    self.fiber.frames.pop();
                    if let Some(Frame::Code { .. }) = self.fiber.frames.last() {
                        // The result goes where the callee's register 0 was.
                        put(registers, 0, value);
                        return Ok(After::Reload);
                    }
                    return match self.deliver(value, base as u32)? {
                        Some(stop) => Ok(After::Stop(stop)),
                        None => Ok(After::Reload),
                    };
                }
                Instruction::Exit { signal, src } => {
                    let value = read(registers, src);
                    save!();
                    return Ok(After::Stop(Stop::Signal(signal, value)));
                }
            }
        }
        save!();
        Ok(After::Reload)
    }
}
