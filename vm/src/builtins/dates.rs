//! Implements the basic date builtins, named after Java's classes: parsing, comparing, adding days, durations between
//! instants, the clock; parts of dates and other arithmetic are in `calendar`.

use super::calendar::later;
use crate::builtins::{Builtin, Category, HostFunction, callback, direct, host};
use crate::bytecode::{CombinatorKind, Known};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::Step;
use crate::value::Value;
use crate::value::combinator::Combinator;
use crate::value::temporal::{DateTime, Duration, LocalDate};
use std::cmp::Ordering;
use std::fmt;

const INTEROP: Category = Category::Interop;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("parse", INTEROP, "1", "(parse text)", "The LocalDate of YYYY-MM-DD, or the DateTime (UTC) of a text with a T.", parse),
    direct("LocalDate/parse", INTEROP, "1", "(LocalDate/parse text)", "The same as `parse`.", parse),
    direct("Instant/parse", INTEROP, "1", "(Instant/parse text)", "The same as `parse`.", parse),
    callback("java.util.Date.", INTEROP, "0-1", "(java.util.Date.), (java.util.Date. x)", "The DateTime of now, of seconds or milliseconds since 1970, of an ISO 8601 or RFC 2822 text.", date),
    host("System/currentTimeMillis", INTEROP, "0", "(System/currentTimeMillis)", "Milliseconds since 1970, the same during a whole program.", HostFunction::Now),
    host("currentTimeMillis", INTEROP, "0", "(currentTimeMillis)", "The same as `System/currentTimeMillis`.", HostFunction::Now).known(Known::Now),
    direct(".getTime", INTEROP, "1", "(.getTime date-time)", "Milliseconds since 1970.", |_cx, a| Ok(Value::Int(date_time(a, 0, ".getTime")?.millis()))),
    direct(".toEpochDay", INTEROP, "1", "(.toEpochDay date)", "Days since 1970-01-01.", |_cx, a| Ok(Value::Int(local_date(a, ".toEpochDay")?.epoch_day()))),
    direct(".plusDays", INTEROP, "2", "(.plusDays date days)", "The date so many days later.", |_cx, a| later(a, ".plusDays", LocalDate::plus_days, 1)),
    direct(".minusDays", INTEROP, "2", "(.minusDays date days)", "The date so many days earlier.", |_cx, a| later(a, ".minusDays", LocalDate::plus_days, -1)),
    direct(".isBefore", INTEROP, "2", "(.isBefore date other)", "Whether the first of two dates of one type is earlier.", |_cx, a| is_ordered(a, ".isBefore", Ordering::Less)),
    direct(".isAfter", INTEROP, "2", "(.isAfter date other)", "Whether the first of two dates of one type is later.", |_cx, a| is_ordered(a, ".isAfter", Ordering::Greater)),
    direct("Duration/between", INTEROP, "2", "(Duration/between start end)", "The Duration between two DateTimes.", between),
    direct(".toMillis", INTEROP, "1", "(.toMillis duration)", "The milliseconds of a Duration.", |_cx, a| Ok(Value::Int(duration(a, ".toMillis")?.millis()))),
    direct(".toDays", INTEROP, "1", "(.toDays duration)", "The whole days of a Duration.", |_cx, a| Ok(Value::Int(duration(a, ".toDays")?.days()))),
    direct("%date-time", Category::Internal, "1", "(%date-time millis)", "The DateTime of milliseconds since 1970.", from_clock).known(Known::DateOfClock),
];

/// Longest part of a text shown in a message, in characters.
const LONGEST_SHOWN: usize = 40;

/// The beginning of a text.
fn shown(text: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| match text.char_indices().nth(LONGEST_SHOWN) {
        Some((at, _)) => write!(f, "{}...", &text[..at]),
        None => f.write_str(text),
    })
}

#[cold]
pub(super) fn expected(name: &str, what: &str, got: &Value) -> Box<Fault> {
    let fault = got.mistyped(format_args!("{name}: expected {what}"));
    match got {
        Value::Str(_) if what.contains("Date") => {
            fault.hint("Read the string first, for example (LocalDate/parse s) or (Instant/parse s).")
        }
        _ => fault,
    }
}

#[cold]
pub(super) fn out_of_range(name: &str) -> Box<Fault> {
    Fault::type_error(format_args!("{name}: the result is outside the years -9999 to 9999"))
}

/// The date of an ISO 8601 text: with a `T` a DateTime, else a LocalDate.
pub(super) fn read_date(text: &str) -> Option<Value> {
    match text.contains('T') {
        true => DateTime::parse(text).map(Value::DateTime),
        false => LocalDate::parse(text).map(Value::LocalDate),
    }
}

