//! Tests of what searches pay for.

use super::{Limits, Stop};
use crate::Searches;

/// The work of a search, or the error.
fn work_of(pattern: &str, text: &str, before: Option<&str>) -> Result<u64, Stop> {
    let mut limits = Limits::new(2_000_000, 10 << 20);
    let mut searches = Searches::default();
    let regex = limits.compile(pattern)?;
    if let Some(before) = before {
        regex.find(&mut limits, &mut searches, before, 0)?;
    }
    let used = limits.used;
    regex.find(&mut limits, &mut searches, text, 0)?;
    Ok(limits.used - used)
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
        assert_eq!(work_of(pattern, &text, None), Err(Stop::Work), "{pattern}");
    }
}

#[test]
fn work_depends_on_pattern_and_text() {
    for (pattern, text) in [(r"(\w+)@(\w+)", "to a@b.c"), ("(?<=a)b", "cab"), ("a|b|c", "xyzc")] {
        let first = work_of(pattern, text, None);
        assert!(first.is_ok());
        assert_eq!(first, work_of(pattern, text, None), "{pattern}");
        assert_eq!(first, work_of(pattern, text, Some("aab a@b xcab")), "{pattern}");
    }
}

#[test]
fn ended_searches_leave_nothing() {
    let mut limits = Limits::ample();
    let mut searches = Searches::default();
    let regex = limits.compile("[ab]*a[ab]{12}c").expect("compiles");
    let text = uneven(50_000);
    let search = |limits: &mut Limits, searches: &mut Searches<Limits>| {
        let used = limits.used;
        regex.find(limits, searches, &text, 0).expect("within limits");
        (limits.used - used, limits.live.get())
    };
    let first = search(&mut limits, &mut searches);
    let again = search(&mut limits, &mut searches);
    assert!(again.0 < first.0, "{first:?}, {again:?}");
    assert!((10_000..3 << 20).contains(&first.1), "{first:?}");
    searches.end();
    assert_eq!(limits.live.get(), 0);
    assert_eq!(search(&mut limits, &mut searches), first);
}

#[test]
fn memory_of_searches_is_counted() {
    // The stack of untried paths, the states of an automaton, and the positions of all paths at once.
    let states = uneven(100_000);
    for (pattern, text) in [
        ("(?:a|b)*(?=c)", "ab".repeat(10_000)),
        ("[ab]*a[ab]{200}c", states),
        ("((((((((a|b)))))))){1000}", "ab".repeat(10_000)),
    ] {
        let mut limits = Limits::new(1_000_000_000, 200_000);
        let regex = limits.compile(pattern).expect("compiles");
        let found = regex.find(&mut limits, &mut Searches::default(), &text, 0);
        assert_eq!(found, Err(Stop::Memory), "{pattern}");
        drop(regex);
        assert_eq!(limits.live.get(), 0, "{pattern}");
    }
}
