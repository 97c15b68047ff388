//! The effect of misbehaving servers on a program, on the other servers, on the next call and on the machine: one
//! table, over real processes.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use crate::common;
use common::programs::{runtime_of, value};
use common::{children, entry, is_alive};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_engine::{Runtime, StartPolicy};
use ptc_upstream::UpstreamState;
use ptc_upstream::config::{ServerEntry, Startup};
use std::time::Duration;

/// A fault injected from outside.
#[derive(Clone, Copy, PartialEq)]
enum Hit {
    /// Nothing.
    None,
    /// SIGKILL while no call is in flight.
    KillIdle,
    /// SIGKILL while the program's call is in flight.
    KillInCall,
}

/// The state of the server afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// The same process goes on.
    GoesOn,
    /// Another process takes its place.
    IsReplaced,
    /// There was no process before, there is one now.
    Starts,
    /// It never works.
    Fails,
}

struct Fault {
    name: &'static str,
    /// Of the fake server.
    arguments: &'static [&'static str],
    hit: Hit,
    /// Triggers the fault; its value is `[ok reason-or-value message]` or any of `sees`.
    program: &'static str,
    sees: &'static [&'static str],
    then: Then,
}

const HANGS: &str = "the whole process hangs";
const STORM: &str = "list_changed storm";

const REPORT: &str = "(defn report [r] [(:ok r) (if (:ok r) (:value r) (:reason r)) (:message r)]) ";

const fn fault(
    name: &'static str,
    program: &'static str,
    sees: &'static [&'static str],
    then: Then,
) -> Fault {
    Fault { name, arguments: &[], hit: Hit::None, program, sees, then }
}

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    // Inside the recovery window or after it.
    Fault { hit: Hit::KillIdle, ..fault("SIGKILL while idle", "(take 2 (report (tool/call 'fake/number)))", &["[false :upstream_unavailable]", "[true 42]"], Then::IsReplaced) },
    Fault { hit: Hit::KillInCall, ..fault("SIGKILL in mid-call", "(report (tool/call 'fake/hang))", &["[false :upstream_unavailable \"subprocess exited (signal=9)\"]"], Then::IsReplaced) },
    fault("no answer", "(report (tool/call 'fake/hang))", &["[false :timeout \"no answer within 400 ms (--upstream-call-timeout)\"]"], Then::GoesOn),
    fault(HANGS, "(report (tool/call 'fake/freeze))", &["[false :timeout \"no answer within 400 ms (--upstream-call-timeout)\"]"], Then::IsReplaced),
    Fault { arguments: &["--slow", "900"], ..fault("slow start", "(report (tool/call 'fake/number))", &["[true 42 nil]"], Then::Starts) },
    Fault { arguments: &["--die-at-start"], ..fault("dies at start", "(take 2 (report (tool/call 'fake/number)))", &["[false :upstream_unavailable]"], Then::Fails) },
    fault("garbage on stdout", "(report (tool/call 'fake/garbage {:lines 20000}))", &["[true \"after garbage\" nil]"], Then::GoesOn),
    fault("an answer of 50 MB", "(let [r (tool/call 'fake/big {:bytes 50000000})] [(:ok r) (:reason r)])", &["[false :response_too_large]"], Then::GoesOn),
    // Its id cannot be read, so the only call in flight fails at once.
    fault("a line of 50 MB that is no answer", "(let [r (tool/call 'fake/long-line {:megabytes 50})] [(:ok r) (:reason r)])", &["[false :response_too_large]"], Then::GoesOn),
    fault("half a line, then exit", "(report (tool/call 'fake/half-line))", &["[false :upstream_unavailable \"subprocess exited (status=5)\"]"], Then::IsReplaced),
    fault("exit with status 0 in mid-call", "(report (tool/call 'fake/exit {:code 0}))", &["[false :upstream_unavailable \"subprocess exited (status=0)\"]"], Then::IsReplaced),
    fault("wrong ids", "(report (tool/call 'fake/wrong-ids))", &["[true \"for you\" nil]"], Then::GoesOn),
    fault("two answers", "[(report (tool/call 'fake/twice)) (report (tool/call 'fake/number))]", &["[[true \"first\" nil] [true 42 nil]]"], Then::GoesOn),
    fault(STORM, "(report (tool/call 'fake/storm {:n 20000}))", &["[true \"storm is over\" nil]"], Then::GoesOn),
    Fault { arguments: &["--many", "10000"], ..fault("10,000 tools", "[(> (:tool_count (first (tool/servers))) 10000) (:reason (tool/call 'fake/tool-9999 {:path \"x\"}))]", &["[true :upstream_error]"], Then::GoesOn) },
    fault("stderr flood", "(report (tool/call 'fake/stderr-flood {:kilobytes 20000}))", &["[true \"flooded\" nil]"], Then::GoesOn),
    Fault { arguments: &["--undying"], ..fault("refuses to end", "(report (tool/call 'fake/number))", &["[true 42 nil]"], Then::GoesOn) },
];

