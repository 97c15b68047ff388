//! Arguments that are scalars, for a plain schema: the JSON text that [`super::encode`] would give, in one go.
//!
//! Whatever is not usual, and whatever is wrong, is left to that one, which has the words for it.

use crate::tools::{PlainArguments, PlainKind};
use ptc_vm::{Context, Fault, Value};

/// Longest text in bytes.
const LONGEST: usize = 256;

/// Bytes that a name or a text may have in JSON for each of its own.
const ESCAPED: usize = 6;

/// The arguments of a call as JSON object text; `None` when they are more than scalars, or not as the schema says.
pub(super) fn encode(
    cx: &mut Context,
    plain: &PlainArguments,
    arguments: &[Value],
) -> Result<Option<String>, Box<Fault>> {
    let mut text = PlainText { plain, out: Vec::new(), given: 0, units: 1 };
    let done = match arguments {
        [Value::Map(map)] => map.entries().try_for_each(|entry| text.named(cx, entry.key, entry.value)),
        [Value::Keyword(_), ..] if arguments.len().is_multiple_of(2) => {
            arguments.chunks_exact(2).try_for_each(|pair| text.named(cx, &pair[0], &pair[1]))
        }
        values => values.iter().enumerate().try_for_each(|(place, value)| text.entry(place, value)),
    };
    let PlainText { mut out, given, units, .. } = text;
    if done.is_none() || out.is_empty() || !plain.suffice(given) {
        return Ok(None);
    }
    cx.tick(units)?;
    cx.reserve(out.capacity())?;
    out.push(b'}');
    // Every part written is text or ASCII punctuation.
    Ok(String::from_utf8(out).ok())
}

struct PlainText<'p> {
    plain: &'p PlainArguments,
    out: Vec<u8>,
    /// Places of the arguments that were written, as bits.
    given: u32,
    /// Fuel, as for the long way.
    units: u64,
}

impl PlainText<'_> {
    fn named(&mut self, cx: &Context, key: &Value, value: &Value) -> Option<()> {
        let Value::Keyword(symbol) = key else { return None };
        self.entry(self.plain.place(cx.text(*symbol))?, value)
    }

    fn entry(&mut self, place: usize, value: &Value) -> Option<()> {
        let argument = self.plain.at(place)?;
        let bit = 1 << place;
        if self.given & bit != 0 || argument.name.len() > LONGEST {
            return None;
        }
        if self.given == 0 {
            self.out.reserve(argument.name.len() + 32);
            self.out.push(b'{');
        } else {
            self.out.push(b',');
        }
        self.given |= bit;
        self.units += 2;
        self.text(&argument.name)?;
        self.out.push(b':');
        match (value, argument.kind) {
            (Value::Int(number), PlainKind::Integer | PlainKind::Number) => {
                serde_json::to_writer(&mut self.out, number).ok()
            }
            (Value::Float(number), PlainKind::Number) if number.is_finite() => {
                serde_json::to_writer(&mut self.out, number).ok()
            }
            (Value::Bool(value), PlainKind::Boolean) => serde_json::to_writer(&mut self.out, value).ok(),
            (Value::Str(text), PlainKind::Text) => {
                let text = text.short(LONGEST)?;
                self.units += text.len() as u64;
                self.text(text)
            }
            _ => None,
        }
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.out.reserve(text.len() + ESCAPED);
        serde_json::to_writer(&mut self.out, text).ok()
    }
}
