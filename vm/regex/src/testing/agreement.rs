//! Compares our searches with the crates `regex` and `fancy-regex`, and with each other, on random patterns and texts.

use super::{Limits, on_small_stack};
use crate::search::{BacktrackLimits, Finding};
use crate::{Regex, Searches, Spans, after};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// The search strategies: backtracking; automaton with groups by backtracking; automaton with groups by all paths at
/// once.
const WAYS: [BacktrackLimits; 3] = [
    BacktrackLimits { text: usize::MAX, often: usize::MAX, groups: usize::MAX },
    BacktrackLimits { text: 0, often: 0, groups: usize::MAX },
    BacktrackLimits { text: 0, often: 0, groups: 0 },
];

/// Checks a property of this many inputs, the same in every run.
fn for_all<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let scale = std::env::var("PTC_PROPERTY_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let config = Config {
        cases: cases * scale,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |input| {
        property(input);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn one_of(items: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(items).prop_map(str::to_owned).boxed()
}

/// Syntax that all engines know.
fn atom() -> BoxedStrategy<String> {
    one_of(&[
        "a",
        "b",
        "c",
        "ab",
        "é",
        "K",
        "_",
        "1",
        " ",
        r"\n",
        r"\r",
        ".",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-cé-ü]",
        "[^é]",
        r"[a-z&&[^b]]",
        r"\pL",
        r"\PL",
        r"\p{Lu}",
        "[[:upper:]]",
        "[^[:alpha:]]",
        "^",
        r"\A",
        r"\z",
        r"\b",
        r"\B",
        "(?m:$)",
        "(?s:.)",
        "(?i:k)",
        "(?i:É)",
        "(?i:[a-c])",
        r"(?i:\p{Lu})",
        r"(?i:\P{Lu})",
        "(?-u:a)",
        r"(?-u:\b)",
        r"(?-u:\w)",
        "(?R)(?m:$)",
        "",
    ])
}

fn quantifier() -> BoxedStrategy<String> {
    one_of(&["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,3}?", "{2,}", "{0}", "{0,}?"])
}

/// Patterns that are searched in time linear in the text.
fn linear() -> BoxedStrategy<String> {
    linear_of(atom())
}

/// The same, of these parts.
fn linear_of(atom: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let pattern = atom.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner.clone(), quantifier()).prop_map(|(part, times)| format!("(?:{part}){times}")),
            2 => inner.clone().prop_map(|part| format!("({part})")),
            1 => (inner.clone(), quantifier()).prop_map(|(part, times)| format!("({part}){times}")),
            1 => inner.prop_map(|part| format!("(?i:{part})")),
        ]
    });
    pattern.boxed()
}

fn text() -> BoxedStrategy<String> {
    let piece = one_of(&[
        "a", "b", "c", "ab", "A", "é", "É", "ü", "k", "\u{212A}", "_", "1", " ", "-", "\n", "\r", "\r\n", "𝄞",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat()).boxed()
}

/// All matches, found one after the other.
fn all(text: &str, mut next: impl FnMut(usize) -> Option<Spans>) -> Vec<Spans> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at <= text.len()
        && let Some(spans) = next(at)
        && let Some((start, end)) = spans[0]
    {
        at = after(text, start, end);
        found.push(spans);
    }
    found
}

/// All matches, and the match of the whole text, by one strategy.
fn found(
    regex: &Regex<Limits>,
    limits: &mut Limits,
    searches: &mut Searches<Limits>,
    text: &str,
    way: &BacktrackLimits,
) -> (Vec<Spans>, Option<Spans>) {
    let found = all(text, |at| {
        Finding { regex, searches, text, limits: way }.first(limits, at).expect("within limits")
    });
    (found, Finding { regex, searches, text, limits: way }.whole(limits).expect("within limits"))
}

#[test]
fn linear_patterns_find_what_the_regex_crate_finds() {
    for_all(1_000, (linear(), text()), |(pattern, text)| {
        let theirs = regex::RegexBuilder::new(&pattern).size_limit(8 << 20).build();
        on_small_stack(move || {
            let (mut limits, mut searches) = (Limits::ample(), Searches::default());
            let ours = limits.compile(&pattern);
            let (theirs, ours) = match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => (theirs, ours),
                (Err(_), Err(_)) => return,
                (theirs, ours) => {
                    panic!("{pattern:?}: {:?} and {:?}", theirs.err(), ours.err())
                }
            };
            let expected = all(&text, |at| {
                theirs.captures_at(&text, at).map(|groups| {
                    let spans = groups.iter().map(|group| group.map(|group| (group.start(), group.end())));
                    // Other engines do not report the groups of a part that is repeated zero times.
                    spans.chain(std::iter::repeat(None)).take(ours.pattern().groups() + 1).collect()
                })
            });
            let whole = regex::Regex::new(&format!(r"\A(?:{pattern})\z")).ok();
            let expected_whole = whole.map(|whole| whole.is_match(&text));
            for (number, way) in WAYS.iter().enumerate() {
                let (found, whole) = found(&ours, &mut limits, &mut searches, &text, way);
                assert_eq!(found, expected, "search {number} of {pattern:?} in {text:?}");
                let whole = Some(whole.is_some());
                assert_eq!(whole, expected_whole, "whole match {number} of {pattern:?} in {text:?}");
            }
        });
    });
}

