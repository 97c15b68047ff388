//! Checks the lexer on arbitrary bytes.

use super::check_span;
use ptc_compiler::inspect::tokens;

/// Tokens lie inside the text, in order, with only blanks and comments between them. The text of a token, lexed
/// alone, is that token again.
pub fn lex(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let mut end = 0;
    for (span, kind) in tokens(source) {
        check_span(source, span);
        let (start, next) = (span.start as usize, span.end as usize);
        assert!(start >= end && next > start, "tokens overlap at byte {start} of {source:?}");
        check_blank(source, &source[end..start]);
        end = next;
        if let Some(kind) = kind {
            let text = &source[start..next];
            let alone = tokens(text);
            assert!(
                matches!(alone.as_slice(), [(span, Some(alone))] if *alone == kind && span.end as usize == text.len()),
                "{text:?} is {kind} in {source:?}, but {alone:?} alone"
            );
        }
    }
    check_blank(source, &source[end..]);
}

fn check_blank(source: &str, between: &str) {
    let mut rest = between;
    while let Some(first) = rest.chars().next() {
        match first {
            ' ' | '\t' | '\r' | '\n' | ',' => rest = &rest[1..],
            ';' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            _ => panic!("{between:?} is skipped in {source:?}"),
        }
    }
}
