//! Encodes scalar arguments for a plain schema in one pass; the JSON text is the one that [`super::encode`]
//! gives.
//!
//! Everything unusual or wrong is left to that function, which reports errors.

use ptc_calls::schema::{PlainArguments, PlainKind};
use ptc_vm::{Context, Fault, Value};

/// Length limit of a text, in bytes.
const LONGEST: usize = 256;

/// JSON bytes that a byte of a name or a text may need.
const ESCAPED: usize = 6;

/// The arguments of a call as the text of a JSON object; `None` when they are more than scalars, or do not
/// match the schema.
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
    /// The arguments that were written, as bits by position.
    given: u32,
    /// Fuel, as [`super::encode`] would charge.
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
