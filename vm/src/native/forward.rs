//! Recognises callbacks that only call a builtin, such as `#(str "t" %)`, and calls the builtin directly for each item,
//! without a call frame. The builtin's arguments are parameters of the callback, keys of these and constants, also in
//! `(fn [m word] (update m word (fnil inc 0)))`.
//!
//! Programs cannot observe this: such a call costs the fuel of both calls, and a fault is located inside the function
//! ([`Action::Failed`]).

use super::Action;
use crate::apply::is_direct;
use crate::bytecode::instruction::{Instruction, Src};
use crate::bytecode::{CombinatorKind, Known, Shape};
use crate::context::{Context, DirectFunction};
use crate::fault::{Fault, Result};
use crate::memory::account;
use crate::native::update::update_directly;
use crate::value::code_ref::FunctionId;
use crate::value::map::MapNode;
use crate::value::string::SHORT_TEXT;
use crate::value::symbol::Symbol;
use crate::value::{Store, Value};
use smallvec::SmallVec;
use std::mem::take;

/// Most arguments of the builtin.
const MOST: usize = 4;

/// Most registers of a forwarding function: one with more does other work as well.
const REGISTERS: usize = 16;

/// The source of an argument of the builtin.
#[derive(Clone)]
enum Operand {
    /// A parameter of the function, used only here.
    Parameter(usize),
    /// The value of a key in a parameter.
    Field(usize, Symbol),
    /// A constant.
    Constant(Value),
}

/// A function that forwards.
pub struct Forward {
    run: DirectFunction,
    operands: SmallVec<[Operand; MOST]>,
    /// The function counts: `(update accumulator key inc)`, possibly with `fnil`.
    count: Option<Count>,
    site: Site,
}

/// The increment of [`Forward::count`], and the fuel of its calls.
#[derive(Clone, Copy)]
struct Count {
    step: i64,
    calls: i64,
}

/// An instruction of a function.
#[derive(Clone, Copy)]
pub struct Site {
    /// The function.
    pub(crate) function: FunctionId,
    /// Position in its code.
    pub at: u32,
}

impl Forward {
    /// The function as one that forwards `count` arguments, if it is one.
    pub(crate) fn from_function(cx: &Context, function: &Value, count: u8) -> Option<Box<Forward>> {
        let Value::Closure(closure) = function else { return None };
        let called = cx.function(closure)?;
        let (unit, proto) = (&called.unit, called.compiled()?);
        let ([before @ .., call, Instruction::Return { src }], true) = (
            &proto.code[..],
            cx.hot_loop && !cx.is_observed && proto.shape == Shape { fixed: count, variadic: false },
        ) else {
            return None;
        };
        let mut registers = [const { None::<Operand> }; REGISTERS];
        for parameter in 1..=usize::from(count) {
            *registers.get_mut(parameter)? = Some(Operand::Parameter(parameter - 1));
        }
        for instruction in before {
            let (operand, dst) = match *instruction {
                Instruction::Move { src, dst } => (read(&registers, src)?, dst),
                Instruction::LoadConst { constant, dst } => {
                    (Operand::Constant(unit.constants.get(usize::from(constant.0))?.clone()), dst)
                }
                Instruction::GetKey { src, key, dst } => {
                    let (Operand::Parameter(parameter), Value::Keyword(key)) =
                        (read(&registers, src)?, unit.constants.get(usize::from(key.0))?)
                    else {
                        return None;
                    };
                    (Operand::Field(parameter, *key), dst)
                }
                _ => return None,
            };
            *registers.get_mut(usize::from(dst.0))? = Some(operand);
        }
        let mut operands = SmallVec::new();
        let (builtin, result) = match *call {
            Instruction::Call1 { builtin, a, dst } => {
                operands.push(read(&registers, a)?);
                (builtin, dst.0)
            }
            Instruction::Call2 { builtin, a, b, dst } => {
                operands.push(read(&registers, a)?);
                operands.push(read(&registers, b)?);
                (builtin, dst.0)
            }
            Instruction::CallBuiltin { builtin, window } if usize::from(window.count) <= MOST => {
                for register in
                    usize::from(window.at) + 1..=usize::from(window.at) + usize::from(window.count)
                {
                    operands.push(registers.get(register)?.clone()?);
                }
                (builtin, window.at)
            }
            _ => return None,
        };
        let passed = |index| {
            operands
                .iter()
                .filter(|operand| matches!(operand, Operand::Parameter(at) if *at == index))
                .count()
        };
        let info = cx.builtins.facts(builtin);
        if src.0 != result
            || !info.arity.accepts(operands.len())
            || (0..usize::from(count)).any(|parameter| passed(parameter) > 1)
        {
            return None;
        }
        let run = match (cx.direct[builtin.index()].run, operands.as_slice()) {
            (Some(run), _) => run,
            (None, [_, _, Operand::Constant(function)])
                if info.known == Some(Known::Update) && is_direct(cx, function) =>
            {
                update_directly
            }
            _ => return None,
        };
        let count = match operands.as_slice() {
            [
                Operand::Parameter(0),
                Operand::Parameter(1) | Operand::Field(1, _),
                Operand::Constant(function),
            ] if count == 2 && info.known == Some(Known::Update) => count_of(cx, function),
            _ => None,
        };
        let site = Site { function: closure.function, at: before.len() as u32 };
        Some(Box::new(Forward { run, operands, count, site }))
    }

