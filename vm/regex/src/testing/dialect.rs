//! Tests of the meaning of patterns.

use super::{Limits, Stop, on_small_stack};
use crate::{LONGEST_BACKTRACKED, SearchError, Searches, check_pattern};

/// The first match in a text, or the error.
fn find<'t>(pattern: &str, text: &'t str) -> Result<Option<&'t str>, Stop> {
    let mut limits = Limits::ample();
    let regex = limits.compile(pattern)?;
    let spans = regex.find(&mut limits, &mut Searches::default(), text, 0)?;
    Ok(spans.and_then(|spans| spans[0]).map(|(start, end)| &text[start..end]))
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
        (r"\d+$", "count 5\n", Some("5")),
        (r"x$", "x\n\n", None),
        (r"x$\n", "x\n", Some("x\n")),
        (r"x\z", "x\n", None),
        (r"b(?m)\n^", "a\nb\n", None),
        (r"(?m)^b", "a\nb\n", Some("b")),
        (r"(?m)^", "", None),
        (r"(?U)\w+", "é!", Some("é")),
        (r"(?iU)K+", "akk", Some("kk")),
        (r"$", "x\n", Some("")),
        (r"[\w-.]+", "!a-b.c!", Some("a-b.c")),
        (r"[\w.-]+", "!a-b.c!", Some("a-b.c")),
        (r"[^\s-x]+", " -xab", Some("ab")),
        (r"[\h-x]+", "w\t-x", Some("\t-x")),
        (r"[\p{Alpha}-+]+", "1a-+", Some("a-+")),
        (r"[a-c-]+", "d-ab", Some("-ab")),
        (r"\p{Punct}+", "a!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~b", Some("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")),
        (r"\p{Punct}", "\u{2014}\u{a7}", None),
        (r"\P{Punct}+", "+é-", Some("é")),
        (r"[\p{Punct}a]+", "ba+c", Some("a+")),
        (r"[^\p{Alnum}]+", "a1é_b", Some("é_")),
        (r"\p{Alnum}+", "_a1é", Some("a1")),
        (r"\p{Alpha}+", "1caf\u{e9}", Some("caf")),
        (r"\p{XDigit}+", "xfFg", Some("fF")),
        (r"\p{Blank}+", "\n \t\n", Some(" \t")),
        (r"\p{Graph}+", " a~ ", Some("a~")),
        (r"\p{Print}+", "\ta ~\t", Some("a ~")),
        (r"\p{Cntrl}", "a\u{7}", Some("\u{7}")),
        (r"\p{javaLetterOrDigit}+", "-é1-", Some("é1")),
        (r"\P{javaLetterOrDigit}+", "é-1", Some("-")),
        (r"[^\P{javaLetter}]+", "1é", Some("é")),
        (r"\p{L}+", "1é", Some("é")),
        (r"(?i)HELLO(?= w)", "hello world", Some("hello")),
    ] {
        assert_eq!(find(pattern, text), Ok(found), "{pattern}");
    }
}

#[test]
fn bad_patterns_say_what_is_wrong() {
    assert_eq!(find("(", ""), Err(Stop::Pattern("Invalid regex: unclosed group".to_owned())));
    assert!(check_pattern(&"a".repeat(257)).is_err_and(|message| message.contains("256 bytes")));
    assert!(check_pattern("(((a{100}){100}){100}){100}").is_err_and(|message| message.contains("too much")));
    let deep = format!("{}a{}", "(".repeat(40), ")".repeat(40));
    assert!(check_pattern(&deep).is_err_and(|message| message.contains("nest deeper")));
}

#[test]
fn nesting_up_to_the_limit_fits_a_small_stack() {
    on_small_stack(|| {
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
    let evil = find(r"(?=a)(a|a)*\1$b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");
    assert_eq!(evil, Err(Stop::Refused(SearchError::TooManySteps)));
    let long = "x".repeat(LONGEST_BACKTRACKED + 1);
    assert_eq!(find("a(?=b)", &long), Err(Stop::Refused(SearchError::TextTooLong(long.len()))));
    assert_eq!(find("a(?=b)", &long[1..]), Ok(None));
}

#[test]
fn whole_matches_try_every_alternative() {
    let mut limits = Limits::ample();
    let regex = limits.compile("a|ab").expect("compiles");
    let whole = regex.match_whole(&mut limits, &mut Searches::default(), "ab").expect("within limits");
    assert_eq!(whole.and_then(|spans| spans[0]), Some((0, 2)));
}

#[test]
fn a_search_begins_at_a_character() {
    let mut limits = Limits::ample();
    for pattern in ["é", "[^a]", "(?=é)é", ""] {
        let regex = limits.compile(pattern).expect("compiles");
        let mut begins =
            |at| regex.find(&mut limits, &mut Searches::default(), "éé", at).map(|found| found.is_some());
        assert_eq!(
            [0, 1, 2, 3, 5].map(&mut begins),
            [true, false, true, false, false].map(Ok),
            "{pattern:?}"
        );
        assert_eq!(begins(4), Ok(pattern.is_empty()), "{pattern:?}");
    }
}
