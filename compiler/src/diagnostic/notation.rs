//! Finds a notation of another language in the text at an error, such as `x[0]` or `f(x)`, and adds a hint about it.
//!
//! It serves errors of the compiler and faults of running programs alike.

use crate::lexer::{Token, is_symbol_char};
use logos::Logos;
use ptc_vm::{BoundedText, Reason, Span};

/// Gives the hint if the text around a span has the notation.
type Detector = fn(&SpanText<'_>) -> Option<String>;

/// Reasons, the detector for errors with these reasons, and whether its hint replaces all others.
const DETECTORS: &[(&[Reason], Detector, bool)] = &[
    (&[Reason::UnboundVar], assignment, true),
    (&[Reason::UnboundVar], prefixed_text, true),
    (&[Reason::UnboundVar, Reason::InvalidForm], call_outside, false),
    (&[Reason::NotCallable], infix, true),
    (&[Reason::NotCallable, Reason::ArityError, Reason::ArityMismatch], arguments_outside, true),
    (&[Reason::NotCallable], extra_parentheses, true),
    (&[Reason::UnboundVar, Reason::NotCallable, Reason::ArityError, Reason::ArityMismatch], subscript, true),
];

/// Operators that other languages write between their operands.
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "<", ">", "<=", ">=", "=", "==", "not=", "and", "or", "mod", "rem", "quot"];

/// The text of an error with its surroundings.
struct SpanText<'s> {
    before: &'s str,
    covered: &'s str,
    after: &'s str,
}

/// Longest text that is examined, at the span and on each side of it: a notation takes a few words.
const LONGEST: usize = 1_000;

/// The beginning of a text.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// The end of a text.
fn ending(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LONGEST))..]
}

/// Adds the hint for the notation at a span before the others, or replaces them.
pub(super) fn advise(source: &str, span: Span, reason: Reason, hints: &mut Vec<String>) {
    let Some((hint, is_enough)) = find(source, span, reason) else { return };
    if is_enough {
        hints.clear();
    }
    hints.insert(0, BoundedText::new(hint).into());
}

/// The hint for the notation at a span, if an error of this reason can result from it.
fn find(source: &str, span: Span, reason: Reason) -> Option<(String, bool)> {
    let (start, end) = (span.start as usize, span.end as usize);
    let covered = source.get(start..end).filter(|covered| covered.len() <= LONGEST)?;
    let text =
        SpanText { before: ending(source.get(..start)?), covered, after: beginning(source.get(end..)?) };
    DETECTORS
        .iter()
        .filter(|(reasons, ..)| reasons.contains(&reason))
        .find_map(|(_, look, is_enough)| Some((look(&text)?, *is_enough)))
}

/// `foo(x)`, with the span at `foo`.
fn call_outside(text: &SpanText<'_>) -> Option<String> {
    let is_name = !text.covered.is_empty() && text.covered.chars().all(is_symbol_char);
    let is_head = text.before.trim_end().ends_with('(');
    (is_name && !is_head && text.after.starts_with('('))
        .then(|| format!("The name of a call stands inside the parentheses: ({} …).", text.covered))
}

/// `foo(x)`, with the span at `(x)`.
fn arguments_outside(text: &SpanText<'_>) -> Option<String> {
    let name_start = text.before.rfind(|c| !is_symbol_char(c)).map_or(0, |at| at + 1);
    let name = text.before.get(name_start..).filter(|name| name.starts_with(|c: char| c.is_alphabetic()))?;
    text.covered
        .starts_with('(')
        .then(|| format!("The name of a call stands inside the parentheses: ({name} …)."))
}

/// `x = 1`.
fn assignment(text: &SpanText<'_>) -> Option<String> {
    let after = text.after.trim_start();
    let is_equals = after.strip_prefix('=').is_some_and(|rest| rest.starts_with([' ', '(', '"', '[', '{']));
    let name = text.covered;
    is_equals.then(|| format!("Give a value a name with (def {name} …), or (let [{name} …] …) for a part."))
}