    /// Calls the function.
    ///
    /// # Errors
    /// What the builtin faults with; memory, deadline and cancellation. The machine reports it by
    /// [`Forward::failed`].
    #[inline]
    pub(crate) fn call(&self, cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
        // Without fuel the function is not entered, so the builtin must not run and fault.
        cx.tick(1)?;
        let mut all = [const { Value::Nil }; MOST];
        // Operands that are read come before operands that are moved.
        for (slot, operand) in all.iter_mut().zip(&self.operands) {
            if let Operand::Field(parameter, key) = operand
                && let Value::Map(map) = &arguments[*parameter]
                && let Some(row) = map.find_named(cx, *key)
            {
                *slot = map.value(row).clone();
            }
        }
        for (slot, operand) in all.iter_mut().zip(&self.operands) {
            match operand {
                Operand::Parameter(parameter) => *slot = take(&mut arguments[*parameter]),
                Operand::Constant(value) => *slot = value.clone(),
                Operand::Field(..) => {}
            }
        }
        let value = (self.run)(cx, &mut all[..self.operands.len()])?;
        if account::attention() {
            cx.attend()?;
        }
        Ok(value)
    }

    /// Counts an item in the accumulator in place, since moving values would be most of the cost. False if
    /// [`Forward::call`] is needed; nothing was changed or paid then.
    ///
    /// # Errors
    /// As [`Forward::call`].
    #[inline]
    pub(crate) fn count(&self, cx: &mut Context, accumulator: &mut Value, item: &Value) -> Result<bool> {
        let (Some(count), Value::Map(counts)) = (self.count, accumulator) else { return Ok(false) };
        let key = match (self.operands.get(1), item) {
            (Some(Operand::Parameter(_)), item) => item,
            (Some(Operand::Field(_, key)), Value::Map(map)) => match map.find_named(cx, *key) {
                Some(row) => map.value(row),
                None => return Ok(false),
            },
            _ => return Ok(false),
        };
        // Comparing other keys may cost fuel, which must not be paid twice.
        match key {
            Value::Keyword(_) => {}
            Value::Str(node) if node.len() <= SHORT_TEXT => {}
            _ => return Ok(false),
        }
        let Some(row) = counts.find(cx, key)? else { return Ok(false) };
        let Some(Value::Int(counted)) = MapNode::value_mut(counts, row) else { return Ok(false) };
        let Some(next) = counted.checked_add(count.step) else { return Ok(false) };
        // The calls of the function and of `update`; the way down and back; the calls that count.
        cx.fuel.slice -= 2;
        cx.tick(2)?;
        *counted = next;
        cx.fuel.slice -= count.calls;
        if account::attention() {
            cx.attend()?;
        }
        Ok(true)
    }

    /// The machine's action after a fault of [`Forward::call`].
    #[cold]
    pub(crate) fn failed(&self, fault: Box<Fault>) -> Action {
        Action::Failed(fault, self.site)
    }
}

/// The increment of a function of one number, if it is `inc` or `dec`.
fn count_of(cx: &Store, function: &Value) -> Option<Count> {
    let (builtin, calls) = match function {
        Value::Builtin(builtin) => (builtin, 1),
        Value::Combinator(node) if node.kind == CombinatorKind::Fnil => match node.parts() {
            [Value::Builtin(builtin), ..] => (builtin, 2),
            _ => return None,
        },
        _ => return None,
    };
    let step = match cx.builtins.facts(*builtin).known {
        Some(Known::Increment) => 1,
        Some(Known::Decrement) => -1,
        _ => return None,
    };
    Some(Count { step, calls })
}

fn read(registers: &[Option<Operand>; REGISTERS], src: Src) -> Option<Operand> {
    registers.get(usize::from(src.reg))?.clone()
}
