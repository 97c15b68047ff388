//! The hot loop of the interpreter: runs the common cases of frequent instructions, and leaves all other cases to the
//! complete, slower loop.
//!
//! It exists for the register allocator. A loop that holds every instruction with its slow cases keeps the program
//! counter in memory, which costs more than most instructions. This loop has few live variables, and its calls are
//! marked as cold, however frequent they are: otherwise the variables would live in memory for the sake of the calls
//! (a tenth of all instructions of a counting loop). It leaves everything else to the complete table of
//! [`super::run`], so the hot loop may be removed without changing the behaviour of any program.
//!
//! A register after its last read may still hold a scalar here: an empty register is one without a value to drop.

use super::fiber::Frame;
use super::operations::make_record;
use super::out_of_line::{
    ReturnAction, call_many, call_one, call_two, get_key, is_less, load_capture, make_closure, make_vector,
    related,
};
use super::registers::window;
use super::run::{put, read};
use super::{HotExit, Machine, chain, leaf};
use crate::bytecode::instruction::{Instruction, Relation, instruction_table};
use crate::bytecode::operation::Operation;
use crate::context::Unit;
use crate::fault::Result;
use crate::interpreter::globals::{Callee, Shared};
use crate::memory::account;
use crate::value::Value;
use crate::value::slot::{clear, fill_copy};
use std::hint::cold_path;
use std::mem;

/// The loop limit if there is none.
const UNLIMITED: u64 = u64::MAX;

