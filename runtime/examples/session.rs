//! Example of a session: programs that build on each other, and their lines as they are printed.
//!
//! `cargo run -p ptc-runtime --example session`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use ptc_runtime::session::SessionLimits;
use ptc_runtime::{RunEvent, RunOptions, Runtime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().workers(1).start().await?;
    let session = runtime.session(SessionLimits::default());
    for program in ["(def prices [3 4 5])", "(defn total [xs] (reduce + xs))", "(total prices)"] {
        let run = session.run(program, RunOptions::typed(), None)?;
        println!("{program} => {}", run.await.result?.text);
    }
    let total: u32 = session.run("*1", RunOptions::typed(), None)?.await.value()?;
    println!("the total is {total}");
    let mut events = runtime.stream("(doseq [n (range 3)] (println n))", RunOptions::typed());
    while let Some(event) = events.next().await {
        if let RunEvent::Printed(line) = event {
            println!("printed {line}");
        }
    }
    runtime.shutdown().await;
    Ok(())
}
