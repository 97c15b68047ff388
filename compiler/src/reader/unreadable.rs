//! Hints for errors at characters that the language cannot read, such as `||` or curly quotes: what to write instead.

use crate::lexer::is_symbol_char;

/// What to write instead of characters without a meaning, given the text before them.
pub(crate) fn hint(before: &str, rest: &str) -> &'static str {
    const BY_START: &[(&str, &str)] = &[
        ("::", "A keyword has one colon: :name."),
        (": ", "A conditional is (if test a b); a keyword is written :name, without a blank."),
        ("||", "Write (or a b)."),
        ("|", "Names have no |; alternatives are written (or a b)."),
        ("$", "Names have no $: write v, as in (as-> x v (f v)); text is put together with (str a b)."),
        ("#inst", "There are no tagged literals: write (Instant/parse \"2026-01-08T00:00:00Z\")."),
        ("#?", "There are no reader conditionals: write the expression itself."),
        ("#t", "Write true."),
        ("#f", "Write false."),
        ("##", "The special floats are ##Inf, ##-Inf and ##NaN."),
        ("# ", "Comments begin with ;"),
        ("#", "After # stand only { ( \" ' and ##Inf; comments begin with ;"),
        ("“", "Use straight double quotes: \"…\"."),
        ("”", "Use straight double quotes: \"…\"."),
        ("‘", "Use straight double quotes: \"…\"."),
        ("’", "Use straight double quotes: \"…\"."),
        ("…", "Write the expression out."),
        ("→", "Threading is written ->."),
        ("\u{feff}", "Save the text without a byte order mark (UTF-8, not UTF-8 with BOM)."),
        ("λ", "A function is (fn [x] …)."),
    ];
    if rest.starts_with(':') && before.ends_with(|c: char| c == '"' || is_symbol_char(c)) {
        return "A map is written {\"a\" 1} or {:a 1}: no colon behind the key, no JSON.";
    }
    let by_start = BY_START.iter().find(|(start, _)| rest.starts_with(start)).map(|(_, hint)| *hint);
    by_start.unwrap_or(match rest.chars().next() {
        Some(':') => {
            "A keyword is one colon and letters, digits or - + * < > = ? ! _, as in :name; read another key with (get m \"@type\")."
        }
        Some(first) if !first.is_ascii() => "Names are ASCII; other characters belong in strings.",
        _ => "Delete it, or put it into a string.",
    })
}

/// Whether a text in quotes, without its first quote, has a backslash before the end of a line.
pub(super) fn breaks_line(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return false,
            b'\\' if matches!(bytes.next(), Some(b'\n' | b'\r')) => return true,
            _ => {}
        }
    }
    false
}