pub(super) fn parse(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Value::Str(node) = &arguments[0] else { return Err(expected("parse", "string", &arguments[0])) };
    let text = cx.read(node)?;
    read_date(text).ok_or_else(|| {
        let (kind, form) = match text.contains('T') {
            true => ("date-time", "YYYY-MM-DDTHH:MM:SSZ"),
            false => ("date", "YYYY-MM-DD"),
        };
        Fault::type_error(format_args!("parse: invalid ISO-8601 {kind} '{}' (expected {form})", shown(text)))
    })
}

fn date(cx: &mut Context, arguments: &mut [Value]) -> Result<Step> {
    const NAME: &str = "java.util.Date.";
    let [argument] = arguments else { return Ok(now_as(None)) };
    let date_time = match argument {
        Value::Int(number) => DateTime::from_seconds_or_millis(*number).ok_or_else(|| out_of_range(NAME))?,
        Value::BigInt(_) => return Err(out_of_range(NAME)),
        Value::DateTime(value) => *value,
        Value::LocalDate(value) => value.midnight().ok_or_else(|| out_of_range(NAME))?,
        Value::Str(node) => {
            let text = cx.read(node)?;
            let day = || LocalDate::parse(text).and_then(LocalDate::midnight);
            DateTime::parse(text).or_else(day).or_else(|| DateTime::parse_mail(text)).ok_or_else(|| {
                Fault::type_error(format_args!("{NAME}: cannot read '{}' as a date", shown(text)))
                    .hint("Write an ISO 8601 text such as \"2026-01-08T14:30:00Z\" or \"2026-01-08\".")
            })?
        }
        other => return Err(expected(NAME, "integer, string or date", other)),
    };
    Ok(Step::Return(Value::DateTime(date_time)))
}

/// A host call for the clock; `then` is the builtin that converts the resulting DateTime.
pub(super) fn now_as(then: Option<Known>) -> Step {
    let [from_clock, clock] = [Known::DateOfClock, Known::Now].map(|known| Value::Builtin(known.id()));
    let combinator = match then {
        Some(then) => {
            Combinator::from_parts(CombinatorKind::Comp, [Value::Builtin(then.id()), from_clock, clock])
        }
        None => Combinator::from_parts(CombinatorKind::Comp, [from_clock, clock]),
    };
    Step::TailCall(Value::Combinator(combinator), crate::builtins::Arguments::new())
}

fn from_clock(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    const NAME: &str = "java.util.Date.";
    match &arguments[0] {
        Value::Int(millis) => {
            DateTime::from_millis(*millis).map(Value::DateTime).ok_or_else(|| out_of_range(NAME))
        }
        other => Err(expected(NAME, "integer", other)),
    }
}

pub(super) fn date_time(arguments: &[Value], index: usize, name: &str) -> Result<DateTime> {
    match &arguments[index] {
        Value::DateTime(value) => Ok(*value),
        other => Err(expected(name, "DateTime", other)),
    }
}

pub(super) fn local_date(arguments: &[Value], name: &str) -> Result<LocalDate> {
    match &arguments[0] {
        Value::LocalDate(value) => Ok(*value),
        other => Err(expected(name, "LocalDate", other)),
    }
}

pub(super) fn duration(arguments: &[Value], name: &str) -> Result<Duration> {
    match &arguments[0] {
        Value::Duration(value) => Ok(*value),
        other => Err(expected(name, "Duration", other)),
    }
}

fn is_ordered(arguments: &[Value], name: &str, wanted: Ordering) -> Result<Value> {
    let order = match (&arguments[0], &arguments[1]) {
        (Value::LocalDate(a), Value::LocalDate(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (a @ (Value::LocalDate(_) | Value::DateTime(_)), b) => {
            let fault = Fault::type_error(format_args!(
                "{name}: cannot compare {} with {} — use same types",
                a.type_word(),
                b.type_word()
            ));
            return Err(match b {
                Value::Str(_) => fault.hint("Read the string first, for example (LocalDate/parse s)."),
                _ => fault,
            });
        }
        (a, _) => return Err(expected(name, "LocalDate or DateTime", a)),
    };
    Ok(Value::Bool(order == wanted))
}

fn between(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    const NAME: &str = "Duration/between";
    if let [Value::LocalDate(_), Value::LocalDate(_)] = arguments {
        return Err(expected(NAME, "DateTime", &arguments[0])
            .hint("The days between two dates are (- (.toEpochDay end) (.toEpochDay start))."));
    }
    let (start, end) = (date_time(arguments, 0, NAME)?, date_time(arguments, 1, NAME)?);
    Ok(Value::Duration(start.until(end)))
}
