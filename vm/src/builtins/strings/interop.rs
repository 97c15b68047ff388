//! Builtins named after methods of Java's string and number classes (`.substring`, `Integer/parseInt`), because
//! language models often write them.

use super::{change, output, parts, replace, search, string_argument};
use crate::arith;
use crate::builtins::numbers::convert;
use crate::builtins::{Builtin, Category, direct};
use crate::collection::lookup::{grapheme, position};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::build::{Case, Text};
use crate::value::relation::equal::equal;
use crate::value::relation::order::compare;
use crate::value::string::StringNode;

/// Longer text is not an integer.
const LONGEST_DIGITS: usize = 512;

const INTEROP: Category = Category::Interop;

/// The rows of this module.
#[rustfmt::skip]
pub(in crate::builtins) const TABLE: &[Builtin] = &[
    direct(".contains", INTEROP, "2", "(.contains s part)", "Whether the part occurs in the string, or the item in a list or set.", contains),
    direct(".startsWith", INTEROP, "2", "(.startsWith s part)", "Whether the string begins with the part.", |cx, a| search::related(cx, a, ".startsWith", StringNode::starts_with)),
    direct(".endsWith", INTEROP, "2", "(.endsWith s part)", "Whether the string ends with the part.", |cx, a| search::related(cx, a, ".endsWith", StringNode::ends_with)),
    direct(".indexOf", INTEROP, "2-3", "(.indexOf s part from?)", "Where the part first occurs in the string, or the item in a list, or -1.", index_of),
    direct(".lastIndexOf", INTEROP, "2", "(.lastIndexOf s part)", "Where the part last occurs, or -1.", |cx, a| search::last_index_of(cx, a, ".lastIndexOf", Value::Int(-1))),
    direct(".length", INTEROP, "1", "(.length s)", "Number of characters.", length),
    direct(".substring", INTEROP, "2-3", "(.substring s start end?)", "The part of a string; indexes have to be within it.", substring),
    direct(".toLowerCase", INTEROP, "1", "(.toLowerCase s)", "In lower case.", |cx, a| change::map_text(cx, a, ".toLowerCase", change::lower)),
    direct(".toUpperCase", INTEROP, "1", "(.toUpperCase s)", "In upper case.", |cx, a| change::map_text(cx, a, ".toUpperCase", change::upper)),
    direct("Integer/parseInt", INTEROP, "1-2", "(Integer/parseInt text radix?)", "The integer that the text is, of base 2 to 36, or nil.", parse_integer).total(),
    direct("Long/parseLong", INTEROP, "1-2", "(Long/parseLong text radix?)", "The integer that the text is, of base 2 to 36, or nil.", parse_integer).total(),
    direct(".split", INTEROP, "2-3", "(.split s regex limit?)", "The parts between the matches of a regex, which may be a string.", split),
    direct(".replace", INTEROP, "3", "(.replace s part with)", "The string with every part replaced.", |cx, a| replace::replace_text(cx, a, ".replace", false)),
    direct(".replaceAll", INTEROP, "3", "(.replaceAll s regex with)", "The string with every match of a regex replaced, which may be a string.", |cx, a| {
        pattern(cx, a)?;
        replace::replace_text(cx, a, ".replaceAll", false)
    }),
    direct(".matches", INTEROP, "2", "(.matches s regex)", "Whether a regex, which may be a string, matches the whole string.", matches_whole),
    direct(".charAt", INTEROP, "2", "(.charAt s index)", "The character at an index, which has to be within the string.", char_at),
    direct(".concat", INTEROP, "2", "(.concat s other)", "Both strings, joined.", concat),
    direct(".trim", INTEROP, "1", "(.trim s)", "Without blanks at both ends.", |cx, a| change::part(cx, a, ".trim", str::trim)),
    direct(".isEmpty", INTEROP, "1", "(.isEmpty s)", "Whether a string or collection is empty.", is_empty),
    direct(".isBlank", INTEROP, "1", "(.isBlank s)", "Whether the string is empty or blank.", is_blank),
    direct(".equals", INTEROP, "2", "(.equals x y)", "The same as `=`.", |cx, a| Ok(Value::Bool(equal(cx, &a[0], &a[1])?))),
    direct(".equalsIgnoreCase", INTEROP, "2", "(.equalsIgnoreCase s other)", "Whether two strings are the same but for the case of letters.", equals_ignore_case),
    direct(".compareTo", INTEROP, "2", "(.compareTo x y)", "-1, 0 or 1, as `compare`.", |cx, a| Ok(Value::Int(compare(cx, &a[0], &a[1])? as i64))),
    direct(".toString", INTEROP, "1", "(.toString x)", "The same as `str`.", output::str),
    direct("Double/parseDouble", INTEROP, "1", "(Double/parseDouble text)", "The same as `parse-double`.", convert::parse_double).total(),
    direct("Float/parseFloat", INTEROP, "1", "(Float/parseFloat text)", "The same as `parse-double`.", convert::parse_double).total(),
    direct("Boolean/parseBoolean", INTEROP, "1", "(Boolean/parseBoolean text)", "Whether the text is true in any case of letters.", parse_boolean),
];

