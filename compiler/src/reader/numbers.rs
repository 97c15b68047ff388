//! Reads the literals of numbers.

use super::{MAX_DIGITS, ReadError, Reader, Recovery, parse_error};
use crate::diagnostic::{Diagnostic, MAX_WARNINGS};
use crate::form::FormKind;
use crate::lexer::is_symbol_char;
use ptc_vm::{Reason, Span};

/// An integer with fewer digits than this always fits 64 bits.
const ALWAYS_SMALL: usize = 19;

impl<'a> Reader<'a, '_> {
    pub(super) fn integer(&mut self, span: Span, text: &'a str) -> Result<(), ReadError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.len() != text.len() {
            self.look_before(span.start);
        }
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
        self.look_before(span.start);
        match self.text(span).parse::<f64>() {
            Ok(value) if value.is_finite() => self.push(span, FormKind::Float(value)),
            _ => {
                self.push(span, FormKind::Float(0.0))?;
                Err(parse_error(Recovery::Sound, span, "float literal is out of range")
                    .hint("The largest float is about 1.8e308; infinity is written ##Inf."))
            }
        }
    }

    /// Looks for a number directly before this one, as in `2024-01-15`.
    fn look_before(&mut self, start: u32) {
        let before = self.source.as_bytes().get((start as usize).wrapping_sub(1));
        if before.is_some_and(u8::is_ascii_digit) {
            self.note_numbers(start as usize);
        }
    }

    /// Warns of numbers without blanks between them.
    #[cold]
    #[inline(never)]
    fn note_numbers(&mut self, start: usize) {
        let warnings = &mut self.findings.warnings;
        // The numbers after the second were reported with it.
        if warnings.len() >= MAX_WARNINGS || warnings.last().is_some_and(|last| last.span.end > start as u32)
        {
            return;
        }
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | 'e' | 'E');
        let (before, after) = self.source.split_at(start);
        let first = before.trim_end_matches(is_part).len();
        let last = self.source.len() - after.trim_start_matches(is_part).len();
        let (text, end) = (&self.source[first..last], last as u32);
        let message = format!("{text} is read as several numbers");
        let hint = format!("Write a date as text: \"{text}\"; subtract with (- a b).");
        let span = Span::new(first as u32, end);
        warnings.push(Diagnostic::warning(Reason::ParseError, span, message).hint(hint));
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
