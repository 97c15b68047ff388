//! Strings made of the characters of others.

use super::{slice, string_argument};
use crate::arith::invalid_types;
use crate::context::Context;
use crate::fault::Result;
use crate::print::{Buffer, write_display};
use crate::string::StringNode;
use crate::value::Value;
use std::mem::take;
use unicode_segmentation::UnicodeSegmentation;

/// The string that `map` makes of the argument.
pub(in crate::builtins) fn map_text(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    map: fn(&StringNode) -> String,
) -> Result<Value> {
    let node = string_argument(arguments, 0, name)?;
    let bytes = node.as_str().len();
    cx.tick(bytes as u64)?;
    // Case can make a character longer, and a growing text has room to spare.
    cx.reserve(bytes.saturating_mul(2))?;
    Ok(Value::Str(StringNode::new(map(node))))
}

/// Upper case.
pub(in crate::builtins) fn upper(node: &StringNode) -> String {
    node.as_str().to_uppercase()
}

/// Lower case.
pub(in crate::builtins) fn lower(node: &StringNode) -> String {
    node.as_str().to_lowercase()
}

/// The first grapheme in upper case, the others in lower case.
pub(in crate::builtins) fn capitalize(node: &StringNode) -> String {
    let text = node.as_str();
    let first = text.graphemes(true).next().map_or(0, str::len);
    let mut result = text[..first].to_uppercase();
    result.push_str(&text[first..].to_lowercase());
    result
}

/// The graphemes in the opposite order.
pub(in crate::builtins) fn reverse(node: &StringNode) -> String {
    if node.is_ascii() {
        node.as_str().chars().rev().collect()
    } else {
        node.as_str().graphemes(true).rev().collect()
    }
}

/// The part of the argument that `choose` keeps.
pub(in crate::builtins) fn part(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    choose: fn(&str) -> &str,
) -> Result<Value> {
    let node = string_argument(arguments, 0, name)?;
    let whole = node.as_str();
    let kept = choose(whole);
    cx.tick((whole.len() - kept.len()) as u64)?;
    if kept.len() == whole.len() {
        return Ok(take(&mut arguments[0]));
    }
    slice(cx, kept)
}

/// `(escape s replacements)`: characters that are keys of the map become their values.
pub(in crate::builtins) fn escape(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let text = string_argument(arguments, 0, "escape")?;
    let Value::Map(map) = &arguments[1] else {
        return Err(invalid_types("escape", &[&arguments[0], &arguments[1]]));
    };
    let mut buffer = Buffer::new(usize::MAX);
    for grapheme in text.as_str().graphemes(true) {
        let row = map.find_text(grapheme, crate::string::hash_text(grapheme), cx.symbols.find(grapheme));
        match row {
            Some(row) => write_display(cx, &mut buffer, map.value(row))?,
            None => buffer.push(cx, grapheme)?,
        }
    }
    Ok(Value::Str(StringNode::new(buffer.into_text())))
}
