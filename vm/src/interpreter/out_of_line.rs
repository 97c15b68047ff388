//! Functions split off from the interpreter's hot loop, such as calls of builtins and key look-ups, so that the loop
//! keeps few variables, which stay in processor registers. Others are returns to machines, and the making of vectors
//! and closures.

use super::call::CallOutcome;
use super::fiber::{Fiber, Frame};
use super::operations::take_args;
use super::registers::{take_or_copy, window};
use super::run::read;
use super::{HotExit, Machine, Stop, chain};
use crate::apply::check_arity;
use crate::builtins::Implementation;
use crate::bytecode::instruction::{
    Args, Capture, Dst, Instruction, Key, Pinned, Relation, Src, Template, Window,
};
use crate::bytecode::{BuiltinId, WINDOW};
use crate::context::{Context, Function, Unit};
use crate::fault::Result;
use crate::memory::account;
use crate::native::{Native, Step};
use crate::value::slot::{clear, fill, fill_copy};
use crate::value::string::SHORT_TEXT;
use crate::value::vector::VectorNode;
use crate::value::{Closure, Value};
use std::mem::take;
use std::rc::Rc;

type Registers = [Value; WINDOW];

/// How the hot loop continues after a function has returned to a frame that is not code.
pub(super) enum ReturnAction {
    /// The function on top runs; its arguments are in place.
    Reenter,
    /// Nothing was changed: the complete table makes the return.
    SlowPath,
    /// The hot loop exits for the reason in `Machine::hot_exit`.
    Exit,
}

impl Machine<'_> {
    /// Returns the value in the register from the function on top, with its window at `base`, to a frame that is not
    /// code.
    ///
    /// # Errors
    /// The fault of a machine; the frame is removed then.
    #[inline(never)]
    pub(super) fn return_elsewhere(&mut self, src: Src, base: u32) -> Result<ReturnAction> {
        if self.cx.fuel.slice <= 0 || account::attention() {
            return Ok(ReturnAction::SlowPath);
        }
        match self.fiber.frames.below() {
            Some(Frame::Native { .. }) => {
                let Fiber { stack, natives, frames, .. } = &mut *self.fiber;
                if let Some(window) = window(stack, base)
                    && call_again(natives, window, src)
                    && let Some(Frame::Code { pc, .. }) = frames.last_mut()
                {
                    *pc = 0;
                    self.cx.fuel.slice -= 1;
                    return Ok(ReturnAction::Reenter);
                }
                self.return_to_machine(src, base as usize)
            }
            Some(Frame::Chain { .. }) => match chain::advance(self.fiber, self.functions, src) {
                Some(calls) => {
                    self.cx.fuel.slice -= calls;
                    Ok(ReturnAction::Reenter)
                }
                None => self.return_to_machine(src, base as usize),
            },
            // The last form of the program.
            None => {
                let Fiber { stack, frames, .. } = &mut *self.fiber;
                let value = take_or_copy(stack, base as usize + usize::from(src.reg), src.last);
                stack[base as usize] = Value::Nil;
                frames.pop();
                self.hot_exit = HotExit::Stop(Stop::Done(value));
                Ok(ReturnAction::Exit)
            }
            Some(Frame::Code { .. } | Frame::Floor) => Ok(ReturnAction::SlowPath),
        }
    }

    /// [`Machine::return_elsewhere`] in all but the common cases. There is fuel for one call.
    #[inline(never)]
    fn return_to_machine(&mut self, src: Src, base: usize) -> Result<ReturnAction> {
        let is_fixed = match self.fiber.frames.last() {
            Some(Frame::Code { function, .. }) => {
                let function = self.functions.get(function.index());
                function.is_some_and(|function| function.entry.has_fixed_arity())
            }
            _ => false,
        };
        let frames = &mut self.fiber.frames;
        let stack = &mut self.fiber.stack;
        if let Some(Frame::Chain { .. }) = frames.below() {
            let value = take_or_copy(stack, base + usize::from(src.reg), src.last);
            stack[base] = Value::Nil;
            frames.pop();
            self.hot_exit = HotExit::Returned(value, base as u32);
            return Ok(ReturnAction::Exit);
        }
        let (Some(native), Some(window)) = (
            self.fiber.natives.last_mut(),
            stack.get_mut(base..).and_then(|w| w.first_chunk_mut::<WINDOW>()),
        ) else {
            return Ok(ReturnAction::Exit);
        };
        if !is_fixed {
            // The call lays out the window of such a function.
            let value = take_or_copy(window, usize::from(src.reg), src.last);
            clear(&mut window[0]);
            frames.pop();
            self.hot_exit = HotExit::Returned(value, base as u32);
            return Ok(ReturnAction::Exit);
        }
        let mut action = None;
        let returned = match window[usize::from(src.reg)] {
            // A separate call for each kind of value, which so stays in machine registers.
            Value::Int(int) => native.resume_in_window(self.cx, Value::Int(int), window, &mut action),
            Value::Bool(bool) => native.resume_in_window(self.cx, Value::Bool(bool), window, &mut action),
            _ => {
                let value = &mut window[usize::from(src.reg)];
                let value = if src.last { take(value) } else { value.clone() };
                native.resume_in_window(self.cx, value, window, &mut action)
            }
        };
        match returned {
            Ok(true) => {
                self.save(0);
                self.cx.fuel.slice -= 1;
                Ok(ReturnAction::Reenter)
            }
            Ok(false) => {
                window[0] = Value::Nil;
                frames.pop();
                self.hot_exit = action.map_or(HotExit::Drive, HotExit::Act);
                Ok(ReturnAction::Exit)
            }
            Err(fault) => {
                frames.pop();
                Err(fault)
            }
        }
    }

    /// Handles the request of a builtin in `pending`; the frame on top continues at `pc`.
    ///
    /// # Errors
    /// The fault of the builtin.
    #[inline(never)]
    pub(super) fn settle_builtin(&mut self, pc: usize) -> Result<HotExit> {
        self.save(pc);
        let Some(&Frame::Code { function, base, .. }) = self.fiber.frames.last() else {
            return Ok(HotExit::Drive);
        };
        let function = self.functions.get(function.index()).and_then(Function::compiled);
        let top = base + function.map_or(WINDOW as u32, |proto| proto.registers.into());
        match self.pending.take() {
            Some(Pending { step: Ok(Step::Enter(native)), dst }) => {
                self.fiber.push_native(native, base + u32::from(dst), top);
                Ok(HotExit::Drive)
            }
            Some(Pending { step: Ok(Step::TailCall(callee, arguments)), dst }) => {
                let dst = base + u32::from(dst);
                Ok(match self.call(callee, arguments, dst, top)? {
                    CallOutcome::Value(value) => HotExit::Returned(value, dst),
                    CallOutcome::Entered => HotExit::Drive,
                    CallOutcome::Stop(stop) => HotExit::Stop(stop),
                })
            }
            Some(Pending { step: Ok(Step::Return(value)), dst }) => {
                Ok(HotExit::Returned(value, base + u32::from(dst)))
            }
            Some(Pending { step: Err(fault), .. }) => Err(fault),
            // A host call: nothing was changed, and the complete table makes it.
            None => {
                self.save(pc - 1);
                Ok(HotExit::SlowPath)
            }
        }
    }
}

