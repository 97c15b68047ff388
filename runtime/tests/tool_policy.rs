//! Policies that restrict which tools exist for programs, and how often they may call them.

use crate::common;
use common::entry;
use common::programs::{failure, run, runtime_of, value};
use ptc_calls::outcome::{CallFault, CallStatus};
use ptc_calls::policy::{NameRule, PinLock, PinMode, Pins, ToolPattern, ToolPolicy};
use ptc_calls::tools::{Catalog, SnapshotMode};
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::CallLimits;
use ptc_upstream::config::ServerEntry;
use std::sync::Arc;

fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
    texts.iter().map(|text| ToolPattern::new(*text)).collect()
}

fn limited(limits: CallLimits) -> Vec<ServerEntry> {
    let mut fake = entry("fake", &[]);
    fake.limits = limits;
    vec![fake, entry("other", &[])]
}

#[tokio::test]
async fn a_refused_tool_exists_for_nobody() {
    let mut allowed = entry("allowed", &[]);
    allowed.tools = ToolPolicy::default().with_rule(NameRule::Allow(patterns(&["a*", "allowed/echo"])));
    let mut blocked = entry("blocked", &[]);
    blocked.tools = ToolPolicy::default().with_rule(NameRule::Block(patterns(&["mcp__blocked__e*"])));
    let runtime = runtime_of(vec![allowed, blocked], StartPolicy::All, 1).await;
    let catalog = runtime.catalog();
    let names: Vec<&str> =
        catalog.server("allowed").unwrap().tools.as_ref().unwrap().iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["add", "ask", "echo"]);
    assert!(catalog.tool("blocked", "echo").is_none() && catalog.tool("blocked", "add").is_some());
    assert_eq!(
        value(&runtime, "(map :tool_count (tool/servers))").await,
        format!("[3 {}]", { catalog.server("blocked").unwrap().tools.as_ref().unwrap().len() })
    );
    // The name is computed, so that no check before the run can see it.
    let failed = failure(&runtime, "(tool/call {:server \"allowed\" :tool (str \"cra\" \"sh\")})").await;
    assert_eq!(
        failed.message,
        "no tool 'crash' in upstream 'allowed': it is not among the tools.allow of the configuration"
    );
    let failed = failure(&runtime, "(tool/call {:server \"blocked\" :tool (str \"ec\" \"ho\")})").await;
    assert_eq!(
        failed.message,
        "no tool 'echo' in upstream 'blocked': tools.block of the configuration names it"
    );
}

#[tokio::test]
async fn read_only_operation_refuses_what_is_not_annotated() {
    let servers = vec![entry("fake", &[])];
    let config = RuntimeConfig { servers, read_only: true, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    assert_eq!(value(&runtime, "(:ok (tool/call 'fake/add {:a 1 :b 2}))").await, "true");
    let failed = failure(&runtime, "(tool/call {:server \"fake\" :tool (str \"ec\" \"ho\")})").await;
    assert!(failed.message.contains("only read-only tools may be called"), "{}", failed.message);
}

#[tokio::test]
async fn a_server_limits_the_calls_of_each_program() {
    let limits = CallLimits { max_calls_per_program: Some(2), ..CallLimits::default() };
    let runtime = runtime_of(limited(limits), StartPolicy::All, 1).await;
    let program = "[(map (fn [n] (:reason (tool/call 'fake/echo {:n n}) :fine)) (range 3))
                    (:message (tool/call 'fake/echo)) (:ok (tool/call 'other/echo))]";
    for _ in 0..2 {
        let want = "[[:fine :fine :cap_exhausted] \
                    \"cap_exhausted: upstream fake allows 2 calls a program (max_calls_per_program)\" true]";
        assert_eq!(value(&runtime, program).await, want);
    }
    let outcome = run(&runtime, program).await;
    assert_eq!(outcome.usage.upstream_calls, 3);
    let failed = failure(&runtime, "(dotimes [n 3] (tool/call! 'fake/echo {:n n}))").await;
    assert_eq!(
        failed.message,
        "fake/echo: :cap_exhausted, upstream fake allows 2 calls a program (max_calls_per_program)"
    );
}

#[tokio::test]
async fn a_server_limits_the_calls_in_flight() {
    let limits = CallLimits { max_concurrent: Some(3), ..CallLimits::default() };
    let runtime = runtime_of(limited(limits), StartPolicy::All, 1).await;
    let program = "(count (filter :ok (pmap (fn [_] (tool/call 'fake/delay {:ms 1})) (range 40))))";
    assert_eq!(value(&runtime, program).await, "40");
    let most = value(&runtime, "(:most_in_flight (:value (tool/call 'fake/stats)))").await;
    assert!((1..=3).contains(&most.parse::<u32>().unwrap()), "{most}");
}

#[tokio::test]
async fn a_server_has_its_own_timeout_and_response_cap() {
    let timeout = Some(std::time::Duration::from_millis(40));
    let mut servers = limited(CallLimits { timeout, ..CallLimits::default() });
    servers[1].limits = CallLimits { max_response_bytes: Some(500), ..CallLimits::default() };
    let runtime = runtime_of(servers, StartPolicy::All, 1).await;
    let outcome = run(&runtime, "(tool/call 'fake/hang) (tool/call 'other/big {:bytes 1000}) nil").await;
    let reasons: Vec<CallFault> = outcome
        .upstream_calls
        .iter()
        .map(|call| match call.status {
            CallStatus::Error { reason, .. } => reason,
            CallStatus::Ok => panic!("{call:?}"),
        })
        .collect();
    assert_eq!(reasons, [CallFault::Timeout, CallFault::ResponseTooLarge]);
    let message = value(&runtime, "(:message (tool/call 'other/big {:bytes 1000}))").await;
    assert!(message.contains("exceeds max_response_bytes of the server (500); "), "{message}");
    assert!(message.ends_with("or raise max_response_bytes of the server\""), "{message}");
}

#[tokio::test]
async fn a_tool_that_a_server_adds_while_it_runs_is_not_the_pinned_one() {
    let plain = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let mut lock = PinLock::default();
    lock.accept("fake", &plain.catalog().server("fake").unwrap().tools.as_ref().unwrap().listed());
    let pins = Some(Arc::new(Pins::new(PinMode::Enforce, lock)));
    let (servers, snapshot) = (vec![entry("fake", &[])], Some(SnapshotMode::Live));
    let config = RuntimeConfig { servers, pins, snapshot, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    let mut changes = runtime.catalog_changes();
    assert_eq!(value(&runtime, "(:ok (tool/call 'fake/add {:a 1 :b 2}))").await, "true");
    assert_eq!(value(&runtime, "(:ok (tool/call 'fake/grow {}))").await, "true");
    let is_refused = |catalog: &Arc<Catalog>| {
        let tools = catalog.server("fake").and_then(|server| server.tools.clone());
        tools.is_some_and(|tools| tools.refused().any(|name| name == "grown"))
    };
    changes.wait_for(is_refused).await.unwrap();
    assert_eq!(value(&runtime, "(:reason (tool/call 'fake/grown {}))").await, ":tool_changed");
    assert_eq!(value(&runtime, "(:ok (tool/call 'fake/add {:a 1 :b 2}))").await, "true");
}
