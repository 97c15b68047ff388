//! Tests what regular expressions cost programs in fuel (the work budget) and memory, and with which messages they fail.
//!
//! The crate `ptc-regex`, which finds the matches, has tests of its own.

use super::{with_context, with_limits};
use crate::fault::{Fault, Reason};

/// The fault of a search.
fn fault(pattern: &'static str, text: String) -> Option<Box<Fault>> {
    with_limits(2_000_000, 10 << 20, move |cx| {
        let found = cx.compile_regex(pattern).and_then(|regex| cx.find_match(&regex, &text, 0));
        found.err()
    })
}

#[test]
fn faults_say_why_there_is_no_match() {
    for (pattern, text, reason, message) in [
        ("(", "a".to_owned(), Reason::RuntimeError, "Invalid regex: unclosed group"),
        (r"(?=a)(a|a)*\1$b", "a".repeat(50), Reason::FuelExceeded, "units of fuel"),
        ("a(?=b)", "x".repeat(40_000), Reason::TypeError, "the limit is 32768 bytes"),
        ("[ab]*a[ab]{2000}c", uneven(200_000), Reason::FuelExceeded, "units of fuel"),
        ("xyz", "x".repeat(3_000_000), Reason::FuelExceeded, "units of fuel"),
    ] {
        let fault = fault(pattern, text);
        let right = fault.as_ref().is_some_and(|it| it.reason == reason && it.message.contains(message));
        assert!(right, "{pattern}: {fault:?}");
    }
    let hint = fault("a(?=b)", "x".repeat(40_000)).map(|fault| fault.hints);
    assert!(hint.is_some_and(|hints| hints[0].starts_with("Split the text first")));
    let steps = with_context(|cx| {
        let regex = cx.compile_regex(r"(?=a)(a|a)*\1$b").expect("compiles");
        cx.find_match(&regex, &"a".repeat(50), 0).map_err(|fault| (fault.reason, fault.message))
    });
    let (reason, message) = steps.expect_err("too many steps");
    assert_eq!(
        (reason, &*message),
        (Reason::TypeError, "Regex complexity limit exceeded (ReDoS protection)")
    );
}

/// The fuel of a search.
fn fuel_of(pattern: &'static str, text: &'static str, before: Option<&'static str>) -> u64 {
    with_context(move |cx| {
        let regex = cx.compile_regex(pattern).expect("compiles");
        if let Some(before) = before {
            cx.find_match(&regex, before, 0).expect("within limits");
        }
        let used = cx.fuel.used();
        cx.find_match(&regex, text, 0).expect("within limits");
        cx.fuel.used() - used
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
fn fuel_depends_on_pattern_and_text() {
    for (pattern, text) in [(r"(\w+)@(\w+)", "to a@b.c"), ("(?<=a)b", "cab"), ("a|b|c", "xyzc")] {
        let first = fuel_of(pattern, text, None);
        assert!(first > 0);
        assert_eq!(first, fuel_of(pattern, text, None), "{pattern}");
        assert_eq!(first, fuel_of(pattern, text, Some("aab a@b xcab")), "{pattern}");
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
fn what_searches_remember_is_on_the_account_until_the_run_ends() {
    with_context(|cx| {
        let regex = cx.compile_regex("[ab]*a[ab]{12}c").expect("compiles");
        let before = live_bytes();
        let mut costs = Vec::new();
        for _ in 0..2 {
            let used = cx.fuel.used();
            cx.find_match(&regex, &uneven(100_000), 0).expect("within limits");
            costs.push(cx.fuel.used() - used);
            let remembered = live_bytes() - before;
            assert!((10_000..3 << 20).contains(&remembered), "{remembered}");
            cx.regexes.end_run();
            cx.run = cx.run.next();
            assert!(live_bytes() <= before, "{} and {before}", live_bytes());
        }
        assert_eq!(costs[0], costs[1]);
    });
    // The stack of untried paths.
    let refused = with_limits(1_000_000_000, 200_000, |cx| {
        let regex = cx.compile_regex("(?:a|b)*(?=c)").expect("compiles");
        cx.find_match(&regex, &"ab".repeat(10_000), 0).map_err(|fault| fault.message)
    });
    assert!(refused.is_err_and(|message| message.contains("memory")), "the stack has no account");
}
