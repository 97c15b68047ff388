//! Measures preludes: the cost of attaching one, and of calling an export compared with a function of the
//! program.

use super::clock::cpu;
use ptc_calls::options::RunOptions;
use ptc_engine::{Prelude, Runtime, RuntimeConfig};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Numbers of exports.
const SIZES: [usize; 3] = [1, 50, 1_000];

/// Runs that are measured together, one after the other, so that the time to wake a thread does not count.
const BLOCK: usize = 100;

/// Calls of one loop.
const CALLS: usize = 100_000;

/// Programs: one that names no export, one that names one, and a loop of calls.
const PLAIN: &str = "(+ 1 (* 2 3))";
const NAMING: &str = "(m/f0 1)";

/// Measures blocks of runs in turn, without a prelude and with preludes of several sizes. Returns a table of
/// CPU times.
///
/// # Errors
/// A program that fails.
pub async fn report(runs: usize) -> Result<String, String> {
    let mut runtimes = vec![(None, start(None).await?)];
    for size in SIZES {
        runtimes.push((Some(size), start(Some(prelude(size)?)).await?));
    }
    let mut times: Vec<[Vec<Duration>; 2]> = vec![Default::default(); runtimes.len()];
    for _ in 0..runs.div_ceil(BLOCK) {
        for ((size, runtime), times) in runtimes.iter().zip(&mut times) {
            times[0].push(timed(runtime, PLAIN, BLOCK).await?);
            if size.is_some() {
                times[1].push(timed(runtime, NAMING, BLOCK).await?);
            }
        }
    }
    let micros = |times: &mut Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    let bare = micros(&mut times[0][0]);
    let mut text = format!(
        "| exports | a program that names none, us | more than without, us | one that names one, us |\n|---|---|---|---|\n\
         | no prelude | {bare:.2} | | |\n"
    );
    for ((size, _), times) in runtimes.iter().zip(&mut times).skip(1) {
        let (plain, naming) = (micros(&mut times[0]), micros(&mut times[1]));
        let size = size.unwrap_or_default();
        let _ = writeln!(text, "| {size} | {plain:.2} | {:.2} | {naming:.2} |", plain - bare);
    }
    let calls = |name: &str| format!("(loop [i 0] (if (< i {CALLS}) (do ({name} i) (recur (inc i))) i))");
    let own = format!("(defn f0 [x] [x 0]) {}", calls("f0"));
    let (_, runtime) = &runtimes[1];
    let mut looped = [Vec::new(), Vec::new()];
    for _ in 0..runs.min(50) {
        looped[0].push(timed(runtime, &own, 1).await?);
        looped[1].push(timed(runtime, &calls("m/f0"), 1).await?);
    }
    let [own, export] = looped.map(|mut times| micros(&mut times) * 1e3 / CALLS as f64);
    let _ = write!(text, "a call of a function of the program: {own:.1} ns, of an export: {export:.1} ns");
    for (_, runtime) in runtimes {
        runtime.shutdown().await;
    }
    Ok(text)
}

fn prelude(size: usize) -> Result<Prelude, String> {
    let definitions: String =
        (0..size).map(|n| format!("(defn f{n} \"Makes a pair.\" [x] [x {n}])\n")).collect();
    Prelude::compile("m.clj", &format!("(ns m)\n{definitions}")).map_err(|error| error.failure.message)
}

async fn start(prelude: Option<Prelude>) -> Result<Runtime, String> {
    let preludes = prelude.map(Arc::new).into_iter().collect();
    let config = RuntimeConfig { workers: 1, preludes, ..RuntimeConfig::default() };
    Runtime::start(config).await.map_err(|error| error.to_string())
}

/// CPU time per run, measured over `runs` runs.
async fn timed(runtime: &Runtime, program: &str, runs: usize) -> Result<Duration, String> {
    let program: Arc<str> = program.into();
    let begun = cpu();
    for _ in 0..runs {
        let outcome = runtime.run(program.clone(), RunOptions::default()).await;
        outcome.result.map_err(|failure| failure.message)?;
    }
    Ok((cpu() - begun) / u32::try_from(runs).unwrap_or(u32::MAX))
}
