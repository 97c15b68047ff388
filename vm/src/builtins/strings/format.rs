//! The builtin `format`: templates with `%` specifiers, as in Java's `String.format`.

use crate::arith;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::print::{self, Decimal, write_display};
use crate::value::Value;
use crate::value::build::{Case, Text};
use crate::value::read::Graphemes;
use crate::value::string::StringNode;
use num_bigint::BigInt;
use num_traits::FromPrimitive;

/// Widest field and most digits after the point.
const WIDEST: usize = 4_096;

/// One `%` specifier.
#[derive(Default)]
struct Specifier {
    /// `%2$s`: which argument, from 1.
    argument: Option<usize>,
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    group: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

/// `(format template x …)`.
pub(in crate::builtins) fn format(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let Some((Value::Str(template), values)) = arguments.split_first() else {
        return Err(Fault::runtime("format expects a template string first"));
    };
    let mut buffer = Text::new();
    let mut rest = cx.read(template)?;
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        buffer.push(cx, &rest[..at])?;
        let Some((specifier, after)) = parse(&rest[at + 1..]) else { return Err(unsupported(template)) };
        rest = after;
        match specifier.conversion {
            '%' => padded(cx, &mut buffer, "%", &specifier)?,
            'n' => buffer.push(cx, "\n")?,
            conversion if "sSdfeExXobBc".contains(conversion) => {
                let index = specifier.argument.map_or(next, |argument| argument - 1);
                if specifier.argument.is_none() {
                    next += 1;
                }
                let Some(value) = values.get(index) else {
                    return Err(Fault::runtime("not enough arguments for format string"));
                };
                convert(cx, &mut buffer, value, &specifier)?;
            }
            _ => return Err(unsupported(template)),
        }
    }
    buffer.push(cx, rest)?;
    Ok(buffer.into_value())
}

#[cold]
fn unsupported(template: &StringNode) -> Box<Fault> {
    Fault::runtime(format_args!("unsupported format specifier in: {}", template.preview())).hint(
        "Supported: %s %d %f %e %x %o %b %c %n %%, with flags, width and precision like %-8s %05d %,d %.2f.",
    )
}

/// Parses the text after a `%`; gives the specifier and the remaining text.
fn parse(text: &str) -> Option<(Specifier, &str)> {
    let mut specifier = Specifier::default();
    let mut rest = text;
    if let (Some(number), after) = number(rest)
        && let Some(after) = after.strip_prefix('$')
    {
        specifier.argument = Some(number).filter(|&number| number > 0);
        specifier.argument?;
        rest = after;
    }
    loop {
        let mut characters = rest.chars();
        match characters.next()? {
            '-' => specifier.left = true,
            '+' => specifier.plus = true,
            ' ' => specifier.space = true,
            '0' => specifier.zero = true,
            ',' => specifier.group = true,
            '#' => specifier.alternate = true,
            _ => break,
        }
        rest = characters.as_str();
    }
    let (width, after) = number(rest);
    specifier.width = width.unwrap_or(0);
    rest = after;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = number(after);
        specifier.precision = Some(precision?);
        rest = after;
    }
    if specifier.width > WIDEST || specifier.precision.is_some_and(|precision| precision > WIDEST) {
        return None;
    }
    let mut characters = rest.chars();
    specifier.conversion = characters.next()?;
    Some((specifier, characters.as_str()))
}

/// The number at the start, and the remaining text.
fn number(text: &str) -> (Option<usize>, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = match digits {
        0 => None,
        // A number that does not fit is refused later for its size.
        _ => Some(text[..digits].parse().unwrap_or(usize::MAX)),
    };
    (number, &text[digits..])
}

/// Writes a value according to its specifier.
fn convert(cx: &mut Context, out: &mut Text, value: &Value, specifier: &Specifier) -> Result<()> {
    let mut text = Text::new();
    match specifier.conversion {
        // As in Java; only `str` omits nil.
        's' | 'S' if value.is_nil() => text.push(cx, "null")?,
        's' | 'S' => write_display(cx, &mut text, value)?,
        'b' | 'B' => text.push(cx, if value.is_truthy() { "true" } else { "false" })?,
        'c' => character(cx, &mut text, value, specifier)?,
        'd' => {
            integer_digits(cx, &mut text, value)?;
            return numeric(cx, out, text.as_str(), specifier);
        }
        'f' | 'e' | 'E' => return float(cx, out, value, specifier),
        _ => radix(cx, &mut text, value, specifier)?,
    }
    let whole = text.as_str();
    let cut = match (specifier.conversion, specifier.precision) {
        ('s' | 'S' | 'b' | 'B', Some(precision)) => {
            cx.tick(precision as u64)?;
            count(cx, whole, precision)?.0
        }
        _ => whole.len(),
    };
    let whole = &whole[..cut];
    if specifier.conversion.is_uppercase() {
        let mut upper = Text::new();
        upper.push_cased(cx, whole, Case::Upper)?;
        return padded(cx, out, upper.as_str(), specifier);
    }
    padded(cx, out, whole, specifier)
}

/// Number and bytes of the first graphemes of a text, at most `most` of them.
fn count(cx: &mut Context, text: &str, most: usize) -> Result<(usize, usize)> {
    let mut graphemes = Graphemes::from_start(text);
    let mut count = 0;
    while count < most && graphemes.next(cx)?.is_some() {
        count += 1;
    }
    Ok((graphemes.at(), count))
}

