//! The hot loop: the usual case of the frequent instructions, and nothing else.
//!
//! It exists for the register allocator. A loop that holds every instruction with its slow cases keeps the program
//! counter in memory, which costs more than most instructions; this one has few live variables, and what calls out
//! of it is marked as cold, however frequent it is: else the variables lie in memory for the sake of the calls (a
//! tenth of all instructions of a loop that counts). Whatever it does not handle it leaves to [`super::run`], whose
//! table is complete: the hot loop may be removed without changing what any program does.
//!
//! Registers that were read for the last time may keep a scalar here: an empty register is one that
//! holds nothing to drop.

use super::fiber::Frame;
use super::operations::make_record;
use super::quick::{
    Below, call_many, call_one, call_two, get_key, is_less, load_capture, make_closure, make_vector, related,
};
use super::registers::window;
use super::run::{put, read};
use super::{Hot, Machine, chain, leaf};
use crate::bytecode::Proto;
use crate::bytecode::instruction::Instruction;
use crate::bytecode::leaf::modulo;
use crate::context::Unit;
use crate::fault::Result;
use crate::interpreter::globals::{Callee, Shared};
use crate::memory::account;
use crate::value::Value;
use crate::value::slot::{clear, fill_copy};
use std::hint::cold_path;
use std::mem;

/// The loop limit where there is none.
const UNLIMITED: u64 = u64::MAX;