/// `f"…"`.
fn prefixed_text(text: &SpanText<'_>) -> Option<String> {
    let is_prefix = matches!(text.covered, "f" | "F" | "r" | "b" | "u");
    (is_prefix && text.after.starts_with('"'))
        .then(|| "Text is put together with (str \"total \" x) or (format \"%.2f\" x).".to_owned())
}

/// `((+ 1 2))`.
fn extra_parentheses(text: &SpanText<'_>) -> Option<String> {
    let inner = text.covered.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 0usize;
    let mut forms = 0;
    for token in Token::lexer(inner) {
        match token.ok()? {
            Token::OpenList | Token::OpenVector | Token::OpenMap | Token::OpenSet | Token::OpenShortFn => {
                forms += usize::from(depth == 0);
                depth += 1;
            }
            Token::CloseList | Token::CloseVector | Token::CloseMap => depth = depth.checked_sub(1)?,
            _ => forms += usize::from(depth == 0),
        }
    }
    (forms == 1).then(|| "Parentheses call what is first in them: remove this pair.".to_owned())
}

/// `(1 + 2)`.
fn infix(text: &SpanText<'_>) -> Option<String> {
    let inner = text.covered.strip_prefix('(')?;
    let mut tokens = Token::lexer(inner);
    let first = tokens.next()?.ok()?;
    if matches!(first, Token::OpenList | Token::OpenVector | Token::OpenMap | Token::OpenSet) {
        return None;
    }
    let first = tokens.slice();
    let second = tokens.next()?.ok()?;
    let operator = tokens.slice();
    (second == Token::Symbol && OPERATORS.contains(&operator))
        .then(|| format!("Operators come first: ({operator} {first} …)."))
}

/// `x[0]`.
fn subscript(text: &SpanText<'_>) -> Option<String> {
    let is_symbol_end = |at: usize| text.covered[..at].chars().next_back().is_some_and(is_symbol_char);
    let inside = text.covered.match_indices('[').find(|(at, _)| is_symbol_end(*at)).map(|(at, _)| {
        let start = text.covered[..at].rfind(|c| !is_symbol_char(c)).map_or(0, |before| before + 1);
        &text.covered[start..at]
    });
    let is_name = !text.covered.is_empty() && text.covered.chars().all(is_symbol_char);
    let name = match inside {
        Some(name) => name,
        None if is_name && text.after.starts_with('[') => text.covered,
        None => return None,
    };
    Some(format!("Read an item with (get {name} key) or (nth {name} index)."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hinted(source: &str, covered: &str, reason: Reason) -> String {
        let start = source.find(covered).expect("the text is in the source") as u32;
        find(source, Span::new(start, start + covered.len() as u32), reason).unwrap_or_default().0
    }

    #[test]
    fn notations_of_other_languages_are_recognised() {
        let unbound = Reason::UnboundVar;
        assert!(hinted("len(data/xs)", "len", unbound).contains("(len …)"));
        assert!(hinted("total = 5", "total", unbound).contains("(def total …)"));
        assert!(hinted("(1 + 2)", "(1 + 2)", Reason::NotCallable).contains("(+ 1 …)"));
        assert!(hinted("count(data/xs)", "(data/xs)", Reason::NotCallable).contains("(count …)"));
        assert!(hinted("(f xs[0])", "(f xs[0])", Reason::ArityError).contains("(nth xs index)"));
        assert_eq!(hinted("(foo 1)", "foo", unbound), "");
        assert_eq!(hinted("(= x 1)", "x", unbound), "");
        assert_eq!(hinted("([1] 0)", "([1] 0)", Reason::NotCallable), "");
        assert!(hinted("((+ 1 2))", "((+ 1 2))", Reason::NotCallable).contains("remove"));
        assert!(hinted("(str f\"x\")", "f", unbound).contains("(str"));
    }
}
