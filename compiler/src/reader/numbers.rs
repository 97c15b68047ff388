//! Reads the literals of numbers.

use super::{MAX_DIGITS, ReadError, Reader, Recovery, parse_error};
use crate::form::FormKind;
use crate::lexer::is_symbol_char;
use ptc_vm::Span;

/// An integer with fewer digits than this always fits 64 bits.
const ALWAYS_SMALL: usize = 19;

impl<'a> Reader<'a, '_> {
    pub(super) fn integer(&mut self, span: Span, text: &'a str) -> Result<(), ReadError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.len() < ALWAYS_SMALL {
            let value = digits.bytes().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            let value = if digits.len() == text.len() { value } else { -value };
            return self.push(span, FormKind::Int(value));
        }
        if digits.len() > MAX_DIGITS {
            self.push(span, FormKind::Int(0))?;
            let message = format!("integer literal exceeds {MAX_DIGITS} digit limit");
            return Err(parse_error(Recovery::Sound, span, message)
                .hint(format!("It has {} digits: write a float such as 1e120, or text.", digits.len())));
        }
        let kind = match text.parse::<i64>() {
            Ok(value) => FormKind::Int(value),
            Err(_) => {
                let sign = if text.starts_with('-') { "-" } else { "" };
                let digits = digits.trim_start_matches('0');
                FormKind::BigInt(self.arena.alloc_str(&format!("{sign}{digits}")))
            }
        };
        self.push(span, kind)
    }

    pub(super) fn float(&mut self, span: Span) -> Result<(), ReadError> {
        match self.text(span).parse::<f64>() {
            Ok(value) if value.is_finite() => self.push(span, FormKind::Float(value)),
            _ => {
                self.push(span, FormKind::Float(0.0))?;
                Err(parse_error(Recovery::Sound, span, "float literal is out of range")
                    .hint("The largest float is about 1.8e308; infinity is written ##Inf."))
            }
        }
    }

    pub(super) fn special_float(&mut self, span: Span) -> Result<(), ReadError> {
        let after = self.source.get(span.end as usize..).and_then(|rest| rest.chars().next());
        if after.is_some_and(is_symbol_char) {
            return self.unreadable(span).map_or(Ok(()), Err);
        }
        let value = match self.text(span) {
            "##Inf" => f64::INFINITY,
            "##-Inf" => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
        self.push(span, FormKind::Float(value))
    }
}