/// The machine on top calls the returning function once more, which is the common case of
/// [`Machine::return_to_machine`]. False, and nothing changed, in other cases.
#[inline(always)]
fn call_again(natives: &mut [Native], registers: &mut Registers, returned: Src) -> bool {
    match natives.last_mut() {
        Some(Native::Each(machine)) => machine.next_call(registers, returned),
        Some(Native::Reduce(machine)) => machine.next_call(registers, returned),
        _ => false,
    }
}

/// Copies a captured value of the closure in register 0.
#[inline(never)]
pub(super) fn load_capture(registers: &mut Registers, index: Capture, dst: Dst) {
    if let [Value::Closure(closure), others @ ..] = registers
        && let Some(target) = usize::from(dst.0).checked_sub(1).and_then(|at| others.get_mut(at))
    {
        fill_copy(target, &closure.captures()[usize::from(index.0)]);
    }
}

/// A vector of the arguments.
#[inline(never)]
pub(super) fn make_vector(registers: &mut Registers, items: Args, dst: Dst) {
    let items = VectorNode::new(take_args(registers, items));
    fill(&mut registers[usize::from(dst.0)], Value::Vector(items));
}

/// A closure over the arguments.
#[inline(never)]
pub(super) fn make_closure(registers: &mut Registers, unit: &Unit, template: Template, dst: Dst) {
    let closure = Closure::new(&unit.code, template.proto, take_args(registers, template.captures));
    fill(&mut registers[usize::from(dst.0)], Value::Closure(closure));
}

/// Whether the instruction is a test `variable < bound` that holds for this value of the variable.
#[inline(always)]
pub(super) fn is_less(registers: &Registers, variable: Pinned, value: i64, test: &Instruction) -> bool {
    match test {
        Instruction::JumpUnlessLessInt { a, .. } if a.reg == variable.0 => value < a.value(),
        Instruction::JumpUnlessLess { a, b, .. } if a.reg == variable.0 => {
            matches!(registers[usize::from(b.reg)], Value::Int(limit) if value < limit)
        }
        _ => false,
    }
}

/// Whether a relation holds, if that is decided quickly.
#[inline(always)]
pub(super) fn related(relation: Relation, a: &Value, constant: &Value) -> Option<bool> {
    match (a, constant) {
        (Value::Int(a), Value::Int(b)) => Some(relation.holds(a, b)),
        (Value::Keyword(a), Value::Keyword(b)) => relation.decided_by_equality(a == b),
        (Value::Str(a), Value::Str(b)) if b.as_str().len() <= SHORT_TEXT => {
            relation.decided_by_equality(Rc::ptr_eq(a, b) || a.as_str() == b.as_str())
        }
        _ => None,
    }
}

