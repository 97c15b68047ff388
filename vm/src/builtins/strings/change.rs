//! Builtins that make a string by changing the case of another one, or by reversing, escaping or trimming it.

use super::string_argument;
use crate::arith::invalid_types;
use crate::context::Context;
use crate::fault::Result;
use crate::print::write_display;
use crate::value::Value;
use crate::value::build::{Case, Text};
use crate::value::read::Graphemes;
use std::mem::take;

/// The string that `write` makes of the argument's text.
pub(in crate::builtins) fn map_text(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    write: fn(&mut Context, &mut Text, &str) -> Result<()>,
) -> Result<Value> {
    let node = string_argument(arguments, 0, name)?;
    let text = cx.read(node)?;
    let mut changed = Text::with_capacity(cx, text.len())?;
    write(cx, &mut changed, text)?;
    Ok(changed.into_value())
}

/// Upper case.
pub(in crate::builtins) fn upper(cx: &mut Context, changed: &mut Text, text: &str) -> Result<()> {
    changed.push_cased(cx, text, Case::Upper)
}

/// Lower case.
pub(in crate::builtins) fn lower(cx: &mut Context, changed: &mut Text, text: &str) -> Result<()> {
    changed.push_cased(cx, text, Case::Lower)
}

/// The first grapheme in upper case, the others in lower case.
pub(in crate::builtins) fn capitalize(cx: &mut Context, changed: &mut Text, text: &str) -> Result<()> {
    let first = Graphemes::from_start(text).next(cx)?.map_or(0, str::len);
    upper(cx, changed, &text[..first])?;
    lower(cx, changed, &text[first..])
}

/// The graphemes in the opposite order.
pub(in crate::builtins) fn reverse(cx: &mut Context, changed: &mut Text, text: &str) -> Result<()> {
    let mut graphemes = Graphemes::from_end(text);
    while let Some(grapheme) = graphemes.previous(cx)? {
        changed.push(cx, grapheme)?;
    }
    Ok(())
}

/// The part of the argument's text that `choose` selects.
pub(in crate::builtins) fn part(
    cx: &mut Context,
    arguments: &mut [Value],
    name: &str,
    choose: fn(&str) -> &str,
) -> Result<Value> {
    let node = string_argument(arguments, 0, name)?;
    let whole = cx.read(node)?;
    let kept = choose(whole);
    cx.tick((whole.len() - kept.len()) as u64)?;
    if kept.len() == whole.len() {
        return Ok(take(&mut arguments[0]));
    }
    cx.copy_text(kept)
}

/// `(escape s replacements)`: replaces characters that are keys of the map by their values.
pub(in crate::builtins) fn escape(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let text = string_argument(arguments, 0, "escape")?;
    let Value::Map(map) = &arguments[1] else {
        return Err(invalid_types("escape", &[&arguments[0], &arguments[1]]));
    };
    let mut buffer = Text::new();
    let mut graphemes = Graphemes::from_start(cx.read(text)?);
    while let Some(grapheme) = graphemes.next(cx)? {
        cx.tick(grapheme.len() as u64)?;
        let (hash, symbol) =
            (crate::value::relation::text_hash::hash_text(grapheme), cx.symbols.find(grapheme));
        let row = map.find_text(cx, grapheme, hash, symbol)?;
        match row {
            Some(row) => write_display(cx, &mut buffer, map.value(row))?,
            None => buffer.push(cx, grapheme)?,
        }
    }
    Ok(buffer.into_value())
}