impl Machine<'_> {
    /// Runs until an instruction needs the complete table, of which the frame on top says which, or the
    /// machine on top wants something.
    ///
    /// # Errors
    /// A fault of a builtin; the frame on top is past its call.
    #[inline(never)]
    pub(super) fn run_hot(&mut self) -> Result<Hot> {
        let units = self.units;
        let is_limited = self.cx.loop_limit != UNLIMITED;
        'program: loop {
            // The program stays the same inside.
            let Some(&Frame::Code { unit: unit_id, proto: mut index, pc, mut base }) =
                self.fiber.frames.last()
            else {
                return Ok(Hot::Drive);
            };
            let unit: &Unit = &units[unit_id.0 as usize];
            let protos: &[Proto] = &unit.program.protos;
            let mut pc = pc as usize;
            // What a branch of pmap has defined goes before the globals: the complete table knows.
            let globals = match self.fiber.overlay {
                None => self.globals.shared(),
                Some(_) => Shared::NONE,
            };
            let mut slice = self.cx.fuel.slice;
            'frame: loop {
                let code: &[Instruction] = &protos[usize::from(index.0)].code;
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
                            return self.settle_builtin(pc + 1);
                        }
                        slice = self.cx.fuel.slice;
                    }};
                }
                    // Goes on in the function on top; mostly it is one of the same program.
                    macro_rules! goto {
                        ($unit:expr, $index:expr, $pc:expr, $base:expr) => {{
                            if $unit != unit_id {
                                cold_path();
                                self.cx.fuel.slice = slice;
                                continue 'program;
                            }
                            index = $index;
                            pc = $pc;
                            base = $base;
                            continue 'frame;
                        }};
                    }
                    // Computes a call of a function that is one operation, if it is one.
                    macro_rules! call_leaf {
                        ($unit:expr, $entry:expr, $window:expr) => {
                            if let Some(leaf) = units[$unit.0 as usize].leaf($entry)
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
                        ($unit:expr, $index:expr, $at:expr) => {{
                            let next_base = base + u32::from($at);
                            let frame = Frame::Code { unit: $unit, proto: $index, pc: 0, base: next_base };
                            if slice <= 0 || !self.fiber.frames.enter(pc + 1, frame) {
                                leave!();
                            }
                            slice -= 1;
                            goto!($unit, $index, 0, next_base);
                        }};
                    }
                    // The verifier has checked that control stays inside the code.
                    while let Some(instruction) = code.get(pc) {
                        match *instruction {
                            Instruction::LoadConst { constant, dst } => {
                                cold_path();
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
                                    cold_path();
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
                                    _ => {
                                        cold_path();
                                        load_capture(registers, index, dst)
                                    }
                                }
                            }
                            Instruction::LoadGlobal { global, dst } => {
                                cold_path();
                                let slot = unit.globals[usize::from(global.0)];
                                let Some(value) = globals.get(slot) else { leave!() };
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
                                    // Mostly the loop begins with a test of the variable.
                                    let first = code.get(pc.wrapping_add(1));
                                    if first.is_some_and(|test| is_less(registers, variable, sum, test)) {
                                        pc = pc.wrapping_add(1);
                                    }
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
                                cold_path();
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
                                cold_path();
                                if !get_key(self.cx, unit, registers, src, constant, dst) {
                                    leave!();
                                }
                            }
                            Instruction::Element { src, index, dst } => {
                                cold_path();
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
                                cold_path();
                                if account::attention() {
                                    leave!();
                                }
                                make_vector(registers, items, dst);
                            }
                            Instruction::MakeClosure { proto, captures, dst } => {
                                cold_path();
                                if account::attention() {
                                    leave!();
                                }
                                make_closure(registers, unit, proto, captures, dst);
                            }
                            Instruction::MakeRecord { keys, items, dst } => {
                                cold_path();
                                if account::attention() {
                                    leave!();
                                }
                                let keys = &unit.constants[usize::from(keys.0)];
                                let map = make_record(keys, registers, items);
                                put(registers, dst.0, map);
                            }
                            Instruction::Call1 { builtin, a, dst } if slice > 0 => {
                                cold_path();
                                call_builtin!(call_one, builtin, a, dst);
                            }
                            Instruction::Call2 { builtin, a, b, dst } if slice > 0 => {
                                cold_path();
                                call_builtin!(call_two, builtin, a, b, dst);
                            }
                            Instruction::CallBuiltin { builtin, window } if slice > 0 => {
                                cold_path();
                                call_builtin!(call_many, builtin, window);
                            }
                            Instruction::CallGlobal { global, window } => {
                                let slot = unit.globals[usize::from(global.0)];
                                let Some(&Callee { unit: callee, proto: index, ref entry }) =
                                    globals.callee(slot)
                                else {
                                    leave!();
                                };
                                if entry.arguments != window.count {
                                    leave!();
                                }
                                if !entry.is_bare() {
                                    cold_path();
                                    if entry.needs_closure() {
                                        let Some(Value::Closure(closure)) = globals.get(slot) else {
                                            leave!();
                                        };
                                        // A refused call finds the register as it was.
                                        if slice <= 0 || !self.fiber.frames.has_room(1) {
                                            leave!();
                                        }
                                        put(registers, window.at, Value::Closure(closure.clone()));
                                    } else {
                                        call_leaf!(callee, *entry, window);
                                    }
                                }
                                enter!(callee, index, window.at);
                            }
                            Instruction::Call { window, .. } => {
                                let closure = match &registers[usize::from(window.at)] {
                                    Value::Closure(closure) => closure,
                                    Value::Combinator(_) if slice > 1 && window.count == 1 => {
                                        cold_path();
                                        let calls = leaf::call_chain(registers, window, units, slice);
                                        if calls != 0 {
                                            slice -= calls;
                                            pc += 1;
                                            continue;
                                        }
                                        let at = base + u32::from(window.at);
                                        if !chain::enter(self.fiber, units, at, pc + 1) {
                                            leave!();
                                        }
                                        self.cx.fuel.slice = slice - 2;
                                        continue 'program;
                                    }
                                    _ => leave!(),
                                };
                                let (callee, index) = (closure.unit, closure.proto);
                                let entry = units[callee.0 as usize].entries[usize::from(index.0)];
                                if entry.arguments != window.count {
                                    leave!();
                                }
                                call_leaf!(callee, entry, window);
                                enter!(callee, index, window.at);
                            }
                            Instruction::Return { src } => {
                                let Some(caller) = self.fiber.frames.leave() else {
                                    cold_path();
                                    self.cx.fuel.slice = slice;
                                    match self.return_elsewhere(src, base)? {
                                        Below::Again => continue 'program,
                                        Below::Table => leave!(),
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
                                    cold_path();
                                    let value = read(registers, src);
                                    registers[0] = value;
                                }
                                goto!(caller.unit, caller.proto, caller.pc as usize, caller.base);
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
                        pc = pc.wrapping_add(1);
                    }
                }
                break 'frame;
            }
            self.cx.fuel.slice = slice;
            self.save(pc);
            return Ok(Hot::Table);
        }
    }
}