impl Machine<'_> {
    /// Runs until an instruction needs the complete table (the frame on top is at that instruction), or the machine
    /// on top requests an action.
    ///
    /// # Errors
    /// A fault of a builtin; the frame on top is past its call.
    #[inline(never)]
    pub(super) fn run_hot(&mut self) -> Result<HotExit> {
        let functions = self.functions;
        let is_limited = self.cx.loop_limit != UNLIMITED;
        'program: loop {
            let Some(&Frame::Code { function: mut index, pc, mut base }) = self.fiber.frames.last() else {
                return Ok(HotExit::Drive);
            };
            let mut pc = pc as usize;
            // Definitions of a pmap branch take precedence over globals; only the complete table looks at them.
            let globals = match self.fiber.overlay {
                None => self.globals.shared(),
                Some(_) => Shared::NONE,
            };
            let mut slice = self.cx.fuel.slice;
            'frame: loop {
                // The complete table handles a missing function.
                let Some(function) = functions.get(index.index()) else { break 'frame };
                let (code, unit): (&[Instruction], &Unit) = (&function.code, &function.unit);
                let Some(registers) = window(&mut self.fiber.stack, base) else { break 'frame };
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
                            pc = pc.wrapping_add_signed($to.0 as isize)
                        };
                    }
                    macro_rules! constant {
                        ($constant:expr) => {
                            &unit.constants[usize::from($constant.0)]
                        };
                    }
                    // Here a literal is always the right operand.
                    macro_rules! ignores_side {
                        ($operation:ident, side) => {
                            const { assert!(Operation::$operation.is_commutative()) }
                        };
                        ($operation:ident, Side::Right) => {};
                    }
                    macro_rules! binary {
                        ($operation:ident, $a:expr, $b:expr, $dst:expr) => {
                            match (&registers[usize::from($a.reg)], $b) {
                                (Value::Int(a), Value::Int(b)) => {
                                    let Some(result) = Operation::$operation.ints(*a, *b) else { leave!() };
                                    put(registers, $dst.0, Value::Int(result));
                                }
                                (Value::Float(a), Value::Float(b)) => {
                                    cold_path();
                                    let Some(result) = Operation::$operation.floats(*a, *b) else { leave!() };
                                    put(registers, $dst.0, Value::Float(result));
                                }
                                _ => leave!(),
                            }
                        };
                    }
                    // If memory or garbage needs attention, the complete table allocates.
                    macro_rules! allocates {
                        () => {
                            cold_path();
                            if account::attention() {
                                leave!();
                            }
                        };
                    }
                    // Tests a value; the last reader drops it.
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
                    // Calls a builtin out of line; a fault or a machine exits the loop.
                    macro_rules! call_builtin {
                    ($call:ident, $($operand:expr),*) => {{
                        if slice <= 0 {
                            leave!();
                        }
                        cold_path();
                        self.cx.fuel.slice = slice;
                        if !$call(self.cx, &mut self.pending, registers, $($operand),*) {
                            return self.settle_builtin(pc + 1);
                        }
                        slice = self.cx.fuel.slice;
                    }};
                }
                    // Continues in the function on top, whichever program it belongs to.
                    macro_rules! goto {
                        ($function:expr, $pc:expr, $base:expr) => {{
                            index = $function;
                            pc = $pc;
                            base = $base;
                            continue 'frame;
                        }};
                    }
                    // Computes a call of a leaf function.
                    macro_rules! call_leaf {
                        ($function:expr, $window:expr) => {
                            if let Some(leaf) = $function.leaf()
                                && slice > 0
                                && leaf::call(registers, $window, *leaf)
                            {
                                slice -= 1;
                                pc += 1;
                                continue;
                            }
                        };
                    }
                    macro_rules! enter {
                        ($function:expr, $at:expr) => {{
                            let next_base = base + u32::from($at);
                            let frame = Frame::Code { function: $function, pc: 0, base: next_base };
                            if slice <= 0 || !self.fiber.frames.enter(pc + 1, frame) {
                                leave!();
                            }
                            slice -= 1;
                            goto!($function, 0, next_base);
                        }};
                    }
                    // The work of the rows marked as hot.
                    macro_rules! work {
                        (put, $dst:ident, $value:expr) => {
                            put(registers, $dst.0, $value)
                        };
                        (load_const, $constant:ident, $dst:ident) => {{
                            cold_path();
                            fill_copy(&mut registers[usize::from($dst.0)], constant!($constant));
                        }};
                        (move_value, $src:ident, $dst:ident) => {
                            // An integer was written in two parts: loading it as a whole would wait for the stores.
                            if let Value::Int(int) = registers[usize::from($src.reg)] {
                                put(registers, $dst.0, Value::Int(int));
                            } else {
                                cold_path();
                                let value = read(registers, $src);
                                put(registers, $dst.0, value);
                            }
                        };
                        (drop_value, $src:ident) => {
                            clear(&mut registers[usize::from($src.0)])
                        };
                        (load_capture, $index:ident, $dst:ident) => {{
                            let Value::Closure(closure) = &registers[0] else { leave!() };
                            match &closure.captures()[usize::from($index.0)] {
                                &Value::Int(int) => put(registers, $dst.0, Value::Int(int)),
                                _ => {
                                    cold_path();
                                    load_capture(registers, $index, $dst)
                                }
                            }
                        }};
                        (load_global, $global:ident, $dst:ident) => {{
                            cold_path();
                            let slot = unit.globals[usize::from($global.0)];
                            let Some(value) = globals.get(slot) else { leave!() };
                            fill_copy(&mut registers[usize::from($dst.0)], value);
                        }};

                        (compute, $operation:ident, $a:ident, $b:ident, $dst:ident) => {
                            binary!($operation, $a, &registers[usize::from($b.reg)], $dst)
                        };
                        (compute_constant, $operation:ident, $a:ident, $constant:ident, $dst:ident, $($side:tt)*) => {{
                            ignores_side!($operation, $($side)*);
                            binary!($operation, $a, constant!($constant), $dst)
                        }};
                        (compute_int, $operation:ident, $a:ident, $value:ident, $dst:ident, $($side:tt)*) => {{
                            ignores_side!($operation, $($side)*);
                            let Value::Int(int) = registers[usize::from($a.reg)] else { leave!() };
                            let Some(result) = Operation::$operation.by_literal(int, $value.value()) else {
                                leave!()
                            };
                            put(registers, $dst.0, Value::Int(result));
                        }};
                        (add_small, $a:ident, $value:ident, $dst:ident, $written:ident) => {
                            work!(compute_int, Add, $a, $value, $dst, Side::Right)
                        };

                        (truthy, $src:ident) => {
                            condition!($src, is_truthy)
                        };
                        (falsy, $src:ident) => {
                            !condition!($src, is_truthy)
                        };
                        (nil, $src:ident) => {
                            condition!($src, is_nil)
                        };
                        (compare, $relation:ident, $a:ident, $b:ident) => {
                            match (&registers[usize::from($a.reg)], &registers[usize::from($b.reg)]) {
                                (Value::Int(a), Value::Int(b)) => Relation::$relation.holds(a, b),
                                (Value::Float(a), Value::Float(b)) => {
                                    cold_path();
                                    Relation::$relation.holds(a, b)
                                }
                                _ => leave!(),
                            }
                        };
                        (compare_int, $relation:ident, $a:ident) => {{
                            let Value::Int(a) = &registers[usize::from($a.reg)] else { leave!() };
                            Relation::$relation.holds(a, &$a.value())
                        }};
                        (relate, $relation:ident, $a:ident, $constant:ident) => {{
                            let register = &mut registers[usize::from($a.reg)];
                            let Some(answer) = related($relation, register, constant!($constant)) else {
                                leave!()
                            };
                            if $a.last {
                                clear(register);
                            }
                            answer
                        }};
                        (answer, $dst:ident, $question:ident ($($operand:tt)*)) => {{
                            let answer = work!($question, $($operand)*);
                            put(registers, $dst.0, Value::Bool(answer));
                        }};
                        (jump_if, $to:ident, $question:ident ($($operand:tt)*)) => {
                            if work!($question, $($operand)*) {
                                jump!($to);
                            }
                        };
                        (jump_unless, $to:ident, $question:ident ($($operand:tt)*)) => {
                            if !work!($question, $($operand)*) {
                                jump!($to);
                            }
                        };

                        (get_key, $src:ident, $key:ident, $dst:ident) => {{
                            cold_path();
                            if !get_key(self.cx, unit, registers, $src, $key, $dst) {
                                leave!();
                            }
                        }};
                        (element, $src:ident, $index:ident, $dst:ident) => {{
                            cold_path();
                            let Value::Vector(vector) = &registers[usize::from($src.reg)] else {
                                leave!();
                            };
                            let item = vector.get($index.0 as usize).unwrap_or_default();
                            if $src.last {
                                clear(&mut registers[usize::from($src.reg)]);
                            }
                            put(registers, $dst.0, item);
                        }};
                        (make_vector, $items:ident, $dst:ident) => {{
                            allocates!();
                            make_vector(registers, $items, $dst);
                        }};
                        (make_closure, $template:ident, $dst:ident) => {{
                            allocates!();
                            make_closure(registers, unit, $template, $dst);
                        }};
                        (make_record, $entries:ident, $dst:ident) => {{
                            allocates!();
                            let keys = &unit.constants[usize::from($entries.keys)];
                            let map = make_record(keys, registers, $entries.items);
                            put(registers, $dst.0, map);
                        }};

                        (jump, $to:ident) => {
                            jump!($to)
                        };
                        (count_loop, $variable:ident, $step:ident, $to:ident) => {{
                            if let Value::Int(int) = registers[usize::from($variable.0)]
                                && let Some(sum) = int.checked_add(i64::from($step.0))
                                && slice > 0
                                && !is_limited
                            {
                                put(registers, $variable.0, Value::Int(sum));
                                slice -= 1;
                                jump!($to);
                                // Most loops begin with a test of the $variable.
                                let first = code.get(pc.wrapping_add(1));
                                if first.is_some_and(|test| is_less(registers, $variable, sum, test)) {
                                    pc = pc.wrapping_add(1);
                                }
                            }
                        }};
                        (loop_back, $counter:ident, $to:ident) => {{
                            // The last round of the limit and of the slice is left to the complete table.
                            if slice <= 0 {
                                leave!();
                            }
                            if is_limited {
                                match &mut registers[usize::from($counter.0)] {
                                    Value::Int(rounds) if (*rounds as u64) < self.cx.loop_limit => {
                                        *rounds += 1
                                    }
                                    _ => leave!(),
                                }
                            }
                            slice -= 1;
                            jump!($to);
                        }};
                        (next, $seq:ident, $dst:ident, $to:ident) => {{
                            cold_path();
                            let at = usize::from($seq.0);
                            let (Value::Vector(vector), Value::Int(index)) =
                                (&registers[at], &registers[at + 1])
                            else {
                                leave!();
                            };
                            let next = *index + 1;
                            match vector.get(*index as usize) {
                                None => jump!($to),
                                Some(_) if slice <= 0 => leave!(),
                                Some(item) => {
                                    registers[at + 1] = Value::Int(next);
                                    put(registers, $dst.0, item);
                                    slice -= 1;
                                }
                            }
                        }};

                        (call_one, $builtin:ident, $a:ident, $dst:ident) => {
                            call_builtin!(call_one, $builtin, $a, $dst)
                        };
                        (call_two, $builtin:ident, $a:ident, $b:ident, $dst:ident) => {
                            call_builtin!(call_two, $builtin, $a, $b, $dst)
                        };
                        (call_many, $builtin:ident, $window:ident) => {
                            call_builtin!(call_many, $builtin, $window)
                        };
                        (call_global, $global:ident, $window:ident) => {{
                            let slot = unit.globals[usize::from($global.0)];
                            let Some(&Callee { function: callee, ref entry }) = globals.callee(slot)
                            else {
                                leave!();
                            };
                            if entry.arguments != $window.count {
                                leave!();
                            }
                            if !entry.is_bare() {
                                cold_path();
                                if entry.needs_closure() {
                                    let Some(Value::Closure(closure)) = globals.get(slot) else {
                                        leave!();
                                    };
                                    // A refused call leaves the register unchanged.
                                    if slice <= 0 || !self.fiber.frames.has_room(1) {
                                        leave!();
                                    }
                                    put(registers, $window.at, Value::Closure(closure.clone()));
                                } else if let Some(function) = functions.get(callee.index()) {
                                    call_leaf!(function, $window);
                                }
                            }
                            enter!(callee, $window.at);
                        }};
                        (call, $window:ident) => {{
                            let closure = match &registers[usize::from($window.at)] {
                                Value::Closure(closure) => closure,
                                Value::Combinator(_) if slice > 1 && $window.count == 1 => {
                                    cold_path();
                                    let calls = leaf::call_chain(registers, $window, functions, slice);
                                    if calls != 0 {
                                        slice -= calls;
                                        pc += 1;
                                        continue;
                                    }
                                    let at = base + u32::from($window.at);
                                    if self.cx.leaves_callbacks || !chain::enter(self.fiber, functions, at, pc + 1) {
                                        leave!();
                                    }
                                    self.cx.fuel.slice = slice - 2;
                                    continue 'program;
                                }
                                _ => leave!(),
                            };
                            let callee = closure.function;
                            let Some(function) = functions.get(callee.index()) else { leave!() };
                            if function.entry.arguments != $window.count {
                                leave!();
                            }
                            call_leaf!(function, $window);
                            enter!(callee, $window.at);
                        }};
                        (return_value, $src:ident) => {{
                            let src = $src.src();
                            let Some(caller) = self.fiber.frames.leave() else {
                                cold_path();
                                self.cx.fuel.slice = slice;
                                match self.return_elsewhere(src, base)? {
                                    ReturnAction::Reenter => continue 'program,
                                    ReturnAction::SlowPath => leave!(),
                                    ReturnAction::Exit => {
                                        return Ok(mem::replace(&mut self.hot_exit, HotExit::SlowPath));
                                    }
                                }
                            };
                            // An integer was written in two parts: loading it as a whole would wait for the stores.
                            if let Value::Int(int) = registers[usize::from(src.reg)] {
                                // Frees the closure, unless the function was called directly.
                                if registers[0].is_heap() {
                                    registers[0] = Value::Nil;
                                }
                                put(registers, 0, Value::Int(int));
                            } else {
                                cold_path();
                                let value = read(registers, src);
                                registers[0] = value;
                            }
                            goto!(caller.function, caller.pc as usize, caller.base);
                        }};
                    }
                    // The arms of the loop, one for each row.
                    macro_rules! arms {
                        ([$instruction:expr] $(
                            $(#[doc = $doc:literal])+
                            $name:ident $text:literal $flow:ident { $($field:ident: $type:ty),* }
                            $loops:ident $work:ident ($($operand:tt)*);
                        )+) => {
                            match $instruction {
                                $(Instruction::$name { $($field),* } => {
                                    $(let _ = $field;)*
                                    arm!($loops $work, $($operand)*)
                                })+
                            }
                        };
                    }
                    macro_rules! arm {
                        (hot $($work:tt)*) => { work!($($work)*) };
                        (full $($work:tt)*) => { leave!() };
                    }
                    // The verifier has checked that control stays inside the code.
                    while let Some(instruction) = code.get(pc) {
                        instruction_table!(arms * instruction);
                        pc = pc.wrapping_add(1);
                    }
                }
                break 'frame;
            }
            self.cx.fuel.slice = slice;
            self.save(pc);
            return Ok(HotExit::SlowPath);
        }
    }
}
