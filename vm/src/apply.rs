//! Calls functions that need no stack frame: builtins that compute their value at once, keywords and collections in
//! call position, and combinations of these by `partial`, `comp` and others. Such a call cannot reach a function of the
//! program or the host, so a machine may make it directly, item by item.

use crate::bytecode::{BuiltinId, CombinatorKind};
use crate::context::{Context, Direct};
use crate::fault::{Fault, Reason, Result, Wanted};
use crate::memory::{List, account};
use crate::value::build::Arguments;
use crate::value::combinator::{Combinator, direct_depth};
use crate::value::{Store, Value};

/// Nesting of combinators up to which [`apply`] calls them itself, recursing as deep; beyond it a machine takes over.
const DEPTH: u8 = 4;

/// Whether [`apply`] can call the value.
#[inline]
pub(crate) fn is_direct(cx: &Store, function: &Value) -> bool {
    direct_depth(cx.builtins, function).is_some_and(|depth| depth <= DEPTH)
}

/// Calls a function for which [`is_direct`] holds. Costs the fuel of any call.
///
/// # Errors
/// What the function faults with; memory, deadline and cancellation.
pub(crate) fn apply(cx: &mut Context, function: &Value, arguments: &mut [Value]) -> Result<Value> {
    if let (Value::Keyword(symbol), [Value::Map(map)]) = (function, &*arguments) {
        cx.tick(1)?;
        let row = map.find_named(cx, *symbol);
        return Ok(row.map_or(Value::Nil, |row| map.value(row).clone()));
    }
    let result = match function {
        Value::Builtin(builtin) => call_direct(cx, *builtin, arguments),
        Value::Combinator(node) => apply_combinator(cx, node, arguments),
        data => call_data(cx, data, arguments),
    };
    if account::attention() { with_safepoint(cx, result) } else { result }
}

/// The safepoint after a call.
#[cold]
fn with_safepoint(cx: &mut Context, result: Result<Value>) -> Result<Value> {
    let value = result?;
    cx.attend()?;
    Ok(value)
}

#[inline]
fn call_direct(cx: &mut Context, builtin: BuiltinId, arguments: &mut [Value]) -> Result<Value> {
    let Direct { arity, run: Some(run) } = cx.direct[builtin.index()] else {
        return Err(not_callable(cx, &Value::Builtin(builtin)));
    };
    cx.fuel.slice -= 1;
    if !arity.accepts(arguments.len()) {
        return Err(arity_fault(cx, builtin, arguments.len()));
    }
    run(cx, arguments)
}

/// The arguments that a `partial` with these parts passes on: its own first, then the new ones. There may be very
/// many of either.
///
/// # Errors
/// Fuel and memory.
pub(crate) fn partial_arguments(
    cx: &mut Context,
    parts: &[Value],
    arguments: &mut [Value],
) -> Result<Arguments> {
    let given = parts[1..].iter().cloned();
    cx.arguments(given.chain(arguments.iter_mut().map(std::mem::take)))
}

/// Calls a combinator. A few nested parts may make many calls, so each call polls.
fn apply_combinator(cx: &mut Context, node: &Combinator, arguments: &mut [Value]) -> Result<Value> {
    cx.tick(1)?;
    let parts = node.parts();
    match node.kind {
        CombinatorKind::Constantly => Ok(parts.first().cloned().unwrap_or_default()),
        CombinatorKind::Partial => {
            let mut all = partial_arguments(cx, parts, arguments)?;
            apply(cx, &parts[0], &mut all)
        }
        CombinatorKind::Fnil => {
            for (argument, default) in arguments.iter_mut().zip(&parts[1..]) {
                if argument.is_nil() {
                    *argument = default.clone();
                }
            }
            match &parts[0] {
                Value::Builtin(builtin) => call_direct(cx, *builtin, arguments),
                function => apply(cx, function, arguments),
            }
        }
        CombinatorKind::Comp => {
            let mut parts = parts.iter().rev();
            let Some(first) = parts.next() else {
                // `(comp)` is identity.
                return Ok(arguments.last_mut().map(std::mem::take).unwrap_or_default());
            };
            let mut value = apply(cx, first, arguments)?;
            for part in parts {
                value = apply(cx, part, &mut [value])?;
            }
            Ok(value)
        }
        CombinatorKind::Juxt => {
            let mut items = List::with_capacity(cx, parts.len())?;
            for part in parts {
                let mut copy = cx.arguments(arguments.iter().cloned())?;
                let item = apply(cx, part, &mut copy)?;
                items.push(cx, item)?;
            }
            Ok(items.into_value())
        }
        CombinatorKind::Complement => Ok(Value::Bool(!apply(cx, &parts[0], arguments)?.is_truthy())),
        CombinatorKind::EveryPred => {
            for argument in arguments {
                for part in parts {
                    if !apply(cx, part, &mut [argument.clone()])?.is_truthy() {
                        return Ok(Value::Bool(false));
                    }
                }
            }
            Ok(Value::Bool(true))
        }
        CombinatorKind::SomeFn => {
            let mut last = Value::Nil;
            for argument in arguments {
                for part in parts {
                    last = apply(cx, part, &mut [argument.clone()])?;
                    if last.is_truthy() {
                        return Ok(last);
                    }
                }
            }
            Ok(last)
        }
        // Not direct: a machine makes these calls.
        _ => Ok(Value::Nil),
    }
}