/// `(:key map)`; false if the complete table must do it.
#[inline(never)]
pub(super) fn get_key(
    cx: &Context,
    unit: &Unit,
    registers: &mut Registers,
    src: Src,
    key: Key,
    dst: Dst,
) -> bool {
    let Value::Keyword(symbol) = unit.constants[usize::from(key.0)] else { return false };
    let (from, to) = (usize::from(src.reg), usize::from(dst.0));
    if let Ok([source, target]) = registers.get_disjoint_mut([from, to]) {
        match source {
            Value::Map(map) => match map.find_named(cx, symbol) {
                Some(row) => fill_copy(target, map.value(row)),
                None => fill(target, Value::Nil),
            },
            _ => fill(target, Value::Nil),
        }
        if src.last {
            clear(source);
        }
        return true;
    }
    let found = match &registers[from] {
        Value::Map(map) => map.find_named(cx, symbol).map(|row| map.value(row).clone()),
        _ => None,
    };
    clear(&mut registers[from]);
    fill(&mut registers[to], found.unwrap_or_default());
    true
}

/// The request of a builtin that did not just compute a value.
pub(super) struct Pending {
    step: Result<Step>,
    dst: u8,
}

/// Calls a builtin with one argument. False if the loop must exit: for the request in `pending` or, if there is none,
/// because the complete table must make the call.
#[inline(never)]
pub(super) fn call_one(
    cx: &mut Context,
    pending: &mut Option<Pending>,
    registers: &mut Registers,
    builtin: BuiltinId,
    a: Src,
    dst: Dst,
) -> bool {
    let implementation = builtin.info().implementation;
    if leaves(cx, implementation) {
        return false;
    }
    let mut arguments = [read(registers, a)];
    finish(cx, pending, builtin, implementation, &mut arguments, &mut registers[usize::from(dst.0)], dst.0)
}

/// [`call_one`] with two arguments.
#[inline(never)]
pub(super) fn call_two(
    cx: &mut Context,
    pending: &mut Option<Pending>,
    registers: &mut Registers,
    builtin: BuiltinId,
    a: Src,
    b: Src,
    dst: Dst,
) -> bool {
    let implementation = builtin.info().implementation;
    if leaves(cx, implementation) {
        return false;
    }
    let mut arguments = [read(registers, a), read(registers, b)];
    finish(cx, pending, builtin, implementation, &mut arguments, &mut registers[usize::from(dst.0)], dst.0)
}

/// [`call_one`] with the arguments of a window.
#[inline(never)]
pub(super) fn call_many(
    cx: &mut Context,
    pending: &mut Option<Pending>,
    registers: &mut Registers,
    builtin: BuiltinId,
    window: Window,
) -> bool {
    let implementation = builtin.info().implementation;
    if leaves(cx, implementation) {
        return false;
    }
    let at = usize::from(window.at);
    let (below, above) = registers.split_at_mut(at + 1);
    let arguments = &mut above[..usize::from(window.count)];
    let done = finish(cx, pending, builtin, implementation, arguments, &mut below[at], window.at);
    // Arguments that the builtin has not taken.
    arguments.iter_mut().for_each(clear);
    done
}

/// True for a call that the complete table must make.
#[inline(always)]
fn leaves(cx: &Context, implementation: Implementation) -> bool {
    match implementation {
        Implementation::Direct(_) => false,
        Implementation::Callback(_) => cx.leaves_callbacks,
        Implementation::Host(_) => true,
    }
}

#[inline(always)]
fn finish(
    cx: &mut Context,
    pending: &mut Option<Pending>,
    builtin: BuiltinId,
    implementation: Implementation,
    arguments: &mut [Value],
    target: &mut Value,
    dst: u8,
) -> bool {
    let step = match implementation {
        Implementation::Direct(run) => match call_direct(cx, builtin, run, arguments) {
            Ok(value) => {
                fill(target, value);
                return true;
            }
            Err(fault) => Err(fault),
        },
        Implementation::Callback(run) => match call_callback(cx, builtin, run, arguments) {
            Ok(Step::Return(value)) => {
                fill(target, value);
                return true;
            }
            step => step,
        },
        Implementation::Host(_) => return false,
    };
    *pending = Some(Pending { step, dst });
    false
}

/// Calls a builtin that computes its value at once, and checks the memory account.
#[inline(always)]
fn call_direct(
    cx: &mut Context,
    builtin: BuiltinId,
    run: fn(&mut Context, &mut [Value]) -> Result<Value>,
    arguments: &mut [Value],
) -> Result<Value> {
    check_arity(cx, builtin, arguments.len())?;
    let value = run(cx, arguments)?;
    if account::attention() {
        cx.attend()?;
    }
    Ok(value)
}

/// Calls a builtin that may call functions of the program.
#[inline(always)]
fn call_callback(
    cx: &mut Context,
    builtin: BuiltinId,
    run: fn(&mut Context, &mut [Value]) -> Result<Step>,
    arguments: &mut [Value],
) -> Result<Step> {
    check_arity(cx, builtin, arguments.len())?;
    // A refused call is not paid for, here as in the complete table.
    cx.fuel.slice -= 1;
    let step = run(cx, arguments)?;
    if account::attention() {
        cx.attend()?;
    }
    Ok(step)
}
