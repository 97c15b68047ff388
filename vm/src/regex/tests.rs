//! What patterns mean, and what bounds them.

use super::{RegexCache, check_pattern};
use crate::testing::with_context;

/// The first match in a text, or the error.
fn find(pattern: &'static str, text: &'static str) -> Result<Option<&'static str>, String> {
    with_context(move |cx| {
        let mut cache = RegexCache::default();
        let regex = cache.compile(pattern).map_err(|fault| fault.message)?;
        let spans = regex.find(cx, text, 0).map_err(|fault| fault.message)?;
        Ok(spans.and_then(|spans| spans[0]).map(|(start, end)| &text[start..end]))
    })
}

#[test]
fn the_dialect() {
    for (pattern, text, found) in [
        (r"\d+", "a12b", Some("12")),
        (r"\w+", "é!", Some("é")),
        (r"{{x}}", "a{{x}}", Some("{{x}}")),
        (r"a{,3}", "a{,3}", Some("a{,3}")),
        (r"a{2,3}", "aaaa", Some("aaa")),
        (r"\Qa.b\E+", "xa.bb", Some("a.bb")),
        (r"\Qa.b", "a.b", Some("a.b")),
        (r"\h+x", "a \tx", Some(" \tx")),
        (r"[\h,]+", "a, b", Some(", ")),
        (r"a\Rb", "a\r\nb", Some("a\r\nb")),
        (r"\e\[", "\u{1b}[", Some("\u{1b}[")),
        (r"\<b\>", "<b>", Some("<b>")),
        (r"\/\-\:", "/-:", Some("/-:")),
        (r"[]x]+", "a]x", Some("]x")),
        (r"[[:alpha:]]+", "1ab", Some("ab")),
        (r"[a-z&&[^b]]+", "bac", Some("ac")),
        (r"\cA", "\u{1}", Some("\u{1}")),
        (r"\0101", "A", Some("A")),
        (r"(?#note)a", "a", Some("a")),
        (r"(?<year>\d{4})", "in 2024", Some("2024")),
        (r"a(?=b)", "acab", Some("a")),
        (r"(?<!a)b", "abcb", Some("b")),
        (r"(\w)\1", "abccd", Some("cc")),
        (r"(?<c>\w)\k<c>", "abccd", Some("cc")),
        (r"a++a", "aaa", None),
        (r"(?>a*)a", "aaa", None),
        (r"x\Z", "x\n", Some("x")),
        (r"(?i)HELLO(?= w)", "hello world", Some("hello")),
    ] {
        assert_eq!(find(pattern, text), Ok(found), "{pattern}");
    }
}

#[test]
fn bad_patterns_say_what_is_wrong() {
    assert_eq!(find("(", ""), Err("Invalid regex: unclosed group".to_owned()));
    assert!(check_pattern(&"a".repeat(257)).is_err_and(|message| message.contains("256 bytes")));
    assert!(check_pattern("(((a{100}){100}){100}){100}").is_err_and(|message| message.contains("too much")));
    let deep = format!("{}a{}", "(".repeat(40), ")".repeat(40));
    assert!(check_pattern(&deep).is_err_and(|message| message.contains("nest deeper")));
}

#[test]
fn nesting_up_to_the_limit_fits_a_small_stack() {
    with_context(|_| {
        for (open, levels) in [("(", 33), ("(?:", 33), ("(a|", 33), ("(?=", 13), ("(?>a", 13), ("(?:a++", 13)]
        {
            let pattern = format!("{}x{}", open.repeat(levels), ")".repeat(levels));
            assert_eq!(check_pattern(&pattern), Ok(()), "{pattern}");
        }
        let classes = format!("{}x{}", "[".repeat(32), "]".repeat(32));
        assert_eq!(check_pattern(&classes), Ok(()));
    });
}

#[test]
fn backtracking_is_bounded() {
    let evil = find(r"(?=a)(a|a)*\1$b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");
    assert_eq!(evil, Err("Regex complexity limit exceeded (ReDoS protection)".to_owned()));
    let long = with_context(|cx| {
        let regex = RegexCache::default().compile("a(?=b)").expect("compiles");
        regex.find(cx, &"x".repeat(40_000), 0).map_err(|fault| fault.message)
    });
    assert!(long.is_err_and(|message| message.contains("32768 bytes")));
}

#[test]
fn whole_matches_try_every_alternative() {
    let whole = with_context(|cx| {
        let regex = RegexCache::default().compile("a|ab").expect("compiles");
        regex
            .match_whole(cx, "ab")
            .map(|spans| spans.and_then(|spans| spans[0]))
            .map_err(|fault| fault.message)
    });
    assert_eq!(whole, Ok(Some((0, 2))));
}
