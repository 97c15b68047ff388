//! Limits are exact: a program that needs the whole limit runs, one that needs one more is refused, and the error
//! names the limit.

use crate::common;
mod preludes;

use common::programs::{options, runtime_of};
use ptc_calls::limits::{FIXED, Limits};
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_engine::{Runtime, StartPolicy};
use ptc_vm::Reason;

async fn run(runtime: &Runtime, source: &str, set: impl Fn(&mut Limits)) -> Outcome {
    let mut options = options();
    set(&mut options.limits);
    runtime.run(source, options).await
}

/// The program runs with `most` and is refused with one less, for this reason; the error names the limit.
async fn is_exact(runtime: &Runtime, source: &str, most: u64, reason: Reason, set: fn(&mut Limits, u64)) {
    let outcome = run(runtime, source, |limits| set(limits, most)).await;
    assert!(outcome.result.is_ok(), "{source} with {most}: {:?}", outcome.result);
    let failed =
        run(runtime, source, |limits| set(limits, most - 1)).await.result.expect_err("over the limit");
    assert_eq!(failed.reason, reason, "{source}");
    assert!(failed.message.contains(&(most - 1).to_string()), "{}", failed.message);
    assert!(failed.position().is_some() && !failed.hints().is_empty(), "{source}");
}

#[tokio::test]
async fn limits_of_the_table_are_hit_exactly() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    is_exact(&runtime, "(+ 1 2)", 7, Reason::ProgramTooLarge, |limits, most| limits.max_program_bytes = most)
        .await;
    let keywords = "[:a :b :c :d :e]";
    is_exact(&runtime, keywords, 5, Reason::SymbolLimitExceeded, |limits, most| limits.max_symbols = most)
        .await;
    let rounds = "(loop [i 0] (if (< i 20) (recur (inc i)) i))";
    is_exact(&runtime, rounds, 20, Reason::LoopLimitExceeded, |limits, most| limits.loop_limit = most).await;
    let work = "(reduce + (map inc (range 1000)))";
    let used = run(&runtime, work, |_| {}).await.usage.fuel.unwrap();
    is_exact(&runtime, work, used, Reason::FuelExceeded, |limits, most| limits.fuel = most).await;
}

#[tokio::test]
async fn a_context_may_be_as_long_as_its_limit() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let context = r#"{"n": 12}"#;
    let with = |most: usize| RunOptions {
        context: Some(context.to_owned()),
        limits: Limits { max_context_bytes: most as u64, ..options().limits },
        ..options()
    };
    let answer = runtime.run("data/n", with(context.len())).await.result.expect("it fits");
    assert_eq!(answer.text, "12");
    let failed = runtime.run("data/n", with(context.len() - 1)).await.result.expect_err("too long");
    assert_eq!(failed.message, "context exceeds max_context_bytes (9 > 8)");
}

#[tokio::test]
async fn fixed_limits_are_hit_exactly() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let nested = |levels: u64| format!("{}1{}", "[".repeat(levels as usize), "]".repeat(levels as usize));
    let digits = |count: u64| "9".repeat(count as usize);
    let placeholder = |number: u64| format!("(fn? #(vector %{number}))");
    let text = |bytes: u64| format!("(re-find #\"(?=b)b\" (apply str (repeat {bytes} \"a\")))");
    for limit in FIXED {
        let program = |count: u64| match limit.name {
            "brackets inside brackets" => nested(count),
            "digits of an integer literal" => digits(count),
            "placeholders of #()" => placeholder(count),
            "bytes of text for a regex that backtracks" => text(count),
            // A number of this size: 2 to the count less 1.
            _ => format!("(pos? (bit-shift-left 1 {}))", count - 1),
        };
        let outcome = run(&runtime, &program(limit.most), |_| {}).await;
        assert!(outcome.result.is_ok(), "{}: {:?}", limit.name, outcome.result);
        let failed = run(&runtime, &program(limit.most + 1), |_| {}).await.result.expect_err(limit.name);
        assert_eq!(failed.reason.raw(), limit.reason, "{}", limit.name);
        assert!(failed.message.contains(&limit.most.to_string()), "{}", failed.message);
    }
}
