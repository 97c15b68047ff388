//! Measures sessions: memory of an empty one, and time of its first program compared with the same program
//! without a session.

use super::resident::resident;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_engine::session::SessionLimits;
use ptc_engine::{Runtime, RuntimeConfig};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A program such as a session begins with.
const PROGRAM: &str =
    "(defn total [rows] (reduce + (map :n rows))) (def rows [{:n 1} {:n 2} {:n 3}]) (total rows)";

/// What was measured.
#[derive(Debug)]
pub struct SessionCost {
    /// Sessions that were open at once.
    pub sessions: usize,
    /// Resident bytes of the process before, with all of them empty, and with the first program of each
    /// committed.
    pub resident: [u64; 3],
    /// Time to open one and have its first program answered, median.
    pub session: Duration,
    /// Time to have the same program answered without a session, median.
    pub stateless: Duration,
    /// Time of the second program of a session, median.
    pub second: Duration,
}

/// Opens this many sessions and runs a program in each, alternating with the same program without a session.
///
/// # Errors
/// A program that fails; no `/proc`.
pub async fn measure(sessions: usize) -> Result<SessionCost, String> {
    // Both sides use workers, because the fast path does not support sessions.
    let config = RuntimeConfig { workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.map_err(|error| error.to_string())?;
    let answered = |outcome: Outcome| match outcome.result {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.message),
    };
    for _ in 0..100 {
        answered(runtime.run(PROGRAM, RunOptions::default()).await)?;
    }
    let before = resident()?;
    let empty: Vec<_> = (0..sessions).map(|_| runtime.session(SessionLimits::default())).collect();
    let with_empty = resident()?;
    drop(empty);
    let (mut open, mut times) = (Vec::with_capacity(sessions), [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..sessions {
        let begun = Instant::now();
        answered(runtime.run(PROGRAM, RunOptions::default()).await)?;
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        let session = runtime.session(SessionLimits::default());
        let run = |source: &'static str| {
            let (sender, outcome) = oneshot::channel();
            let busy = session.submit(source, RunOptions::default(), None, Box::new(sender));
            async move {
                busy.map_err(|_| "busy".to_owned())?;
                answered(outcome.await.map_err(|error| error.to_string())?)
            }
        };
        run(PROGRAM).await?;
        times[1].push(begun.elapsed());
        let begun = Instant::now();
        run("(total rows)").await?;
        times[2].push(begun.elapsed());
        open.push(session);
    }
    let with_all = resident()?;
    drop(open);
    runtime.shutdown().await;
    let [stateless, session, second] = times.map(|mut times| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    });
    Ok(SessionCost { sessions, resident: [before, with_empty, with_all], session, stateless, second })
}
