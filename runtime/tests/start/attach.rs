//! The requirements of a prelude are checked before the first instruction of a program, even while servers are
//! starting.

use crate::common::memory::{Habit, MemoryServer};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_calls::tools::ServerNames;
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use std::sync::Arc;

/// A program that would change something before its prelude detects the missing tool.
const WRITES_FIRST: &str = "(tool/call {:server \"memory\" :tool \"echo\" :args {:x 1}}) (p/look)";

fn text(tool: &str) -> String {
    format!(
        "(ns p) (defn look [] (tool/call {{:server \"memory\" :tool \"{tool}\" :args {{}}}})) (defn one [] 1)"
    )
}

async fn runtime(server: &MemoryServer, tool: &str, start: StartPolicy) -> Runtime {
    let prelude = Arc::new(Prelude::compile("p.clj", &text(tool)).expect("a prelude"));
    let servers = vec![server.entry()];
    let config =
        RuntimeConfig { servers, preludes: vec![prelude], start, workers: 2, ..RuntimeConfig::default() };
    Runtime::launch(config).expect("a runtime")
}

fn options() -> RunOptions {
    let limits = Limits { timeout_ms: 60_000, ..Limits::with_upstreams() };
    RunOptions { limits, ..RunOptions::default() }
}

fn refusal(outcome: Outcome) -> String {
    assert!(outcome.upstream_calls.is_empty(), "{outcome:?}");
    let failure = outcome.result.expect_err("it may not begin");
    assert_eq!(failure.reason.raw(), "prelude_attach_failed", "{}", failure.message);
    failure.message
}

fn calls(server: &MemoryServer) -> usize {
    server.log().iter().filter(|line| line.starts_with("tools/call")).count()
}

/// Two owners with 50 programs each, all of which begin while the server is starting.
async fn hundred(runtime: &Runtime, server: &MemoryServer, program: &'static str) -> Vec<Outcome> {
    server.hold(true);
    let owners = [(); 2].map(|()| runtime.restricted_to(ServerNames::from_iter(["memory".to_owned()])));
    let runs = owners.iter().flat_map(|owner| (0..50).map(|_| owner.run(program, options())));
    #[expect(clippy::disallowed_methods, reason = "tasks of a test end with it")]
    let runs: Vec<_> = runs.map(tokio::spawn).collect();
    while !server.opened() {
        tokio::task::yield_now().await;
    }
    server.hold(false);
    let mut outcomes = Vec::new();
    for run in runs {
        outcomes.push(run.await.expect("no defect"));
    }
    outcomes
}

#[tokio::test]
async fn programs_that_begin_while_servers_start_make_no_call_when_their_prelude_lacks_something() {
    for start in [StartPolicy::Lazy, StartPolicy::All] {
        let server = MemoryServer::default();
        let runtime = runtime(&server, "get_zork", start).await;
        for outcome in hundred(&runtime, &server, WRITES_FIRST).await {
            assert_eq!(
                refusal(outcome),
                "prelude attach failed: export `p/look` requires upstream operation `upstream:memory/get_zork`, but tool \
                 `get_zork` is not present on upstream server `memory`"
            );
        }
        assert_eq!(calls(&server), 0);
    }
}

#[tokio::test]
async fn programs_that_begin_while_servers_start_run_when_their_prelude_has_everything() {
    let server = MemoryServer::default();
    let runtime = runtime(&server, "echo", StartPolicy::Lazy).await;
    for outcome in hundred(&runtime, &server, "(:ok (p/look))").await {
        assert_eq!(outcome.result.expect("it runs").text, "true");
    }
    assert_eq!(calls(&server), 100);
}

#[tokio::test]
async fn a_server_that_cannot_be_listed_ends_a_program_that_reaches_it() {
    let server = MemoryServer::new(&[Habit::Absent]);
    let runtime = runtime(&server, "echo", StartPolicy::Lazy).await;
    // A program that does not use the prelude needs no server.
    assert_eq!(runtime.run("(p/one)", options()).await.result.expect("a value").text, "1");
    for _ in 0..2 {
        let message = refusal(runtime.run(WRITES_FIRST, options()).await);
        let beginning = "prelude attach failed: export `p/look` requires upstream operation `upstream:memory/echo`, but the \
             tools of upstream server `memory` could not be listed: ";
        assert!(message.starts_with(beginning) && message.contains("nobody is there"), "{message}");
    }
}

#[tokio::test]
async fn a_server_that_was_listed_and_is_gone_is_a_fault_of_the_world() {
    let server = MemoryServer::default();
    let runtime = runtime(&server, "echo", StartPolicy::Lazy).await;
    assert_eq!(runtime.run("(:ok (p/look))", options()).await.result.expect("a value").text, "true");
    server.set(Habit::Absent, true);
    server.end("it crashed", false);
    let mut texts = Vec::new();
    // The runtime notices its end some time later.
    while texts.last().is_none_or(|text| text != ":upstream_unavailable") {
        let outcome = runtime.run("(:reason (p/look))", options()).await;
        texts.push(outcome.result.expect("a value").text);
    }
}

#[tokio::test]
async fn a_program_of_a_session_is_looked_at_for_what_earlier_ones_have_linked() {
    let server = MemoryServer::new(&[Habit::Absent]);
    let runtime = runtime(&server, "echo", StartPolicy::Lazy).await;
    let session = runtime.base().session(Default::default());
    let refused = session.run("(defn f [] (p/look))", options(), None).expect("idle").await;
    refusal(refused);
    let outcome = session.run("(+ 1 2)", options(), None).expect("idle").await;
    assert_eq!(outcome.result.expect("a value").text, "3");
}

#[tokio::test]
async fn the_time_of_a_program_ends_its_wait_for_servers() {
    let server = MemoryServer::new(&[Habit::Unreachable]);
    let runtime = runtime(&server, "echo", StartPolicy::Lazy).await;
    let mut options = options();
    options.limits.timeout_ms = 50;
    let failure = runtime.run("(p/look)", options).await.result.expect_err("it has no time");
    assert!(["timeout", "prelude_attach_failed"].contains(&failure.reason.raw()), "{}", failure.message);
}
