//! Implements the functions `spill/…`, with which a program reads parts of results that are too large to return and are
//! kept in files. They work under the program's own budgets.

use super::build::{count, record};
use super::session::SessionState;
use super::tool_call::{LONGEST_NAME, over_memory, shown};
use ptc_base::spill::{
    DEFAULT_LINES, JsonPath, LONGEST_PATTERN, Look, LookError, Looked, MOST_CONTEXT, OwnedSpills, Spilled,
    TopLevel,
};
use ptc_calls::run::account::{Held, RunAccount};
use ptc_vm::builtins::{self, SpillForm};
use ptc_vm::json::{DecodeFailure, decode};
use ptc_vm::{Context, Fault, Reason, Value};
use std::sync::Arc;

/// A read of a spilled result that is ready to start.
pub(super) struct PlannedLook {
    pub(super) spilled: Arc<Spilled>,
    pub(super) look: Look,
    /// Limit of the text in bytes.
    pub(super) most: usize,
    /// The memory that is reserved for the text.
    pub(super) held: Held,
}

/// Reads the arguments of a form, and charges the operation.
pub(super) fn plan(
    cx: &mut Context,
    account: &Arc<RunAccount>,
    known: &KnownSpills<'_>,
    form: SpillForm,
    arguments: &[Value],
) -> Result<PlannedLook, Box<Fault>> {
    let handle = arguments.first().unwrap_or(&Value::Nil);
    let Some(spilled) = name_of(cx, handle).and_then(|name| known.find(&name)) else {
        let text = shown(cx, handle)?;
        let fault = wrong(form, format_args!("there is no kept result {text}"));
        return Err(fault.hint(
            "A call with :on-large :spill gives {:ok true :value_kind :spilled :spill \"r1\" …} when its result is too large.",
        ));
    };
    let most = usize::try_from(account.limits().max_upstream_response_bytes).unwrap_or(usize::MAX);
    let look = match form {
        SpillForm::Stat => Look::Stat,
        SpillForm::Head => Look::Head(number(cx, form, arguments.get(1), DEFAULT_LINES)?),
        SpillForm::Tail => Look::Tail(number(cx, form, arguments.get(1), DEFAULT_LINES)?),
        SpillForm::Slice => {
            Look::Slice(number(cx, form, arguments.get(1), 1)?, number(cx, form, arguments.get(2), u64::MAX)?)
        }
        SpillForm::Grep => {
            let context = number(cx, form, arguments.get(2), 0)?.min(MOST_CONTEXT);
            Look::Grep {
                pattern: text(cx, form, arguments.get(1))?,
                context: usize::try_from(context).unwrap_or(0),
            }
        }
        SpillForm::Read => {
            let bytes = number(cx, form, arguments.get(1), u64::MAX)?;
            Look::Read(usize::try_from(bytes).unwrap_or(usize::MAX))
        }
        SpillForm::JsonPath => {
            let path = text(cx, form, arguments.get(1))?;
            Look::Path(JsonPath::read(&path).map_err(|why| wrong(form, format_args!("{why}")))?)
        }
    };
    cx.tick(look.fuel(spilled.bytes(), most))?;
    let bytes = spilled.bytes().min(most as u64);
    let room = usize::try_from(bytes).ok().and_then(|bytes| account.hold(bytes));
    match room {
        Some(held) => Ok(PlannedLook { spilled, look, most, held }),
        None => Err(over_memory(bytes, account)),
    }
}

/// The name of a spilled result: a text, or the `:spill` of a call's result.
fn name_of(cx: &Context, handle: &Value) -> Option<String> {
    let text = match handle {
        Value::Map(map) => map.entries().find(|entry| cx.name(entry.key) == Some("spill"))?.value,
        other => other,
    };
    match text {
        Value::Str(text) => text.short(LONGEST_NAME).map(str::to_owned),
        _ => None,
    }
}

fn number(cx: &mut Context, form: SpillForm, given: Option<&Value>, default: u64) -> Result<u64, Box<Fault>> {
    match given {
        None | Some(Value::Nil) => Ok(default),
        Some(Value::Int(number)) if *number >= 0 => Ok(number.unsigned_abs()),
        Some(other) => {
            let text = shown(cx, other)?;
            Err(wrong(form, format_args!("takes numbers from 0, got {text}")))
        }
    }
}

fn text(cx: &mut Context, form: SpillForm, given: Option<&Value>) -> Result<String, Box<Fault>> {
    match given {
        Some(Value::Str(text)) if text.short(LONGEST_PATTERN).is_some() => Ok(text.as_str().to_owned()),
        other => {
            let text = shown(cx, other.unwrap_or(&Value::Nil))?;
            Err(wrong(form, format_args!("takes a text of at most {LONGEST_PATTERN} bytes, got {text}")))
        }
    }
}

/// The fault about a form, with its syntax.
fn wrong(form: SpillForm, what: std::fmt::Arguments<'_>) -> Box<Fault> {
    let name = form.name();
    let fault = Fault::new(Reason::RuntimeError, format_args!("{name}: {what}"));
    match builtins::lookup(None, name) {
        Some(builtin) => fault.hint(builtin.info().usage),
        None => fault,
    }
}

/// The result as a value of the program.
pub(super) fn value(cx: &mut Context, looked: Result<Looked, LookError>) -> Result<Value, Box<Fault>> {
    let looked = looked.map_err(|error| Fault::new(Reason::RuntimeError, error))?;
    match looked {
        Looked::Size(stat, top) => {
            let keys = match top {
                TopLevel::Object { keys, .. } => {
                    let keys = keys.iter().map(|key| cx.host_text(key)).collect::<Result<Vec<_>, _>>()?;
                    Some(Value::vector(keys))
                }
                TopLevel::List | TopLevel::Other => None,
            };
            record(
                cx,
                [("bytes", Some(count(stat.bytes))), ("lines", Some(count(stat.lines))), ("keys", keys)],
            )
        }
        Looked::Lines(part) => {
            cx.tick(part.text.len() as u64 / 16)?;
            let mut lines = Vec::new();
            for line in part.text.lines() {
                lines.push(cx.host_text(line)?);
            }
            let (from_line, truncated) = (count(part.from_line), Value::Bool(part.truncated));
            record(cx, [("lines", Value::vector(lines)), ("from_line", from_line), ("truncated", truncated)])
        }
        Looked::Beginning(part) => {
            let text = cx.host_text(&part.text)?;
            record(cx, [("text", text), ("truncated", Value::Bool(part.truncated))])
        }
        Looked::Matches(found) => {
            let text = cx.host_text(&found.text)?;
            let (matches, truncated) = (count(found.matches), Value::Bool(found.truncated));
            record(cx, [("text", text), ("matches", matches), ("truncated", truncated)])
        }
        Looked::Json(None) => Ok(Value::Nil),
        Looked::Json(Some(json)) => decode(cx, &json).map_err(|failure| match failure {
            DecodeFailure::Fault(fault) => fault,
            DecodeFailure::Invalid(why) => {
                Fault::new(Reason::RuntimeError, format_args!("what the path finds is not JSON: {why}"))
            }
        }),
    }
}

/// The spilled results that a program can name: its own, and those of its session.
pub(super) struct KnownSpills<'e> {
    pub(super) own: &'e OwnedSpills,
    pub(super) session: Option<&'e SessionState>,
}

impl KnownSpills<'_> {
    fn find(&self, name: &str) -> Option<Arc<Spilled>> {
        self.own.find(name).or_else(|| self.session?.spills().find(name))
    }
}
