//! Calling a value, whatever it is, and driving native machines.

use super::fiber::{Fiber, Frame};
use super::operations::{attend, check_arity};
use super::{Machine, Stop};
use crate::builtins::{BuiltinId, HostFunction, Implementation, Step, transducers};
use crate::combinator::{Combinator, CombinatorKind};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::heap;
use crate::hint::Wanted;
use crate::native::combine::Combine;
use crate::native::memoize::Memoize;
use crate::native::{Action, Native};
use crate::reason::Reason;
use crate::value::{Closure, Value};
use crate::vector::VectorNode;
use std::rc::Rc;

/// What became of a call.
pub(super) enum Called {
    /// The value is here.
    Value(Value),
    /// A frame was pushed: run it.
    Entered,
    /// The fiber must stop.
    Stop(Stop),
}

impl Machine<'_> {
    /// Calls a value. A function of the program gets its window at `top` (the first free stack slot);
    /// `dst` is where code that called expects the result.
    pub(super) fn call(
        &mut self,
        callee: Value,
        arguments: Vec<Value>,
        dst: u32,
        top: u32,
    ) -> Result<Called> {
        let (mut callee, mut arguments) = (callee, arguments);
        loop {
            match callee {
                Value::Closure(closure) => {
                    return self.call_closure(closure, arguments, dst, top);
                }
                Value::Builtin(builtin) => {
                    check_arity(builtin, arguments.len())?;
                    self.pay_call()?;
                    match builtin.info().implementation {
                        Implementation::Plain(run) => {
                            let value = run(self.cx, &mut arguments)?;
                            return Ok(Called::Value(value));
                        }
                        Implementation::Host(function) => {
                            return Ok(Called::Stop(Stop::Host { function, arguments, dst }));
                        }
                        Implementation::Callback(run) => match run(self.cx, &mut arguments)? {
                            Step::Return(value) => return Ok(Called::Value(value)),
                            Step::TailCall(next, next_arguments) => {
                                (callee, arguments) = (next, next_arguments);
                            }
                            Step::Enter(native) => {
                                self.fiber.push_native(native, dst, top);
                                return Ok(Called::Entered);
                            }
                        },
                    }
                }
                Value::Combinator(combinator) => {
                    self.pay_call()?;
                    match open_combinator(self.cx, &combinator, arguments)? {
                        Step::Return(value) => return Ok(Called::Value(value)),
                        Step::TailCall(next, next_arguments) => (callee, arguments) = (next, next_arguments),
                        Step::Enter(native) => {
                            self.fiber.push_native(native, dst, top);
                            return Ok(Called::Entered);
                        }
                    }
                }
                Value::Tool(name) => {
                    let function = match self.cx.text(name) {
                        "call" => HostFunction::ToolCall,
                        "servers" => HostFunction::Servers,
                        _ => {
                            arguments.insert(0, Value::Symbol(name));
                            HostFunction::Tool
                        }
                    };
                    return Ok(Called::Stop(Stop::Host { function, arguments, dst }));
                }
                other => return self.call_data(&other, arguments).map(Called::Value),
            }
        }
    }

    fn pay_call(&mut self) -> Result<()> {
        self.cx.tick(1)
    }

    fn call_closure(
        &mut self,
        closure: Rc<Closure>,
        arguments: Vec<Value>,
        dst: u32,
        top: u32,
    ) -> Result<Called> {
        let unit = &self.units[closure.unit.0 as usize];
        let count = arguments.len();
        let mut index = closure.proto;
        let mut proto = &unit.program.protos[usize::from(index.0)];
        while !proto.accepts(count) {
            match proto.next_arity {
                Some(next) => {
                    index = next;
                    proto = &unit.program.protos[usize::from(index.0)];
                }
                None => return Err(self.arity_mismatch(&closure, count)),
            }
        }
        // Called by code, the window begins where the caller expects the result; called by a machine, above
        // everything in use.
        let base = match self.fiber.frames.last() {
            Some(Frame::Code { .. }) => dst,
            _ => top,
        };
        let unit_id = closure.unit;
        let fixed = usize::from(proto.shape.fixed);
        Fiber::reserve_window(&mut self.fiber.stack, base as usize);
        let window = &mut self.fiber.stack[base as usize..];
        let mut arguments = arguments.into_iter();
        for (slot, argument) in window[1..=fixed].iter_mut().zip(arguments.by_ref()) {
            *slot = argument;
        }
        if proto.shape.variadic {
            let rest: Vec<Value> = arguments.collect();
            window[fixed + 1] = Value::Vector(VectorNode::new(rest));
        }
        window[0] = Value::Closure(closure);
        Fiber::push_frame(&mut self.fiber.frames, Frame::Code { unit: unit_id, proto: index, pc: 0, base });
        self.cx.fuel.slice -= 1;
        if heap::attention() {
            attend(self.cx)?;
        }
        if self.cx.fuel.slice < 0 {
            return Ok(Called::Stop(Stop::SliceEnd));
        }
        Ok(Called::Entered)
    }

    #[cold]
    fn arity_mismatch(&self, closure: &Closure, count: usize) -> Box<Fault> {
        let protos = &self.units[closure.unit.0 as usize].program.protos;
        let mut shapes = Vec::new();
        let mut parameters = Vec::new();
        let mut next = Some(closure.proto);
        let mut name = "";
        while let Some(index) = next {
            let proto = &protos[usize::from(index.0)];
            name = &proto.name;
            shapes.push(format!("{}{}", proto.shape.fixed, if proto.shape.variadic { "+" } else { "" }));
            parameters.push(format!("[{}]", proto.parameters));
            next = proto.next_arity;
        }
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        Fault::new(
            Reason::ArityMismatch,
            format!("{name}expected {} argument(s), got {count}", shapes.join(" or ")),
        )
        .hint(format!("The function takes {}.", parameters.join(" or ")))
    }

    /// Calls of keywords and collections: `(:k m)`, `(m k)`, `(s x)`, `(v i)`.
    fn call_data(&mut self, callee: &Value, arguments: Vec<Value>) -> Result<Value> {
        self.pay_call()?;
        let count = arguments.len();
        let mut arguments = arguments.into_iter();
        match callee {
            Value::Keyword(symbol) => {
                let (Some(source), 1..=2) = (arguments.next(), count) else {
                    let name = self.cx.text(*symbol);
                    return Err(Fault::new(
                        Reason::InvalidKeywordCall,
                        format!("keyword :{name} expects 1 or 2 arguments, got {count}"),
                    )
                    .hint(format!("Use (:{name} map) or (:{name} map default).")));
                };
                let default = arguments.next().unwrap_or_default();
                match &source {
                    Value::Map(map) => {
                        let row = map.find_named(self.cx, *symbol);
                        Ok(row.map_or(default, |row| map.entries()[row].value.clone()))
                    }
                    Value::Set(set) => {
                        let row = set.find_keyword(self.cx, *symbol);
                        Ok(row.map_or(default, |row| set.entries()[row].key.clone()))
                    }
                    _ => Ok(default),
                }
            }
            Value::Map(map) => {
                let (Some(key), 1..=2) = (arguments.next(), count) else {
                    return Err(Fault::new(
                        Reason::InvalidMapCall,
                        format!("a map in call position expects 1 or 2 arguments, got {count}"),
                    )
                    .hint("Use (m key) or (m key default)."));
                };
                let default = arguments.next().unwrap_or_default();
                Ok(map.get(self.cx, &key)?.cloned().unwrap_or(default))
            }
            Value::Set(set) => {
                let (Some(member), 1) = (arguments.next(), count) else {
                    return Err(Fault::new(
                        Reason::ArityError,
                        format!("a set in call position expects 1 argument, got {count}"),
                    )
                    .hint("Use (s member), or (contains? s member)."));
                };
                Ok(set.find(self.cx, &member)?.map_or(Value::Nil, |row| set.entries()[row].key.clone()))
            }
            Value::Vector(vector) => {
                let (Some(index), 1..=2) = (arguments.next(), count) else {
                    return Err(Fault::new(
                        Reason::ArityError,
                        format!("a vector in call position expects 1 or 2 arguments, got {count}"),
                    )
                    .hint("Read an item with (nth v index); remove the parentheses around a value."));
                };
                let default = arguments.next().unwrap_or_default();
                match index {
                    Value::Int(index) => {
                        let item = usize::try_from(index).ok().and_then(|index| vector.get(index));
                        Ok(item.unwrap_or(default))
                    }
                    _ => Ok(default),
                }
            }
            other => Err(self.not_callable(other)),
        }
    }

    #[cold]
    fn not_callable(&mut self, value: &Value) -> Box<Fault> {
        const SHOWN: usize = 60;
        let shown = crate::print::pr_str(self.cx, value, SHOWN).map_or_else(
            |_| value.type_word().to_owned(),
            |printed| if printed.truncated { format!("{}…", printed.text) } else { printed.text },
        );
        Fault::new(Reason::NotCallable, format!("not callable: {shown}"))
            .mismatch(Wanted::Function, &[value.type_word()])
    }

    /// Hands a value to the frame on top.
    pub(super) fn deliver(&mut self, value: Value, dst: u32) -> Result<Option<Stop>> {
        match self.fiber.frames.last() {
            None => Ok(Some(Stop::Done(value))),
            Some(Frame::Code { .. }) => {
                self.fiber.stack[dst as usize] = value;
                Ok(None)
            }
            Some(Frame::Native { .. }) => self.drive(Some(value)),
        }
    }

    /// Runs the machine on top until it enters code, ends into code, or the fiber stops.
    pub(super) fn drive(&mut self, returned: Option<Value>) -> Result<Option<Stop>> {
        let mut returned = returned;
        loop {
            if heap::attention() {
                attend(self.cx)?;
            }
            if self.cx.fuel.slice < 0
                && let Some(value) = returned
            {
                self.fiber.delivery = Some(super::fiber::Delivery { value, dst: 0 });
                return Ok(Some(Stop::SliceEnd));
            }
            let (Some(native), Some(&Frame::Native { dst, top })) =
                (self.fiber.natives.last_mut(), self.fiber.frames.last())
            else {
                return Ok(None);
            };
            let called = match native.resume(self.cx, returned.take())? {
                Action::Return(value) => {
                    let dst = self.fiber.pop_native();
                    match self.fiber.frames.last() {
                        Some(Frame::Native { .. }) => {
                            returned = Some(value);
                            continue;
                        }
                        _ => return self.deliver(value, dst),
                    }
                }
                Action::Call1(callee, argument) => self.call_one(callee, argument, dst, top)?,
                Action::Call2(callee, first, second) => {
                    if let Value::Builtin(builtin) = callee
                        && let Implementation::Plain(run) = builtin.info().implementation
                    {
                        self.call_plain(builtin, run, &mut [first, second])?
                    } else {
                        self.call(callee, vec![first, second], dst, top)?
                    }
                }
                Action::Call(callee, arguments) => self.call(callee, arguments, dst, top)?,
                Action::TailCall(callee, arguments) => {
                    let dst = self.fiber.pop_native();
                    match self.call(callee, arguments, dst, top)? {
                        Called::Value(value) => match self.fiber.frames.last() {
                            Some(Frame::Native { .. }) => Called::Value(value),
                            _ => return self.deliver(value, dst),
                        },
                        other => other,
                    }
                }
                Action::Become(next) => {
                    *native = next;
                    continue;
                }
                Action::Fork => return Ok(Some(Stop::Fork)),
            };
            match called {
                Called::Value(value) => returned = Some(value),
                Called::Entered => match self.fiber.frames.last() {
                    Some(Frame::Native { .. }) => {}
                    _ => return Ok(None),
                },
                Called::Stop(stop) => return Ok(Some(stop)),
            }
        }
    }

    #[inline]
    fn call_one(&mut self, callee: Value, argument: Value, dst: u32, top: u32) -> Result<Called> {
        match &callee {
            Value::Builtin(builtin) => {
                if let Implementation::Plain(run) = builtin.info().implementation {
                    return self.call_plain(*builtin, run, &mut [argument]);
                }
            }
            Value::Keyword(symbol) => {
                self.cx.fuel.slice -= 1;
                if let Value::Map(map) = &argument {
                    let row = map.find_named(self.cx, *symbol);
                    return Ok(Called::Value(row.map_or(Value::Nil, |row| map.entries()[row].value.clone())));
                }
            }
            _ => {}
        }
        self.call(callee, vec![argument], dst, top)
    }

    #[inline]
    fn call_plain(
        &mut self,
        builtin: BuiltinId,
        run: fn(&mut crate::Context, &mut [Value]) -> Result<Value>,
        arguments: &mut [Value],
    ) -> Result<Called> {
        check_arity(builtin, arguments.len())?;
        self.cx.fuel.slice -= 1;
        run(self.cx, arguments).map(Called::Value)
    }
}