/// Other engines that search in linear time have no `$` before the last line feed, and begin a line at the end of a text:
/// the searches are compared with each other, and the backtracking one with another engine below.
#[test]
fn all_searches_agree_on_the_end_of_a_text() {
    let part = prop_oneof![3 => atom(), 2 => one_of(&["$", "a$", "(?m:^)", "(?R)(?m:^)"])].boxed();
    for_all(1_500, (linear_of(part), text(), any::<bool>()), |(pattern, mut text, ends_in_line_feed)| {
        if ends_in_line_feed {
            text.push('\n');
        }
        on_small_stack(move || {
            let (mut limits, mut searches) = (Limits::ample(), Searches::default());
            let Ok(regex) = limits.compile(&pattern) else { return };
            let mut results = WAYS.iter().map(|way| found(&regex, &mut limits, &mut searches, &text, way));
            let expected = results.next().expect("a first way");
            for (number, found) in results.enumerate() {
                assert_eq!(found, expected, "search {} of {pattern:?} in {text:?}", number + 1);
            }
        });
    });
}

/// Patterns with look-around, back-references or atomic groups. They have no loops over possibly empty parts, and no
/// groups within look-around: engines differ there.
fn backtracking() -> BoxedStrategy<String> {
    let part = one_of(&[
        "a",
        "b",
        "ab",
        "é",
        "[ab]",
        "[^a]",
        r"\w",
        r"\d",
        ".",
        "a+",
        r"\w+",
        "b*",
        "(?i:k)",
        "(?:a|ab)",
        "(?:ab|a|b)",
        r"\b",
        "^",
        "$",
    ]);
    let hard = part.clone().prop_flat_map(|part| {
        prop_oneof![
            Just(format!("(?={part})")),
            Just(format!("(?!{part})")),
            Just(format!("(?>{part})")),
            Just(format!("({part})\\1")),
            Just(format!("(?<n>{part})-?(?:\\k<n>|b)")),
            Just(format!("({part})?(?(1)b|c)")),
            Just("(?<=a)".to_owned()),
            Just("(?<!a)".to_owned()),
            Just("(?<=ab|é)".to_owned()),
            Just("(?<!ab|b)".to_owned()),
            Just(r"(?<=\w\w)".to_owned()),
            Just("a++".to_owned()),
            Just(r"\w*+".to_owned()),
            Just("(?:a|ab)?+".to_owned()),
            Just(r"\Z".to_owned()),
            Just(r"a\Kb".to_owned()),
            Just(format!("(?={part}(?!b))")),
            Just(format!("(?!(?={part})a)")),
        ]
    });
    let pieces = prop::collection::vec(prop_oneof![2 => part, 1 => hard.clone()], 0..4);
    let more = prop::collection::vec(
        prop_oneof![2 => one_of(&["a", "b", r"\w", "(?:a|b)+", ".*", ".*?"]), 1 => Just(String::new())],
        0..3,
    );
    (pieces, hard, more, any::<bool>())
        .prop_map(|(pieces, hard, more, either)| {
            let bar = if either { "|" } else { "" };
            format!("{}{}{bar}{}", pieces.concat(), hard, more.concat())
        })
        .boxed()
}

#[test]
fn backtracking_patterns_find_what_fancy_regex_finds() {
    for_all(1_000, (backtracking(), text(), any::<bool>()), |(pattern, mut text, ends_in_line_feed)| {
        if ends_in_line_feed {
            text.push('\n');
        }
        on_small_stack(move || {
            let (mut limits, mut searches) = (Limits::ample(), Searches::default());
            // A pattern of several parts may refer to the group of another part, which other engines sometimes allow.
            let numbered = pattern.matches("\\1").count() + pattern.matches("(1)").count();
            if numbered + pattern.matches("(?<n>").count() > 1 {
                return;
            }
            let theirs = fancy_regex::Regex::new(&pattern.replace(r"\Z", "$").replace('$', r"(?=\n?\z)"));
            let ours = limits.compile(&pattern);
            let (Ok(theirs), Ok(ours)) = (&theirs, &ours) else {
                assert_eq!(theirs.is_ok(), ours.is_ok(), "{pattern:?}: {:?}", theirs.as_ref().err());
                return;
            };
            let expected = all(&text, |at| {
                theirs.captures_from_pos(&text, at).expect("within their limits").map(|groups| {
                    groups.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
                })
            });
            let found =
                all(&text, |at| ours.find(&mut limits, &mut searches, &text, at).expect("within limits"));
            assert_eq!(found, expected, "{pattern:?} in {text:?}");
        });
    });
}
