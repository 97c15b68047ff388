//! Performs the calls of the interpreter: of functions, builtins and every other value that can be called, and the
//! callbacks that builtins such as `map` make.

use super::fiber::{Fiber, Frame};
use super::{HostRequest, Machine, Stop};
use crate::apply::{apply, call_data, check_arity, is_direct, partial_arguments};
use crate::builtins::functions::transducers;
use crate::builtins::{HostFunction, Implementation, ToolForm};
use crate::bytecode::instruction::Window;
use crate::bytecode::{BuiltinId, CombinatorKind, Proto};
use crate::context::{Context, Function};
use crate::fault::{Fault, Reason, Result};
use crate::memory::{List, account};
use crate::native::combine::Combine;
use crate::native::memoize::Memoize;
use crate::native::{Action, Native, Step};
use crate::value::build::Arguments;
use crate::value::combinator::Combinator;
use crate::value::{Closure, Value};
use std::rc::Rc;

/// The outcome of a call.
pub(super) enum CallOutcome {
    /// Its value.
    Value(Value),
    /// A frame was pushed and must run.
    Entered,
    /// The fiber must stop.
    Stop(Stop),
}

/// The outcome of a builtin call.
pub(super) enum BuiltinOutcome {
    /// The outcome of any call.
    Call(CallOutcome),
    /// Another call replaces it: the caller makes it, so that a chain of such calls does not recurse.
    TailCall(Value, Arguments),
}