/// Writes a text and pads it with blanks to the width.
fn padded(cx: &mut Context, out: &mut Text, text: &str, specifier: &Specifier) -> Result<()> {
    // A grapheme has at least one byte, and in practice at most 64.
    let missing = if specifier.width == 0 || text.len() > specifier.width.saturating_mul(64) {
        0
    } else {
        cx.tick(text.len() as u64)?;
        specifier.width.saturating_sub(count(cx, text, usize::MAX)?.1)
    };
    if !specifier.left {
        out.push_repeated(cx, ' ', missing)?;
    }
    out.push(cx, text)?;
    if specifier.left {
        out.push_repeated(cx, ' ', missing)?;
    }
    Ok(())
}

/// Writes digits that may begin with `-`: with sign, grouping and padding.
fn numeric(cx: &mut Context, out: &mut Text, digits: &str, specifier: &Specifier) -> Result<()> {
    let (negative, unsigned) = match digits.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, digits),
    };
    let sign = match (negative, specifier.plus, specifier.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let mut body = Text::new();
    let fills = specifier.zero && !specifier.left;
    if !fills {
        body.push(cx, sign)?;
    }
    if specifier.group {
        grouped(cx, &mut body, unsigned)?;
    } else {
        body.push(cx, unsigned)?;
    }
    if !fills {
        return padded(cx, out, body.as_str(), specifier);
    }
    out.push(cx, sign)?;
    out.push_repeated(cx, '0', specifier.width.saturating_sub(sign.len() + body.as_str().len()))?;
    out.push(cx, body.as_str())
}

/// Writes digits with commas between groups of three before the point.
fn grouped(cx: &mut Context, out: &mut Text, text: &str) -> Result<()> {
    let whole = cx.look(text)?.bytes().take_while(u8::is_ascii_digit).count();
    let mut at = whole % 3;
    out.push(cx, &text[..at])?;
    while at < whole {
        if at > 0 {
            out.push(cx, ",")?;
        }
        out.push(cx, &text[at..at + 3])?;
        at += 3;
    }
    out.push(cx, &text[whole..])
}

#[cold]
fn wrong(specifier: &Specifier, expected: &str, value: &Value) -> Box<Fault> {
    Fault::runtime(format_args!(
        "format: %{} expects {expected}, got {}",
        specifier.conversion,
        value.type_word()
    ))
}

fn integer_digits(cx: &mut Context, out: &mut Text, value: &Value) -> Result<()> {
    match whole(value) {
        Some(Value::Int(value)) => print::write_int(cx, out, value),
        Some(Value::BigInt(node)) => print::write_integer(cx, out, &node),
        _ => Err(Fault::runtime(format_args!("format: %d expects an integer, got {}", value.type_word()))),
    }
}

/// An integer, or a float without fraction as an integer.
fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::BigInt(_) => Some(value.clone()),
        Value::Float(float) if float.fract() == 0.0 => BigInt::from_f64(*float).map(Value::integer),
        _ => None,
    }
}

fn float(cx: &mut Context, out: &mut Text, value: &Value, specifier: &Specifier) -> Result<()> {
    let places = specifier.precision.unwrap_or(6);
    if let (Value::Int(_) | Value::BigInt(_), 'f') = (value, specifier.conversion) {
        let mut digits = Text::new();
        integer_digits(cx, &mut digits, value)?;
        if places > 0 {
            digits.push(cx, ".")?;
            digits.push_repeated(cx, '0', places)?;
        }
        return numeric(cx, out, digits.as_str(), specifier);
    }
    let Some(float) = arith::to_float(value) else { return Err(wrong(specifier, "a number", value)) };
    if !float.is_finite() {
        let mut text = Text::new();
        text.push(cx, if specifier.plus && float > 0.0 { "+" } else { "" })?;
        write_display(cx, &mut text, &Value::Float(float))?;
        return padded(cx, out, text.as_str(), specifier);
    }
    // At most the digits of a float plus the widest precision.
    let decimal = Decimal::from_float(float);
    let digits = match specifier.conversion {
        'f' => decimal.rounded(places).fixed(places),
        _ => decimal.rounded_to_digits(places + 1).scientific(places),
    };
    cx.tick(digits.len() as u64)?;
    if specifier.conversion == 'E' {
        return numeric(cx, out, &digits.to_ascii_uppercase(), specifier);
    }
    numeric(cx, out, &digits, specifier)
}

/// Hexadecimal and octal digits; negative integers of 64 bits in two's complement.
fn radix(cx: &mut Context, out: &mut Text, value: &Value, specifier: &Specifier) -> Result<()> {
    let (radix, prefix) = if specifier.conversion == 'o' { (8, "0") } else { (16, "0x") };
    let mut digits = Text::new();
    if specifier.alternate {
        digits.push(cx, prefix)?;
    }
    match whole(value) {
        Some(Value::Int(value)) => print::write_radix(cx, &mut digits, value, radix)?,
        Some(Value::BigInt(node)) => print::write_big_radix(cx, &mut digits, &node, radix)?,
        _ => return Err(wrong(specifier, "an integer", value)),
    }
    if specifier.zero {
        out.push_repeated(cx, '0', specifier.width.saturating_sub(digits.as_str().len()))?;
    }
    out.push(cx, digits.as_str())
}

fn character(cx: &mut Context, out: &mut Text, value: &Value, specifier: &Specifier) -> Result<()> {
    match value {
        Value::Str(node) if node.is_character() => out.push(cx, node.preview()),
        Value::Int(code) => match u32::try_from(*code).ok().and_then(char::from_u32) {
            Some(character) => out.push_char(cx, character),
            None => Err(Fault::runtime(format_args!("format: {code} is no character"))),
        },
        other => Err(wrong(specifier, "a character", other)),
    }
}