/// Short limits for faults that are timeouts, generous ones for others.
fn options(fault: &Fault) -> RunOptions {
    let timeout = if fault.sees[0].contains(":timeout") { 400 } else { 60_000 };
    let limits =
        Limits { timeout_ms: 120_000, upstream_call_timeout_ms: timeout, ..Limits::with_upstreams() };
    RunOptions { limits, ..RunOptions::default() }
}

async fn runtime_for(fault: &Fault) -> Runtime {
    let lenient = |mut entry: ServerEntry| {
        entry.startup = Startup::Lenient;
        entry.handshake_timeout = Duration::from_secs(60);
        if fault.name == HANGS {
            entry.unresponsive_timeout = Duration::from_millis(300);
        }
        entry
    };
    let servers = vec![lenient(entry("fake", fault.arguments)), lenient(entry("other", &[]))];
    let start = match fault.then {
        Then::Starts => StartPolicy::Named(["other".to_owned()].into()),
        _ => StartPolicy::All,
    };
    let runtime = runtime_of(servers, start, 1).await;
    runtime.settle().await;
    runtime
}

async fn pid(runtime: &Runtime, server: &str) -> u64 {
    let program = format!("(:pid (:value (tool/call {{:server \"{server}\" :tool \"stats\"}})))");
    value(runtime, &program).await.parse().unwrap()
}

fn state(runtime: &Runtime) -> UpstreamState {
    runtime.servers()[0].state
}

/// Runs the program of a row, and injects the fault into the server.
async fn meet(runtime: &Runtime, fault: &Fault, server: Option<u64>) -> String {
    let kill = || {
        let process = libc::pid_t::try_from(server.unwrap()).unwrap();
        // SAFETY: two integers; the process is the fake server of this row.
        assert_eq!(unsafe { libc::kill(process, libc::SIGKILL) }, 0);
    };
    if fault.hit == Hit::KillIdle {
        kill();
        while state(runtime) == UpstreamState::Ready {
            tokio::task::yield_now().await;
        }
    }
    let run = runtime.run(format!("{REPORT}{}", fault.program), options(fault));
    if fault.hit == Hit::KillInCall {
        // The server counts the call of the program and the one that asks.
        let in_flight = "(:most_in_flight (:value (tool/call 'fake/stats)))";
        while value(runtime, in_flight).await == "1" {}
        kill();
    }
    run.await.result.unwrap_or_else(|failure| panic!("{}: {}", fault.name, failure.message)).text
}

/// Calls until the server answers; refusals before that must give the reason.
async fn next_call_works(runtime: &Runtime, fault: &Fault) {
    let program = "(let [r (tool/call 'fake/number)] (if (:ok r) :works [(:reason r) (:message r)]))";
    loop {
        let answer = value(runtime, program).await;
        if answer == ":works" {
            return;
        }
        let known = ["in recovery", "stopped answering", "subprocess exited"];
        assert!(known.iter().any(|known| answer.contains(known)), "{}: {answer}", fault.name);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_one_server_stays_with_it() {
    for fault in FAULTS {
        let name = fault.name;
        let runtime = runtime_for(fault).await;
        let before = match fault.then {
            Then::Starts | Then::Fails => None,
            Then::GoesOn | Then::IsReplaced => Some(pid(&runtime, "fake").await),
        };
        // In flight on the other server meanwhile: answered once its twin arrives.
        let twin = "(:value (tool/call 'other/gather {:n 2}))";
        let waiting = runtime.run(twin, options(&FAULTS[0]));

        let seen = meet(&runtime, fault, before).await;
        assert!(fault.sees.contains(&seen.as_str()), "{name}: the program sees {seen}");
        assert_eq!(value(&runtime, twin).await, "\"together\"", "{name}");
        assert_eq!(waiting.await.result.unwrap().text, "\"together\"", "{name}");

        if name == HANGS {
            while state(&runtime) == UpstreamState::Ready {
                tokio::task::yield_now().await;
            }
        }
        if fault.then == Then::Fails {
            let server = &runtime.servers()[0];
            assert!(server.error.as_ref().unwrap().contains("subprocess exited (status=3)"), "{name}");
            assert!(server.state != UpstreamState::Ready, "{name}");
        } else {
            next_call_works(&runtime, fault).await;
            let after = pid(&runtime, "fake").await;
            match fault.then {
                Then::GoesOn => assert_eq!(Some(after), before, "{name}"),
                _ => assert_ne!(Some(after), before, "{name}"),
            }
        }
        if name == STORM {
            while runtime.catalog().tool("fake", "grown").is_none() {
                tokio::task::yield_now().await;
            }
            let listed = value(&runtime, "(:listed (:value (tool/call 'fake/stats)))").await;
            assert!(listed.parse::<u32>().unwrap() < 200, "20,000 notifications led to {listed} lists");
        }

        let processes = children();
        assert!(!processes.is_empty(), "{name}");
        runtime.shutdown().await;
        assert_eq!(children(), [0_u64; 0], "{name}: processes are left");
        assert!(before.is_none_or(|before| !is_alive(before)), "{name}");
    }
}
