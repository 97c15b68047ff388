//! Builtins for keywords: `keyword` makes one from text, `name` gives its text, and `type` gives the type of a value as
//! a keyword.

use crate::builtins::{Builtin, Category, direct};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use std::mem::take;

const CORE: Category = Category::Core;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("type", CORE, "1", "(type x)", "The type as a keyword, nil for nil.", type_of),
    direct("keyword", CORE, "1", "(keyword name)", "The keyword of a name.", keyword),
    direct("name", CORE, "1", "(name x)", "The text of a keyword or string.", name),
];

fn type_of(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let name = match &arguments[0] {
        Value::Nil => return Ok(Value::Nil),
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::Float(_) | Value::BigInt(_) => "number",
        Value::Str(_) => "string",
        Value::Keyword(_) => "keyword",
        Value::Vector(_) => "vector",
        Value::Map(_) => "map",
        Value::Set(_) => "set",
        Value::Regex(_) => "regex",
        value if value.is_function() => "function",
        _ => "unknown",
    };
    Ok(cx.keyword(name))
}

fn keyword(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Keyword(symbol) => Ok(Value::Keyword(*symbol)),
        Value::Str(node) => {
            let text = cx.read(node)?;
            if !is_keyword_name(text) {
                return Err(not_a_name(cx, &arguments[0]));
            }
            cx.tick(text.len() as u64)?;
            cx.reserve(text.len())?;
            Ok(cx.keyword(text))
        }
        other => Err(not_a_name(cx, other)),
    }
}

#[cold]
fn not_a_name(cx: &mut Context, value: &Value) -> Box<Fault> {
    match crate::print::pr_str(cx, value, LONGEST_SHOWN) {
        Ok(shown) => Fault::runtime(format_args!("invalid keyword name: {}", shown.text)).hint(
            "A keyword is a letter and letters, digits, - _ ? or !; a text is a key as well: (get m \"First Name\").",
        ),
        Err(fault) => fault,
    }
}

/// Longest value shown in a message.
const LONGEST_SHOWN: usize = 80;

fn is_keyword_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_?!".contains(&byte))
}

fn name(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    match take(&mut arguments[0]) {
        Value::Keyword(symbol) => Ok(Value::Str(cx.symbols.string(symbol).clone())),
        Value::Symbol(symbol) => {
            let node = cx.symbols.string(symbol).clone();
            let text = cx.read(&node)?;
            let local = text.split_once('/').map_or(text, |(_, local)| local);
            cx.copy_text(local)
        }
        text @ Value::Str(_) => Ok(text),
        other => {
            Err(Fault::runtime(format_args!("name: expected keyword or string, got {}", other.type_word())))
        }
    }
}
