//! Methods of Java strings and the parsers of Java's number classes, by the names that models write.

use super::{change, search, string_argument};
use crate::arith;
use crate::builtins::numbers::convert;
use crate::builtins::{Builtin, Category, plain};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::string::StringNode;

const INTEROP: Category = Category::Interop;

/// The rows of this module.
#[rustfmt::skip]
pub(in crate::builtins) const TABLE: &[Builtin] = &[
    plain(".contains", INTEROP, "2", "(.contains s part)", "Whether the part occurs in the string.", |cx, a| search::includes(cx, a, ".contains")),
    plain(".startsWith", INTEROP, "2", "(.startsWith s part)", "Whether the string begins with the part.", |cx, a| search::related(cx, a, ".startsWith", StringNode::starts_with)),
    plain(".endsWith", INTEROP, "2", "(.endsWith s part)", "Whether the string ends with the part.", |cx, a| search::related(cx, a, ".endsWith", StringNode::ends_with)),
    plain(".indexOf", INTEROP, "2-3", "(.indexOf s part from?)", "Where the part first occurs, or -1.", |cx, a| search::index_of(cx, a, ".indexOf", Value::Int(-1))),
    plain(".lastIndexOf", INTEROP, "2", "(.lastIndexOf s part)", "Where the part last occurs, or -1.", |cx, a| search::last_index_of(cx, a, ".lastIndexOf", Value::Int(-1))),
    plain(".length", INTEROP, "1", "(.length s)", "Number of characters.", length),
    plain(".substring", INTEROP, "2-3", "(.substring s start end?)", "The part of a string; indexes have to be within it.", substring),
    plain(".toLowerCase", INTEROP, "1", "(.toLowerCase s)", "In lower case.", |cx, a| change::map_text(cx, a, ".toLowerCase", change::lower)),
    plain(".toUpperCase", INTEROP, "1", "(.toUpperCase s)", "In upper case.", |cx, a| change::map_text(cx, a, ".toUpperCase", change::upper)),
    plain("Integer/parseInt", INTEROP, "1", "(Integer/parseInt text)", "The same as `parse-long`.", convert::parse_long).total(),
    plain("Long/parseLong", INTEROP, "1", "(Long/parseLong text)", "The same as `parse-long`.", convert::parse_long).total(),
    plain("Double/parseDouble", INTEROP, "1", "(Double/parseDouble text)", "The same as `parse-double`.", convert::parse_double).total(),
    plain("Float/parseFloat", INTEROP, "1", "(Float/parseFloat text)", "The same as `parse-double`.", convert::parse_double).total(),
    plain("Boolean/parseBoolean", INTEROP, "1", "(Boolean/parseBoolean text)", "Whether the text is true in any case of letters.", parse_boolean),
];

fn length(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, ".length")?;
    Ok(Value::Int(cx.graphemes(node)? as i64))
}

/// An index within `0..=length`.
fn index(arguments: &[Value], position: usize, which: &str, length: usize) -> Result<usize> {
    let value = match &arguments[position] {
        Value::Float(value) => arith::float_to_integer(value.trunc()),
        other => other.clone(),
    };
    match value {
        Value::Int(value) => usize::try_from(value).ok().filter(|&value| value <= length).ok_or_else(|| {
            Fault::type_error(format_args!(
                ".substring: {which} index {value} out of range for string of length {length}"
            ))
        }),
        other => Err(Fault::type_error(format_args!(
            ".substring: arg {} expected integer, got {}",
            position + 1,
            other.type_word()
        ))),
    }
}

fn substring(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, ".substring")?;
    let length = cx.graphemes(node)?;
    let start = index(arguments, 1, "start", length)?;
    let end = if arguments.len() > 2 { index(arguments, 2, "end", length)? } else { length };
    if start > end {
        return Err(Fault::type_error(format_args!(
            ".substring: start index {start} is after the end index {end}"
        )));
    }
    search::part(cx, node, start, end)
}

fn parse_boolean(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Nil => Ok(Value::Bool(false)),
        Value::Str(node) => Ok(Value::Bool(node.preview().eq_ignore_ascii_case("true"))),
        other => Err(arith::invalid_types("Boolean/parseBoolean", &[other])),
    }
}
