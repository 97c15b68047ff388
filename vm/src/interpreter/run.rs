//! Executes one bytecode instruction of any kind: the complete but slower path for the cases that the interpreter's hot
//! loop does not handle.
//!
//! A register write overwrites the old value without dropping it. The compiler guarantees, and the verifier has
//! checked, that the register is empty, so only a scalar is overwritten (see `bytecode`). Debug builds assert it.

use super::fiber::{Fiber, Frame};
use super::operations::{
    add_entries, add_members, find_global, holds, loop_limit, make_record, take_args, target, unbound,
};
use super::{Machine, Stop};
use crate::apply::check_arity;
use crate::arith;
use crate::builtins::Implementation;
use crate::bytecode::WINDOW;
use crate::bytecode::instruction::{Instruction, Relation, Side, Src, instruction_table};
use crate::bytecode::operation::Operation;
use crate::context::{Context, Function, Unit};
use crate::fault::{Fault, Reason, Result};
use crate::memory::account;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
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

impl Machine<'_> {
    /// Runs one instruction of the frame on top. `None`: the frame that is on top then goes on.
    #[allow(clippy::too_many_lines)] // One arm an instruction; splitting it would hide the table.
    #[inline(never)]
    pub(super) fn run_one(&mut self) -> Result<Option<Stop>> {
        let functions = self.functions;
        let Some(&Frame::Code { function, pc, base }) = self.fiber.frames.last() else {
            return Ok(None);
        };
        // Frames are made from verified programs of this isolate, which stay while it runs.
        let function = functions.get(function.index());
        let (Some(function), Some(proto)) = (function, function.and_then(Function::compiled)) else {
            return Err(Fault::new(Reason::ExecutionError, "no such function"));
        };
        let unit: &Unit = &function.unit;
        let (mut pc, base) = (pc as usize, base as usize);
        let cx: &mut Context = self.cx;
        Fiber::reserve_window(&mut self.fiber.stack, base);
        // Recursion grows the stack, which only this check sees.
        if account::attention() {
            cx.attend()?;
        }
        let Some(registers) = self.fiber.stack[base..].first_chunk_mut::<WINDOW>() else {
            return Err(Fault::new(Reason::ExecutionError, "no register window"));
        };
        // Stores this frame's position before control may leave it.
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
        // After an instruction that allocates: handles memory, garbage and copies.
        macro_rules! safepoint {
            () => {
                if account::attention() {
                    check!(cx.attend());
                }
            };
        }
        // Continues in a function with its arguments in place.
        macro_rules! enter {
            ($function:expr, $at:expr) => {{
                let base = base + usize::from($at);
                let frame = Frame::Code { function: $function, pc: 0, base: base as u32 };
                self.fiber.frames.push(frame);
                cx.fuel.slice -= 1;
                if cx.fuel.slice < 0 {
                    return Ok(Some(Stop::SliceEnd));
                }
                return Ok(None);
            }};
        }
        macro_rules! jump {
            ($to:expr) => {
                pc = pc.wrapping_add_signed($to as isize)
            };
        }
        macro_rules! constant {
            ($constant:expr) => {
                &unit.constants[usize::from($constant.0)]
            };
        }
        // An operation on numbers of any kind; the hot loop has tried integers and floats.
        macro_rules! binary {
            ($operation:ident, $a:expr, $b:expr, $dst:expr) => {{
                let (a, b) = ($a, $b);
                let result = check!(arith::compute(cx, Operation::$operation, a, b));
                put(registers, $dst.0, result);
                safepoint!();
            }};
        }
        macro_rules! with_literal {
            ($operation:ident, $a:expr, $literal:expr, $dst:expr, $side:expr) => {{
                let (a, literal) = (read(registers, $a), $literal);
                match $side {
                    Side::Right => binary!($operation, a, literal, $dst),
                    Side::Left => binary!($operation, literal, a, $dst),
                }
            }};
        }
        // Tests a value; the last reader drops it.
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
        // Calls a builtin with arguments from registers.
        macro_rules! call_builtin {
            ($builtin:expr, $arguments:expr, $dst:expr) => {{
                let mut arguments = $arguments;
                if let Implementation::Direct(run) = $builtin.info().implementation {
                    check!(check_arity(cx, $builtin, arguments.len()));
                    let result = check!(run(cx, &mut arguments));
                    put(registers, $dst, result);
                    safepoint!();
                } else {
                    save!();
                    let dst = base + usize::from($dst);
                    let top = base + usize::from(proto.registers);
                    return self.call_builtin($builtin, &mut arguments, dst, top);
                }
            }};
        }
        // The work of the rows.
        macro_rules! work {
            (put, $dst:ident, $value:expr) => {
                put(registers, $dst.0, $value)
            };
            (load_const, $constant:ident, $dst:ident) => {
                put(registers, $dst.0, constant!($constant).clone())
            };
            (move_value, $src:ident, $dst:ident) => {{
                let value = read(registers, $src);
                put(registers, $dst.0, value);
            }};
            (drop_value, $src:ident) => {
                registers[usize::from($src.0)] = Value::Nil
            };
            (load_capture, $index:ident, $dst:ident) => {{
                if let Value::Closure(closure) = &registers[0] {
                    let value = closure.captures()[usize::from($index.0)].clone();
                    put(registers, $dst.0, value);
                }
            }};
            (load_global, $global:ident, $dst:ident) => {{
                let slot = unit.globals[usize::from($global.0)];
                let value = match find_global(self.globals, &self.fiber.overlay, slot) {
                    Some(value) => value.clone(),
                    None => check!(unbound(unit, $global.0)),
                };
                put(registers, $dst.0, value);
            }};
            (store_global, $global:ident, $src:ident) => {{
                let value = read(registers, $src);
                let slot = unit.globals[usize::from($global.0)];
                match &mut self.fiber.overlay {
                    Some(overlay) => {
                        overlay.insert(slot, value);
                    }
                    None => self.globals.set(slot, value, functions),
                }
            }};
            (is_defined, $global:ident, $dst:ident) => {{
                let slot = unit.globals[usize::from($global.0)];
                let defined = find_global(self.globals, &self.fiber.overlay, slot).is_some();
                put(registers, $dst.0, Value::Bool(defined));
            }};

            (compute, $operation:ident, $a:ident, $b:ident, $dst:ident) => {
                binary!($operation, read(registers, $a), read(registers, $b), $dst)
            };
            (compute_constant, $operation:ident, $a:ident, $constant:ident, $dst:ident, $side:expr) => {
                with_literal!($operation, $a, constant!($constant).clone(), $dst, $side)
            };
            (compute_int, $operation:ident, $a:ident, $value:ident, $dst:ident, $side:expr) => {
                with_literal!($operation, $a, Value::Int($value.value()), $dst, $side)
            };
            (add_small, $a:ident, $value:ident, $dst:ident, $written:ident) => {{
                let a = read(registers, $a);
                let sum = check!(arith::add_small(cx, a, $value.value(), $written));
                put(registers, $dst.0, sum);
                safepoint!();
            }};

            (truthy, $src:ident) => {
                condition!($src, is_truthy)
            };
            (falsy, $src:ident) => {
                !condition!($src, is_truthy)
            };
            (nil, $src:ident) => {
                condition!($src, is_nil)
            };
            (compare, $relation:ident, $a:ident, $b:ident) => {{
                let (a, b) = (read(registers, $a), read(registers, $b));
                check!(holds(cx, Relation::$relation, &a, &b))
            }};
            (compare_int, $relation:ident, $a:ident) => {{
                let a = read(registers, $a.src());
                check!(holds(cx, Relation::$relation, &a, &Value::Int($a.value())))
            }};
            (relate, $relation:ident, $a:ident, $constant:ident) => {{
                let a = read(registers, $a);
                check!(holds(cx, $relation, &a, constant!($constant)))
            }};
            (answer, $dst:ident, $question:ident ($($operand:tt)*)) => {{
                let answer = work!($question, $($operand)*);
                put(registers, $dst.0, Value::Bool(answer));
            }};
            (jump_if, $to:ident, $question:ident ($($operand:tt)*)) => {
                if work!($question, $($operand)*) {
                    jump!($to.0);
                }
            };
            (jump_unless, $to:ident, $question:ident ($($operand:tt)*)) => {
                if !work!($question, $($operand)*) {
                    jump!($to.0);
                }
            };

            (get_key, $src:ident, $key:ident, $dst:ident) => {{
                let key = constant!($key);
                let found = match &registers[usize::from($src.reg)] {
                    Value::Map(map) => {
                        let row = match key {
                            Value::Keyword(symbol) => map.find_named(cx, *symbol),
                            key => check!(map.find_flexible(cx, key)),
                        };
                        row.map_or(Value::Nil, |row| map.value(row).clone())
                    }
                    _ => Value::Nil,
                };
                if $src.last {
                    registers[usize::from($src.reg)] = Value::Nil;
                }
                put(registers, $dst.0, found);
            }};
            (element, $src:ident, $index:ident, $dst:ident) => {{
                let item = match &registers[usize::from($src.reg)] {
                    Value::Vector(vector) => {
                        usize::try_from($index.0).ok().and_then(|index| vector.get(index))
                    }
                    _ => None,
                };
                if $src.last {
                    registers[usize::from($src.reg)] = Value::Nil;
                }
                put(registers, $dst.0, item.unwrap_or_default());
            }};
            (make_vector, $items:ident, $dst:ident) => {{
                let items = take_args(registers, $items);
                put(registers, $dst.0, Value::Vector(VectorNode::new(items)));
                safepoint!();
            }};
            (append_vector, $src:ident, $items:ident, $dst:ident) => {{
                let mut vector = match read(registers, $src.src()) {
                    Value::Vector(node) => node,
                    _ => VectorNode::new(Vec::new()),
                };
                for item in take_args(registers, $items) {
                    vector = check!(VectorNode::push(vector, cx, item));
                }
                put(registers, $dst.0, Value::Vector(vector));
                safepoint!();
            }};
            (make_map, $items:ident, $dst:ident) => {{
                let map = MapNode::with_capacity(usize::from($items.count / 2));
                let map = check!(add_entries(cx, map, take_args(registers, $items)));
                put(registers, $dst.0, Value::Map(map));
                safepoint!();
            }};
            (make_record, $entries:ident, $dst:ident) => {{
                let map = make_record(&unit.constants[usize::from($entries.keys)], registers, $entries.items);
                put(registers, $dst.0, map);
                safepoint!();
            }};
            (append_map, $src:ident, $items:ident, $dst:ident) => {{
                let map = match read(registers, $src.src()) {
                    Value::Map(map) => map,
                    _ => MapNode::empty(),
                };
                let map = check!(add_entries(cx, map, take_args(registers, $items)));
                put(registers, $dst.0, Value::Map(map));
                safepoint!();
            }};
            (make_set, $items:ident, $dst:ident) => {{
                let set = SetNode::with_capacity(usize::from($items.count));
                let set = check!(add_members(cx, set, take_args(registers, $items)));
                put(registers, $dst.0, Value::Set(set));
                safepoint!();
            }};
            (append_set, $src:ident, $items:ident, $dst:ident) => {{
                let set = match read(registers, $src.src()) {
                    Value::Set(set) => set,
                    _ => SetNode::empty(),
                };
                let set = check!(add_members(cx, set, take_args(registers, $items)));
                put(registers, $dst.0, Value::Set(set));
                safepoint!();
            }};
            (make_closure, $template:ident, $dst:ident) => {{
                let closure = Closure::new(&unit.code, $template.proto, take_args(registers, $template.captures));
                    put(registers, $dst.0, Value::Closure(closure));
                    safepoint!();
                }};

            (jump, $to:ident) => {
                jump!($to.0)
            };
            // The next two instructions do the work.
            (count_loop, $variable:ident, $step:ident, $to:ident) => {{}};
            (loop_back, $counter:ident, $to:ident) => {{
                jump!($to.0);
                if let Value::Int(rounds) = &mut registers[usize::from($counter.0)] {
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
                    return Ok(Some(Stop::SliceEnd));
                }
            }};
            (next, $seq:ident, $dst:ident, $to:ident) => {{
                let index = match registers[usize::from($seq.0) + 1] {
                    Value::Int(index) => index as usize,
                    _ => 0,
                };
                let item = match &registers[usize::from($seq.0)] {
                    Value::Vector(vector) => vector.get(index),
                    _ => None,
                };
                match item {
                    None => jump!($to.0),
                    Some(item) => {
                        registers[usize::from($seq.0) + 1] = Value::Int(index as i64 + 1);
                        put(registers, $dst.0, item);
                        cx.fuel.slice -= 1;
                        if cx.fuel.slice < 0 {
                            save!();
                            return Ok(Some(Stop::SliceEnd));
                        }
                    }
                }
            }};

            (call_one, $builtin:ident, $a:ident, $dst:ident) => {
                call_builtin!($builtin, [read(registers, $a)], $dst.0)
            };
            (call_two, $builtin:ident, $a:ident, $b:ident, $dst:ident) => {
                call_builtin!($builtin, [read(registers, $a), read(registers, $b)], $dst.0)
            };
            (call_many, $builtin:ident, $window:ident) => {{
                let from = usize::from($window.at) + 1;
                let count = usize::from($window.count);
                if let Implementation::Direct(run) = $builtin.info().implementation {
                    check!(check_arity(cx, $builtin, count));
                    let arguments = &mut registers[from..from + count];
                    let result = check!(run(cx, arguments));
                    registers[from..from + count].fill(Value::Nil);
                    put(registers, $window.at, result);
                    safepoint!();
                } else {
                    let mut arguments = check!(Arguments::taken(cx, &mut registers[from..from + count]));
                    save!();
                    let dst = base + usize::from($window.at);
                    let top = base + usize::from(proto.registers);
                    return self.call_builtin($builtin, &mut arguments, dst, top);
                }
            }};
            (call_global, $global:ident, $window:ident) => {{
                save!();
                let slot = unit.globals[usize::from($global.0)];
                let callee = match find_global(self.globals, &self.fiber.overlay, slot) {
                    Some(Value::Closure(closure)) => {
                        if let Some(callee) = target(functions, closure, $window.count) {
                            // A function that does not read register 0 needs no closure there.
                            if functions[callee.index()].entry.needs_closure() {
                                put(registers, $window.at, Value::Closure(closure.clone()));
                            }
                            enter!(callee, $window.at);
                        }
                        Value::Closure(closure.clone())
                    }
                    Some(value) => value.clone(),
                    None => unbound(unit, $global.0)?,
                };
                put(registers, $window.at, callee);
                return self.call_window(base, proto, $window);
            }};
            (call, $window:ident) => {{
                save!();
                if let Value::Closure(closure) = &registers[usize::from($window.at)]
                    && let Some(callee) = target(functions, closure, $window.count)
                {
                    enter!(callee, $window.at);
                }
                return self.call_window(base, proto, $window);
            }};
            (return_value, $src:ident) => {{
                let value = read(registers, $src.src());
                // Frees the closure, unless the function was called directly.
                registers[0] = Value::Nil;
                self.fiber.frames.pop();
                if let Some(Frame::Code { .. }) = self.fiber.frames.last() {
                    // The result takes the slot of the callee's register 0.
                    put(registers, 0, value);
                    return Ok(None);
                }
                return self.deliver(value, base as u32);
            }};
            (exit, $signal:ident, $src:ident) => {{
                let value = read(registers, $src.src());
                save!();
                return Ok(Some(Stop::Signal($signal, value)));
            }};
        }
        // The arms: one for each row.
        macro_rules! arms {
            ([$instruction:expr] $(
                $(#[doc = $doc:literal])+
                $name:ident $text:literal $flow:ident { $($field:ident: $type:ty),* }
                $loops:ident $work:ident ($($operand:tt)*);
            )+) => {
                match $instruction {
                    $(Instruction::$name { $($field),* } => {
                        $(let _ = $field;)*
                        work!($work, $($operand)*)
                    })+
                }
            };
        }

        // The verifier has checked that control stays inside the code.
        let Some(&instruction) = function.code.get(pc) else {
            return Err(Fault::new(Reason::ExecutionError, "no such instruction"));
        };
        pc += 1;
        instruction_table!(arms instruction);
        save!();
        Ok(None)
    }
}
