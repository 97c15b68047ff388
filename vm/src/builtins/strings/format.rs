//! `format`: templates with `%` specifiers, as in Java's `String.format`.

use crate::arith;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::print::{self, Buffer, Decimal, integer_text};
use crate::string::StringNode;
use crate::value::Value;
use num_bigint::{BigInt, Sign};
use num_traits::FromPrimitive;
use std::iter::repeat_n;
use unicode_segmentation::UnicodeSegmentation;

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
    let mut buffer = Buffer::new(usize::MAX);
    let mut rest = template.as_str();
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        buffer.push(cx, &rest[..at])?;
        let Some((specifier, after)) = parse(&rest[at + 1..]) else { return Err(unsupported(template)) };
        rest = after;
        match specifier.conversion {
            '%' => buffer.push(cx, &padded("%".to_owned(), &specifier))?,
            'n' => buffer.push(cx, "\n")?,
            conversion if "sSdfeExXobBc".contains(conversion) => {
                let index = specifier.argument.map_or(next, |argument| argument - 1);
                if specifier.argument.is_none() {
                    next += 1;
                }
                let Some(value) = values.get(index) else {
                    return Err(Fault::runtime("not enough arguments for format string"));
                };
                let text = converted(cx, value, &specifier)?;
                buffer.push(cx, &text)?;
            }
            _ => return Err(unsupported(template)),
        }
    }
    buffer.push(cx, rest)?;
    Ok(Value::Str(StringNode::new(buffer.into_text())))
}

#[cold]
fn unsupported(template: &StringNode) -> Box<Fault> {
    Fault::runtime(format_args!("unsupported format specifier in: {}", template.as_str())).hint(
        "Supported: %s %d %f %e %x %o %b %c %n %%, with flags, width and precision like %-8s %05d %,d %.2f.",
    )
}

/// Reads what follows a `%`; gives the specifier and the text after it.
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

/// The number at the start, and what follows it.
fn number(text: &str) -> (Option<usize>, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = match digits {
        0 => None,
        // One that is too large is refused by its size.
        _ => Some(text[..digits].parse().unwrap_or(usize::MAX)),
    };
    (number, &text[digits..])
}

fn converted(cx: &mut Context, value: &Value, specifier: &Specifier) -> Result<String> {
    let text = match specifier.conversion {
        's' | 'S' => print::display(cx, value)?,
        'b' | 'B' => value.is_truthy().to_string(),
        'c' => character(value)?,
        'd' => return Ok(numeric(integer_digits(cx, value)?, specifier)),
        'f' | 'e' | 'E' => return float(cx, value, specifier),
        _ => radix(cx, value, specifier)?,
    };
    let cut = match (specifier.conversion, specifier.precision) {
        ('s' | 'S' | 'b' | 'B', Some(precision)) => {
            text.grapheme_indices(true).nth(precision).map_or(text.len(), |(at, _)| at)
        }
        _ => text.len(),
    };
    let text = &text[..cut];
    let text = if specifier.conversion.is_uppercase() { text.to_uppercase() } else { text.to_owned() };
    Ok(padded(text, specifier))
}

/// Fills up to the width with blanks.
fn padded(text: String, specifier: &Specifier) -> String {
    let length = if text.is_ascii() { text.len() } else { text.graphemes(true).count() };
    let missing = specifier.width.saturating_sub(length);
    let blanks = repeat_n(' ', missing);
    if specifier.left {
        let mut text = text;
        text.extend(blanks);
        text
    } else {
        blanks.chain(text.chars()).collect()
    }
}

/// Adds sign, grouping and padding to digits that may begin with `-`.
fn numeric(digits: String, specifier: &Specifier) -> String {
    let (negative, unsigned) = match digits.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, digits.as_str()),
    };
    let sign = match (negative, specifier.plus, specifier.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let body = if specifier.group { grouped(unsigned) } else { unsigned.to_owned() };
    if specifier.zero && !specifier.left {
        let zeros = specifier.width.saturating_sub(sign.len() + body.len());
        return format!("{sign}{}{body}", "0".repeat(zeros));
    }
    padded(format!("{sign}{body}"), specifier)
}