fn contains(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &*arguments {
        [Value::Vector(list), item] => Ok(Value::Bool(position(cx, list, item)?.is_some())),
        [Value::Set(set), item] => Ok(Value::Bool(set.find(cx, item)?.is_some())),
        _ => search::includes(cx, arguments, ".contains"),
    }
}

fn index_of(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &*arguments {
        [Value::Vector(list), item] => {
            Ok(Value::Int(position(cx, list, item)?.map_or(-1, |position| position as i64)))
        }
        _ => search::index_of(cx, arguments, ".indexOf", Value::Int(-1)),
    }
}

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
        other => Err(other.mistyped(format_args!(".substring: arg {} expected integer", position + 1))),
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

/// The integer of a text in a base, or nil.
fn parse_integer(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let (text, radix) = match &arguments {
        [Value::Str(node), Value::Int(radix)] => (node.short(LONGEST_DIGITS), u32::try_from(*radix).ok()),
        [_] => return convert::parse_long(cx, arguments),
        _ => (None, None),
    };
    let number = text.zip(radix.filter(|radix| (2..=36).contains(radix)));
    Ok(number.and_then(|(text, radix)| i64::from_str_radix(text, radix).ok()).map_or(Value::Nil, Value::Int))
}

/// Compiles a string argument to a regex, as these methods do in Java.
fn pattern(cx: &mut Context, arguments: &mut [Value]) -> Result<()> {
    if let Value::Str(node) = &arguments[1] {
        let text = cx.read(node)?;
        arguments[1] = Value::Regex(cx.compile_regex(text)?);
    }
    Ok(())
}

fn split(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    string_argument(arguments, 0, ".split")?;
    pattern(cx, arguments)?;
    parts::split(cx, arguments)
}

fn matches_whole(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    pattern(cx, arguments)?;
    let node = string_argument(arguments, 0, ".matches")?;
    let Value::Regex(regex) = &arguments[1] else {
        return Err(arith::invalid_types(".matches", &[&arguments[0], &arguments[1]]));
    };
    let text = cx.read(node)?;
    Ok(Value::Bool(cx.match_whole(regex, text)?.is_some()))
}

fn char_at(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let node = string_argument(arguments, 0, ".charAt")?;
    let index = match &arguments[1] {
        Value::Int(index) => usize::try_from(*index).ok(),
        other => return Err(arith::invalid_types(".charAt", &[&arguments[0], other])),
    };
    if let Some(index) = index
        && let Some(found) = grapheme(cx, node, index)?
    {
        return Ok(found);
    }
    let length = cx.graphemes(node)?;
    Err(Fault::type_error(format_args!(".charAt: the index is outside a string of length {length}")))
}

fn concat(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    for position in [0, 1] {
        string_argument(arguments, position, ".concat")?;
    }
    output::str(cx, arguments)
}

fn is_empty(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let is_empty = arguments[0].has_no_items();
    is_empty.map(Value::Bool).ok_or_else(|| arith::invalid_types(".isEmpty", &[&arguments[0]]))
}

fn is_blank(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    string_argument(arguments, 0, ".isBlank")?;
    search::blank(cx, arguments)
}

fn equals_ignore_case(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let mut cased = [Text::new(), Text::new()];
    for (position, text) in cased.iter_mut().enumerate() {
        let node = string_argument(arguments, position, ".equalsIgnoreCase")?;
        let whole = cx.read(node)?;
        text.push_cased(cx, whole, Case::Lower)?;
    }
    Ok(Value::Bool(cased[0].as_str() == cased[1].as_str()))
}