/// Checks the number of arguments of a builtin.
#[inline]
pub(crate) fn check_arity(cx: &Store, builtin: BuiltinId, count: usize) -> Result<()> {
    if cx.builtins.facts(builtin).arity.accepts(count) {
        Ok(())
    } else {
        Err(arity_fault(cx, builtin, count))
    }
}

#[cold]
fn arity_fault(cx: &Store, builtin: BuiltinId, count: usize) -> Box<Fault> {
    let info = cx.builtins.facts(builtin);
    Fault::new(Reason::ArityError, info.arity.message(info.name, info.usage, count))
        .hint(format_args!("Usage: {}", info.usage))
}

/// Calls of keywords and collections: `(:k m)`, `(m k)`, `(s x)`, `(v i)`.
pub(crate) fn call_data(cx: &mut Context, callee: &Value, arguments: &mut [Value]) -> Result<Value> {
    cx.tick(1)?;
    let count = arguments.len();
    let mut arguments = arguments.iter_mut().map(std::mem::take);
    match callee {
        Value::Keyword(symbol) => {
            let (Some(source), 1..=2) = (arguments.next(), count) else {
                let name = cx.text(*symbol);
                return Err(Fault::new(
                    Reason::InvalidKeywordCall,
                    format_args!("keyword :{name} expects 1 or 2 arguments, got {count}"),
                )
                .hint(format_args!("Use (:{name} map) or (:{name} map default).")));
            };
            let default = arguments.next().unwrap_or_default();
            match &source {
                Value::Map(map) => {
                    let row = map.find_named(cx, *symbol);
                    Ok(row.map_or(default, |row| map.value(row).clone()))
                }
                Value::Set(set) => {
                    let row = set.find_keyword(cx, *symbol);
                    Ok(row.map_or(default, |row| set.member(row).clone()))
                }
                _ => Ok(default),
            }
        }
        Value::Map(map) => {
            let (Some(key), 1..=2) = (arguments.next(), count) else {
                return Err(Fault::new(
                    Reason::InvalidMapCall,
                    format_args!("a map in call position expects 1 or 2 arguments, got {count}"),
                )
                .hint("Use (m key) or (m key default)."));
            };
            let default = arguments.next().unwrap_or_default();
            Ok(map.get(cx, &key)?.cloned().unwrap_or(default))
        }
        Value::Set(set) => {
            let (Some(member), 1) = (arguments.next(), count) else {
                return Err(Fault::new(
                    Reason::ArityError,
                    format_args!("a set in call position expects 1 argument, got {count}"),
                )
                .hint("Use (s member), or (contains? s member)."));
            };
            Ok(set.find(cx, &member)?.map_or(Value::Nil, |row| set.member(row).clone()))
        }
        Value::Vector(vector) => {
            let (Some(index), 1..=2) = (arguments.next(), count) else {
                return Err(Fault::new(
                    Reason::ArityError,
                    format_args!("a vector in call position expects 1 or 2 arguments, got {count}"),
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
        other => Err(not_callable(cx, other)),
    }
}

#[cold]
pub(crate) fn not_callable(cx: &mut Context, value: &Value) -> Box<Fault> {
    const SHOWN: usize = 60;
    let shown = crate::print::pr_str(cx, value, SHOWN).map_or_else(
        |_| value.type_word().to_owned(),
        |printed| if printed.truncated { format!("{}…", printed.text) } else { printed.text },
    );
    Fault::new(Reason::NotCallable, format_args!("not callable: {shown}"))
        .mismatch(Wanted::Function, &[value.type_word()])
}