/// Commas between groups of three digits before the point.
fn grouped(text: &str) -> String {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut result = String::with_capacity(text.len() + whole / 3);
    for (at, digit) in text[..whole].chars().enumerate() {
        if at > 0 && (whole - at) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    result.push_str(&text[whole..]);
    result
}

#[cold]
fn wrong(specifier: &Specifier, expected: &str, value: &Value) -> Box<Fault> {
    Fault::runtime(format_args!(
        "format: %{} expects {expected}, got {}",
        specifier.conversion,
        value.type_word()
    ))
}

fn integer_digits(cx: &mut Context, value: &Value) -> Result<String> {
    match whole(value) {
        Some(Value::Int(value)) => Ok(value.to_string()),
        Some(Value::BigInt(node)) => integer_text(cx, node.get()),
        _ => Err(Fault::runtime(format_args!("format: %d expects an integer, got {}", value.type_word()))),
    }
}

/// An integer, or a float without fraction as one.
fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::BigInt(_) => Some(value.clone()),
        Value::Float(float) if float.fract() == 0.0 => BigInt::from_f64(*float).map(Value::integer),
        _ => None,
    }
}

fn float(cx: &mut Context, value: &Value, specifier: &Specifier) -> Result<String> {
    let places = specifier.precision.unwrap_or(6);
    let digits = match (value, specifier.conversion) {
        (Value::Int(_) | Value::BigInt(_), 'f') => {
            let mut digits = integer_digits(cx, value)?;
            if places > 0 {
                digits.push('.');
                digits.extend(repeat_n('0', places));
            }
            digits
        }
        _ => {
            let Some(float) = arith::to_float(value) else { return Err(wrong(specifier, "a number", value)) };
            if !float.is_finite() {
                let text = print::display(cx, &Value::Float(float))?;
                let sign = if specifier.plus && float > 0.0 { "+" } else { "" };
                return Ok(padded(format!("{sign}{text}"), specifier));
            }
            let decimal = Decimal::of(float);
            match specifier.conversion {
                'f' => decimal.rounded(places).fixed(places),
                'e' => decimal.rounded_to_digits(places + 1).scientific(places),
                _ => decimal.rounded_to_digits(places + 1).scientific(places).to_uppercase(),
            }
        }
    };
    Ok(numeric(digits, specifier))
}

/// Hexadecimal and octal digits; negative integers of 64 bits in two's complement.
fn radix(cx: &mut Context, value: &Value, specifier: &Specifier) -> Result<String> {
    let (radix, prefix) = if specifier.conversion == 'o' { (8, "0") } else { (16, "0x") };
    let digits = match whole(value) {
        Some(Value::Int(value)) if radix == 8 => format!("{value:o}"),
        Some(Value::Int(value)) => format!("{value:x}"),
        Some(Value::BigInt(node)) => {
            let bits = node.get().bits();
            arith::charge(cx, bits, bits / 64)?;
            let sign = if node.get().sign() == Sign::Minus { "-" } else { "" };
            format!("{sign}{}", node.get().magnitude().to_str_radix(radix))
        }
        _ => return Err(wrong(specifier, "an integer", value)),
    };
    let digits = if specifier.alternate { format!("{prefix}{digits}") } else { digits };
    let zeros = if specifier.zero { specifier.width.saturating_sub(digits.len()) } else { 0 };
    Ok(format!("{}{digits}", "0".repeat(zeros)))
}

fn character(value: &Value) -> Result<String> {
    match value {
        Value::Str(node) if node.graphemes() == 1 => Ok(node.as_str().to_owned()),
        Value::Int(code) => u32::try_from(*code)
            .ok()
            .and_then(char::from_u32)
            .map(String::from)
            .ok_or_else(|| Fault::runtime(format_args!("format: {code} is no character"))),
        other => {
            Err(Fault::runtime(format_args!("format: %c expects a character, got {}", other.type_word())))
        }
    }
}