impl Machine<'_> {
    /// Calls a value. A function of the program gets its window at `top` (the first free stack slot); `dst` is the
    /// slot where calling code expects the result.
    pub(super) fn call(
        &mut self,
        mut callee: Value,
        mut arguments: Arguments,
        mut dst: u32,
        mut top: u32,
    ) -> Result<CallOutcome> {
        loop {
            match callee {
                Value::Closure(closure) => {
                    return self.call_closure(closure, arguments.into_iter(), dst, top);
                }
                Value::Builtin(builtin) => {
                    check_arity(self.cx, builtin, arguments.len())?;
                    match self.open_builtin(builtin, &mut arguments, dst, top)? {
                        BuiltinOutcome::Call(called) => return Ok(called),
                        BuiltinOutcome::TailCall(next, next_arguments) => {
                            (callee, arguments) = (next, next_arguments);
                        }
                    }
                }
                Value::Combinator(combinator) if combinator.kind == CombinatorKind::Comp => {
                    self.pay_call()?;
                    let Some((last, before)) = combinator.parts().split_last() else {
                        // `(comp)` is identity.
                        return Ok(CallOutcome::Value(arguments.pop().unwrap_or_default()));
                    };
                    callee = last.clone();
                    let (base, left) = (self.window_base(dst, top), before.len() as u32);
                    Fiber::reserve_window(&mut self.fiber.stack, base as usize + 1);
                    self.fiber.stack[base as usize] = Value::Combinator(combinator);
                    self.fiber.frames.push(Frame::Chain { base, left });
                    (dst, top) = (base + 1, base + 1);
                }
                Value::Combinator(combinator) => {
                    self.pay_call()?;
                    match open_combinator(self.cx, &combinator, arguments)? {
                        Step::Return(value) => return Ok(CallOutcome::Value(value)),
                        Step::TailCall(next, next_arguments) => (callee, arguments) = (next, next_arguments),
                        Step::Enter(native) => {
                            self.fiber.push_native(native, dst, top);
                            return Ok(CallOutcome::Entered);
                        }
                    }
                }
                Value::Tool(name) => {
                    let function = match ToolForm::find(self.cx.text(name)) {
                        Some(form) => form.host_function(),
                        None => {
                            arguments.push_first(self.cx, Value::Symbol(name))?;
                            HostFunction::Tool
                        }
                    };
                    let request = Box::new(HostRequest { function, arguments, dst });
                    return Ok(CallOutcome::Stop(Stop::Host(request)));
                }
                other => return call_data(self.cx, &other, &mut arguments).map(CallOutcome::Value),
            }
        }
    }

    /// Calls the value in the first register of the window with the values after it.
    pub(super) fn call_window(&mut self, base: usize, proto: &Proto, window: Window) -> Result<Option<Stop>> {
        let at = base + usize::from(window.at);
        let stack = &mut self.fiber.stack;
        let callee = std::mem::take(&mut stack[at]);
        let arguments = Arguments::taken(self.cx, &mut stack[at + 1..=at + usize::from(window.count)])?;
        let called = self.call(callee, arguments, at as u32, (base + usize::from(proto.registers)) as u32)?;
        self.finish_call(called, at)
    }

    /// Calls a builtin that calls functions or the host.
    pub(super) fn call_builtin(
        &mut self,
        builtin: BuiltinId,
        arguments: &mut [Value],
        dst: usize,
        top: usize,
    ) -> Result<Option<Stop>> {
        check_arity(self.cx, builtin, arguments.len())?;
        let called = match self.open_builtin(builtin, arguments, dst as u32, top as u32)? {
            BuiltinOutcome::Call(called) => called,
            BuiltinOutcome::TailCall(callee, arguments) => {
                self.call(callee, arguments, dst as u32, top as u32)?
            }
        };
        self.finish_call(called, dst)
    }

    fn finish_call(&mut self, called: CallOutcome, dst: usize) -> Result<Option<Stop>> {
        match called {
            CallOutcome::Value(value) => self.deliver(value, dst as u32),
            CallOutcome::Entered => Ok(None),
            CallOutcome::Stop(stop) => Ok(Some(stop)),
        }
    }

    /// Calls a builtin with a number of arguments that it accepts.
    pub(super) fn open_builtin(
        &mut self,
        builtin: BuiltinId,
        arguments: &mut [Value],
        dst: u32,
        top: u32,
    ) -> Result<BuiltinOutcome> {
        self.pay_call()?;
        Ok(BuiltinOutcome::Call(match builtin.info().implementation {
            Implementation::Direct(run) => CallOutcome::Value(run(self.cx, arguments)?),
            Implementation::Host(function) => {
                let arguments = Arguments::taken(self.cx, arguments)?;
                CallOutcome::Stop(Stop::Host(Box::new(HostRequest { function, arguments, dst })))
            }
            Implementation::Callback(run) => match run(self.cx, arguments)? {
                Step::Return(value) => CallOutcome::Value(value),
                Step::TailCall(next, arguments) => return Ok(BuiltinOutcome::TailCall(next, arguments)),
                Step::Enter(native) => {
                    self.fiber.push_native(native, dst, top);
                    CallOutcome::Entered
                }
            },
        }))
    }

    fn pay_call(&mut self) -> Result<()> {
        self.cx.tick(1)
    }

    fn call_closure(
        &mut self,
        closure: Rc<Closure>,
        mut arguments: impl ExactSizeIterator<Item = Value>,
        dst: u32,
        top: u32,
    ) -> Result<CallOutcome> {
        let count = arguments.len();
        let mut arities =
            self.functions.get(closure.function.index()).into_iter().flat_map(Function::arities);
        let Some((function, proto)) = arities.find(|(_, proto)| proto.accepts(count)) else {
            return Err(self.arity_mismatch(&closure, count));
        };
        let base = self.window_base(dst, top);
        let fixed = usize::from(proto.shape.fixed);
        Fiber::reserve_window(&mut self.fiber.stack, base as usize);
        // Before anything moves: values left in a window without a frame would stay there.
        let rest = match proto.shape.variadic {
            true => Some(List::with_capacity(self.cx, count.saturating_sub(fixed))?),
            false => None,
        };
        let window = &mut self.fiber.stack[base as usize..];
        for (slot, argument) in window[1..=fixed].iter_mut().zip(arguments.by_ref()) {
            *slot = argument;
        }
        if let Some(mut rest) = rest {
            rest.fill(self.cx, arguments)?;
            window[fixed + 1] = rest.into_value();
        }
        window[0] = Value::Closure(closure);
        self.fiber.frames.push(Frame::Code { function, pc: 0, base });
        self.cx.fuel.slice -= 1;
        if account::attention() {
            self.cx.attend()?;
        }
        if self.cx.fuel.slice < 0 {
            return Ok(CallOutcome::Stop(Stop::SliceEnd));
        }
        Ok(CallOutcome::Entered)
    }

    /// The first slot of a call's window. If code calls, the caller expects the result there; if a machine calls, it
    /// is above everything in use.
    #[inline]
    fn window_base(&self, dst: u32, top: u32) -> u32 {
        match self.fiber.frames.last() {
            Some(Frame::Native { .. } | Frame::Floor) | None => top,
            Some(Frame::Code { .. } | Frame::Chain { .. }) => dst,
        }
    }

    #[cold]
    fn arity_mismatch(&self, closure: &Closure, count: usize) -> Box<Fault> {
        let mut shapes = Vec::new();
        let mut parameters = Vec::new();
        let mut name = "";
        for proto in self.cx.arities(closure) {
            name = &proto.name;
            shapes.push(format!("{}{}", proto.shape.fixed, if proto.shape.variadic { "+" } else { "" }));
            parameters.push(format!("[{}]", proto.parameters));
        }
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        Fault::new(
            Reason::ArityMismatch,
            format_args!("{name}expected {} argument(s), got {count}", shapes.join(" or ")),
        )
        .hint(format_args!("The function takes {}.", parameters.join(" or ")))
    }

    /// Delivers a value to the frame on top.
    pub(super) fn deliver(&mut self, value: Value, dst: u32) -> Result<Option<Stop>> {
        match self.fiber.frames.last() {
            None => Ok(Some(Stop::Done(value))),
            Some(Frame::Code { .. }) => {
                self.fiber.stack[dst as usize] = value;
                Ok(None)
            }
            Some(Frame::Native { .. } | Frame::Chain { .. } | Frame::Floor) => self.drive(Some(value)),
        }
    }

    /// Runs the machine on top until it enters code, returns into code, or the fiber stops.
    pub(super) fn drive(&mut self, returned: Option<Value>) -> Result<Option<Stop>> {
        self.act(None, returned)
    }

    /// [`Machine::drive`], starting with the machine's action if that is known.
    pub(super) fn act(&mut self, wanted: Option<Action>, returned: Option<Value>) -> Result<Option<Stop>> {
        let (mut wanted, mut returned) = (wanted, returned);
        loop {
            if account::attention() {
                self.cx.attend()?;
            }
            if self.cx.fuel.slice < 0
                && let Some(value) = returned
            {
                self.fiber.delivery = Some(super::fiber::Delivery { value, dst: 0 });
                return Ok(Some(Stop::SliceEnd));
            }
            if let Some(Frame::Chain { base, left }) = self.fiber.frames.last_mut() {
                let value = returned.take().unwrap_or_default();
                let base = *base;
                let called = match left.checked_sub(1) {
                    None => {
                        self.fiber.frames.pop();
                        self.fiber.stack[base as usize] = Value::Nil;
                        match self.fiber.frames.last() {
                            Some(Frame::Native { .. } | Frame::Chain { .. }) => CallOutcome::Value(value),
                            _ => return self.deliver(value, base),
                        }
                    }
                    Some(next) => {
                        *left = next;
                        let part = match &self.fiber.stack[base as usize] {
                            Value::Combinator(node) => node.parts().get(next as usize).cloned(),
                            _ => None,
                        };
                        self.call_one(part.unwrap_or_default(), value, base + 1, base + 1)?
                    }
                };
                match self.settle(called, &mut returned) {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            let (Some(native), Some(&Frame::Native { dst, top })) =
                (self.fiber.natives.last_mut(), self.fiber.frames.last())
            else {
                return Ok(None);
            };
            let action = match wanted.take() {
                Some(action) => action,
                None => native.resume(self.cx, returned.take())?,
            };
            let called = match action {
                Action::Return(value) => {
                    let dst = self.fiber.pop_native();
                    match self.fiber.frames.last() {
                        Some(Frame::Native { .. } | Frame::Chain { .. }) => {
                            returned = Some(value);
                            continue;
                        }
                        _ => return self.deliver(value, dst),
                    }
                }
                Action::Call1(callee, argument) => self.call_one(callee, argument, dst, top)?,
                Action::Call2(callee, first, second) => self.call_two(callee, first, second, dst, top)?,
                Action::Call(callee, arguments) => self.call(callee, arguments, dst, top)?,
                Action::TailCall(callee, arguments) => {
                    let dst = self.fiber.pop_native();
                    match self.call(callee, arguments, dst, top)? {
                        CallOutcome::Value(value) => match self.fiber.frames.last() {
                            Some(Frame::Native { .. } | Frame::Chain { .. }) => CallOutcome::Value(value),
                            _ => return self.deliver(value, dst),
                        },
                        other => other,
                    }
                }
                Action::Become(next) => {
                    *native = next;
                    continue;
                }
                Action::Pause => return Ok(Some(Stop::SliceEnd)),
                Action::Fork => return Ok(Some(Stop::Fork)),
                Action::Failed(fault, site) => {
                    // As if the function had a frame: the fault is located from there.
                    let frame = Frame::Code { function: site.function, pc: site.at + 1, base: top };
                    self.fiber.frames.push(frame);
                    return Err(fault);
                }
            };
            if let Some(end) = self.settle(called, &mut returned) {
                return Ok(end);
            }
        }
    }

    /// Handles the outcome of a call made by the machine on top; `Some` if the loop of machines ends.
    #[inline]
    fn settle(&self, called: CallOutcome, returned: &mut Option<Value>) -> Option<Option<Stop>> {
        match called {
            CallOutcome::Value(value) => {
                *returned = Some(value);
                None
            }
            CallOutcome::Entered => match self.fiber.frames.last() {
                Some(Frame::Native { .. }) => None,
                _ => Some(None),
            },
            CallOutcome::Stop(stop) => Some(Some(stop)),
        }
    }

    #[inline]
    fn call_one(&mut self, callee: Value, argument: Value, dst: u32, top: u32) -> Result<CallOutcome> {
        match callee {
            Value::Closure(closure) => self.call_closure(closure, [argument].into_iter(), dst, top),
            callee if is_direct(self.cx, &callee) => {
                apply(self.cx, &callee, &mut [argument]).map(CallOutcome::Value)
            }
            callee => self.call(callee, Arguments::from_array([argument]), dst, top),
        }
    }

    #[inline]
    fn call_two(
        &mut self,
        callee: Value,
        first: Value,
        second: Value,
        dst: u32,
        top: u32,
    ) -> Result<CallOutcome> {
        match callee {
            Value::Closure(closure) => self.call_closure(closure, [first, second].into_iter(), dst, top),
            callee if is_direct(self.cx, &callee) => {
                apply(self.cx, &callee, &mut [first, second]).map(CallOutcome::Value)
            }
            callee => self.call(callee, Arguments::from_array([first, second]), dst, top),
        }
    }
}

/// The first step of calling a combinator.
fn open_combinator(cx: &mut Context, combinator: &Rc<Combinator>, mut arguments: Arguments) -> Result<Step> {
    let parts = combinator.parts();
    Ok(match combinator.kind {
        CombinatorKind::Reduced | CombinatorKind::Endless(_) => {
            let word = Value::Combinator(combinator.clone()).type_word();
            return Err(Fault::new(Reason::NotCallable, format_args!("not callable: {word}")));
        }
        CombinatorKind::Constantly => Step::Return(parts.first().cloned().unwrap_or_default()),
        CombinatorKind::Partial => {
            Step::TailCall(parts[0].clone(), partial_arguments(cx, parts, &mut arguments)?)
        }
        CombinatorKind::Fnil => {
            for (argument, default) in arguments.iter_mut().zip(&parts[1..]) {
                if argument.is_nil() {
                    *argument = default.clone();
                }
            }
            Step::TailCall(parts[0].clone(), arguments)
        }
        CombinatorKind::Memoize => {
            Step::Enter(Native::Memoize(Memoize::new(cx, parts[0].clone(), &parts[1], arguments)?))
        }
        CombinatorKind::Transducer(_) => match (arguments.pop(), arguments.is_empty()) {
            (Some(function), true) => Step::Return(transducers::reducer(combinator, function)?),
            _ => return Err(reducing_arity("a transducer", "1 argument, a reducing function")),
        },
        CombinatorKind::Reducer if arguments.len() == 2 => {
            transducers::reducer_step(cx, combinator, arguments)?
        }
        CombinatorKind::Reducer if arguments.len() < 2 => Step::TailCall(parts[1].clone(), arguments),
        CombinatorKind::Completing if arguments.len() == 1 => match parts.get(1) {
            Some(finish) => Step::TailCall(finish.clone(), arguments),
            None => Step::Return(arguments.into_iter().next().unwrap_or_default()),
        },
        CombinatorKind::Completing if arguments.len() <= 2 => Step::TailCall(parts[0].clone(), arguments),
        CombinatorKind::Reducer | CombinatorKind::Completing => {
            return Err(reducing_arity("a reducing function", "0, 1 or 2 arguments"));
        }
        CombinatorKind::Comp
        | CombinatorKind::Juxt
        | CombinatorKind::Complement
        | CombinatorKind::EveryPred
        | CombinatorKind::SomeFn => Step::Enter(Native::Combine(Combine::new(combinator.clone(), arguments))),
    })
}

#[cold]
fn reducing_arity(what: &str, wanted: &str) -> Box<Fault> {
    Fault::new(Reason::ArityError, format_args!("{what} expects {wanted}"))
}