/// The first step of calling a combinator.
fn open_combinator(cx: &mut Context, combinator: &Rc<Combinator>, arguments: Vec<Value>) -> Result<Step> {
    let parts = combinator.parts();
    Ok(match combinator.kind {
        CombinatorKind::Reduced | CombinatorKind::Endless(_) => {
            let word = Value::Combinator(combinator.clone()).type_word();
            return Err(Fault::new(Reason::NotCallable, format!("not callable: {word}")));
        }
        CombinatorKind::Constantly => Step::Return(parts.first().cloned().unwrap_or_default()),
        CombinatorKind::Partial => {
            let mut all = Vec::with_capacity(parts.len() + arguments.len());
            all.extend_from_slice(&parts[1..]);
            all.extend(arguments);
            Step::TailCall(parts[0].clone(), all)
        }
        CombinatorKind::Fnil => {
            let mut arguments = arguments;
            for (argument, default) in arguments.iter_mut().zip(&parts[1..]) {
                if argument.is_nil() {
                    *argument = default.clone();
                }
            }
            Step::TailCall(parts[0].clone(), arguments)
        }
        CombinatorKind::Memoize => {
            Step::Enter(Native::Memoize(Memoize::new(parts[0].clone(), &parts[1], arguments)))
        }
        CombinatorKind::Transducer(_) => {
            let mut arguments = arguments;
            match (arguments.pop(), arguments.is_empty()) {
                (Some(function), true) => Step::Return(transducers::reducer(combinator, function)?),
                _ => return Err(reducing_arity("a transducer", "1 argument, a reducing function")),
            }
        }
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
    Fault::new(Reason::ArityError, format!("{what} expects {wanted}"))
}
