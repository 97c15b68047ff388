//! Tests of the meaning of patterns, and of their limits.

use super::{with_context, with_limits};
use crate::regex::check_pattern;

/// The first match in a text, or the error.
fn find(pattern: &'static str, text: &'static str) -> Result<Option<&'static str>, String> {
    with_context(move |cx| {
        let regex = cx.compile_regex(pattern).map_err(|fault| fault.message)?;
        let spans = cx.find_match(&regex, text, 0).map_err(|fault| fault.message)?;
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
        for times in ["*", "+", "?", "{1}", "{1,}", "{0,}?", "{,1}", "*+"] {
            let pattern = format!("a{}", times.repeat(255 / times.len() + 1));
            // As deep as the parser allows, and deeper.
            for bytes in (1..256).step_by(5).filter(|&bytes| pattern.is_char_boundary(bytes)) {
                let _ = check_pattern(&pattern[..bytes]);
                let _ = check_pattern(&format!("(?=){}", &pattern[..bytes.min(250)]));
            }
        }
        assert_eq!(check_pattern(&format!("a{}", "{1}".repeat(80))), Ok(()));
        assert_eq!(check_pattern(&format!("(?=a){}", "(?:".repeat(16) + "a*" + &")*".repeat(16))), Ok(()));
        let classes = format!("{}x{}", "[".repeat(32), "]".repeat(32));
        assert_eq!(check_pattern(&classes), Ok(()));
    });
}

#[test]
fn backtracking_is_bounded() {
    let evil = find(r"(?=a)(a|a)*\1$b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");
    assert_eq!(evil, Err("Regex complexity limit exceeded (ReDoS protection)".to_owned()));
    let long = with_context(|cx| {
        let regex = cx.compile_regex("a(?=b)").expect("compiles");
        cx.find_match(&regex, &"x".repeat(40_000), 0).map_err(|fault| fault.message)
    });
    assert!(long.is_err_and(|message| message.contains("32768 bytes")));
}

#[test]
fn whole_matches_try_every_alternative() {
    let whole = with_context(|cx| {
        let regex = cx.compile_regex("a|ab").expect("compiles");
        regex
            .match_whole(&mut cx.store.meter, &mut cx.regexes, "ab")
            .map(|spans| spans.and_then(|spans| spans[0]))
            .map_err(|fault| fault.message)
    });
    assert_eq!(whole, Ok(Some((0, 2))));
}

/// The fuel of a search, or the error.
fn fuel_of(pattern: &'static str, text: String, before: Option<&'static str>) -> Result<u64, String> {
    with_limits(2_000_000, 10 << 20, move |cx| {
        let regex = cx.compile_regex(pattern).map_err(|fault| fault.message)?;
        if let Some(before) = before {
            cx.find_match(&regex, before, 0).map_err(|fault| fault.message)?;
        }
        let used = cx.fuel.used();
        cx.find_match(&regex, &text, 0).map_err(|fault| fault.message)?;
        Ok(cx.fuel.used() - used)
    })
}

/// A text of `a` and `b` with few repetitions.
fn uneven(length: usize) -> String {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn every_search_pays_for_what_it_does() {
    let text = |pieces: &str, times: usize| pieces.repeat(times);
    for (pattern, text) in [
        // A new state of the automaton for most bytes.
        ("[ab]*a[ab]{2000}c", uneven(200_000)),
        // All paths at once, for a long match.
        ("((a)|(b))*", text("ab", 500_000)),
        // Backtracking.
        ("(?:(?=.*x)a)+y", text("a", 30_000)),
        (r"(.*)(.*)\1\2x", text("a", 30_000)),
        ("(?<=c(?:a|aa){40})a", text("a", 30_000)),
        // A literal, and positions where no match can begin.
        ("xyz", text("x", 3_000_000)),
        (r"x\d", text("y", 3_000_000)),
    ] {
        let ended = fuel_of(pattern, text, None);
        let right = ended.as_ref().is_err_and(|message| message.contains("fuel"));
        assert!(right, "{pattern}: {ended:?}");
    }
}

#[test]
fn fuel_depends_on_pattern_and_text() {
    for (pattern, text) in [(r"(\w+)@(\w+)", "to a@b.c"), ("(?<=a)b", "cab"), ("a|b|c", "xyzc")] {
        let first = fuel_of(pattern, text.to_owned(), None);
        assert!(first.is_ok());
        assert_eq!(first, fuel_of(pattern, text.to_owned(), None), "{pattern}");
        assert_eq!(first, fuel_of(pattern, text.to_owned(), Some("aab a@b xcab")), "{pattern}");
    }
    // Compiling costs the same again, whether the pattern is cached or not.
    with_context(|cx| {
        let mut costs = Vec::new();
        for _ in 0..2 {
            let used = cx.fuel.used();
            cx.compile_regex(r"(?i)[\pL\d]{3,20}").expect("compiles");
            costs.push(cx.fuel.used() - used);
        }
        assert_eq!(costs[0], costs[1]);
    });
}

fn live_bytes() -> u64 {
    const MORE: u64 = 1 << 60;
    crate::memory::account::would_exceed(MORE).map_or(0, |(needed, _)| needed - MORE)
}

#[test]
fn what_searches_remember_is_on_the_account() {
    let remembered = with_context(|cx| {
        let regex = cx.compile_regex("[ab]*a[ab]{12}c").expect("compiles");
        let before = live_bytes();
        cx.find_match(&regex, &uneven(100_000), 0).expect("within limits");
        live_bytes() - before
    });
    assert!((10_000..3 << 20).contains(&remembered), "{remembered}");
    // The stack of untried paths.
    let refused = with_limits(1_000_000_000, 200_000, |cx| {
        let regex = cx.compile_regex("(?:a|b)*(?=c)").expect("compiles");
        cx.find_match(&regex, &"ab".repeat(10_000), 0).map_err(|fault| fault.message)
    });
    assert!(refused.is_err_and(|message| message.contains("memory")), "the stack has no account");
}
