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
    (READ_APART, parts_of_one_word, true),
    (&[Reason::UnboundVar], assignment, true),
    (&[Reason::UnboundVar], prefixed_text, true),
    (&[Reason::UnboundVar, Reason::InvalidForm], call_outside, false),
    (&[Reason::NotCallable], infix, true),
    (&[Reason::NotCallable, Reason::ArityError, Reason::ArityMismatch], arguments_outside, true),
    (&[Reason::NotCallable], extra_parentheses, true),
    (&[Reason::UnboundVar, Reason::NotCallable, Reason::ArityError, Reason::ArityMismatch], subscript, true),
];

/// Reasons that result from a word that is read as two, such as `0xFF` or `:a/b`.
const READ_APART: &[Reason] = &[
    Reason::UnboundVar,
    Reason::UnsupportedMethod,
    Reason::ArityError,
    Reason::ArityMismatch,
    Reason::InvalidKeywordCall,
    Reason::InvalidForm,
    Reason::NotCallable,
    Reason::ParseError,
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

/// `0xFF`, `1.5M`, `1/2`, `:a/b`, `:a.b`: a number or a keyword, and directly after it a symbol.
fn parts_of_one_word(text: &SpanText<'_>) -> Option<String> {
    let word = text.before.rsplit(|c| !is_symbol_char(c) && c != ':').next().unwrap_or_default();
    let whole = format!("{word}{}", text.covered);
    let mut tokens = Token::lexer(&whole);
    let mut last: Option<(Token, std::ops::Range<usize>)> = None;
    while let Some(token) = tokens.next() {
        let span = tokens.span();
        let parts = last.take().filter(|(_, last)| last.end == span.start && token == Ok(Token::Symbol));
        if let Some((kind, first)) = parts
            && let Some(hint) = hint_for_parts(kind, &whole[first], &whole[span.clone()])
        {
            return Some(hint);
        }
        last = token.ok().map(|token| (token, span));
    }
    // In a longer text the number is another mistake.
    word.is_empty().then(|| hint_for_number(text.covered)).flatten()
}

/// The hint for a number or a keyword with this symbol directly after it.
fn hint_for_parts(kind: Token, first: &str, second: &str) -> Option<String> {
    let digits = |prefix: &str| second.strip_prefix(prefix).filter(|digits| !digits.is_empty());
    let of_radix = |digits: &str, radix| {
        let is_signed = digits.starts_with(['-', '+']);
        i128::from_str_radix(digits, radix).ok().filter(|_| !is_signed)
    };
    let sign = if first.starts_with('-') { -1 } else { 1 };
    let unsigned = first.trim_start_matches(['-', '+']);
    let decimal = |value: i128| format!("Integers are written in decimal digits: {}.", sign * value);
    match kind {
        Token::Keyword if second.starts_with(['/', '.']) => Some(format!(
            "Keywords have no {}: read that key of JSON with (get m \"{}{second}\"), name your own :{}-{}.",
            &second[..1],
            &first[1..],
            &first[1..],
            second[1..].replace(['/', '.'], "-"),
        )),
        Token::Integer if unsigned == "0" && second.starts_with(['x', 'X', 'b', 'o']) => {
            let radix = match second.as_bytes()[0] {
                b'b' => 2,
                b'o' => 8,
                _ => 16,
            };
            of_radix(&second[1..], radix).map(decimal)
        }
        Token::Integer if let Some(written) = digits("r") => {
            let radix = unsigned.parse().ok().filter(|radix| (2..=36).contains(radix))?;
            of_radix(written, radix).map(decimal)
        }
        Token::Integer if let Some(denominator) = digits("/") => is_digits(denominator)
            .then(|| format!("There are no ratios: (/ {first} {denominator}) is a float.")),
        Token::Integer if let Some(more) = digits("_") => {
            let all = format!("{first}{more}").replace('_', "");
            is_digits(all.trim_start_matches('-')).then(|| format!("Write {all}."))
        }
        Token::Integer if second == "." => Some(format!("Write {first}.0.")),
        Token::Integer | Token::Float if matches!(second, "M" | "N") => {
            Some(format!("Integers have any size, other numbers are floats: write {first}."))
        }
        _ => None,
    }
}

/// Whether a text is a number in decimal digits.
pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The hint for a symbol that is meant as a number: `+5`, `.5`.
fn hint_for_number(symbol: &str) -> Option<String> {
    let (sign, digits) = symbol.split_at_checked(1)?;
    match sign {
        "+" if digits.split('.').all(is_digits) => Some(format!("Write {digits}.")),
        "." if is_digits(digits) => Some(format!("Write 0.{digits}.")),
        _ => None,
    }
}

/// The symbol that a text ends with; empty without one.
fn last_symbol(text: &str) -> &str {
    text.rsplit(|c| !is_symbol_char(c)).next().unwrap_or_default()
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
    let name = last_symbol(text.before);
    (name.starts_with(char::is_alphabetic) && text.covered.starts_with('('))
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
    let inside = text.covered.match_indices('[').map(|(at, _)| last_symbol(&text.covered[..at]));
    let is_before = text.after.starts_with('[') && text.covered.chars().all(is_symbol_char);
    let name = inside.chain(is_before.then_some(text.covered)).find(|name| !name.is_empty())?;
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
        let after_arrow = "(inc 1 \"→xs[0]\")";
        assert!(hinted(after_arrow, after_arrow, Reason::ArityError).contains("(nth xs index)"));
        assert_eq!(hinted("(foo 1)", "foo", unbound), "");
        assert_eq!(hinted("(= x 1)", "x", unbound), "");
        assert_eq!(hinted("([1] 0)", "([1] 0)", Reason::NotCallable), "");
        for (source, covered, reason, part) in [
            ("(+ 1 0xFF)", "xFF", unbound, "decimal digits: 255."),
            ("[2r101]", "r101", unbound, "decimal digits: 5."),
            ("(+ 1.5M 1)", "M", unbound, "write 1.5."),
            ("(+ 10N 1)", "N", unbound, "write 10."),
            ("(inc 1/2)", "(inc 1/2)", Reason::ArityError, "(/ 1 2)"),
            ("[1_000]", "_000", unbound, "Write 1000."),
            ("[+5]", "+5", unbound, "Write 5."),
            ("[+5.5]", "+5.5", unbound, "Write 5.5."),
            ("[.5]", ".5", Reason::UnsupportedMethod, "Write 0.5."),
            ("[1. 2]", ".", Reason::UnsupportedMethod, "Write 1.0."),
            ("{:x/a 1}", "{:x/a 1}", Reason::ParseError, "(get m \"x/a\"), name your own :x-a."),
            ("(name :a/b)", "(name :a/b)", Reason::ArityError, "Keywords have no /"),
            ("(:a.b m)", ".b", Reason::UnsupportedMethod, "(get m \"a.b\")"),
        ] {
            let hint = hinted(source, covered, reason);
            assert!(hint.contains(part), "{source}: {hint}");
        }
        assert_eq!(hinted("(+ a/b 1)", "a/b", unbound), "");
        assert_eq!(hinted("(f x+5)", "x+5", unbound), "");
        assert!(hinted("((+ 1 2))", "((+ 1 2))", Reason::NotCallable).contains("remove"));
        assert!(hinted("(str f\"x\")", "f", unbound).contains("(str"));
    }
}
