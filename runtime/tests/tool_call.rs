//! The form `tool/call`, over real child processes.

use crate::common;
use common::programs::{failure, options, run, runtime, runtime_of, value};
use common::{entry, fake_server};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::limits::Limits;
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallFault, CallStatus, Effect, Media, MediaKind};
use ptc_engine::{Runtime, RuntimeConfig, StartError, StartPolicy, StartProgress};
use ptc_upstream::UpstreamState;
use ptc_upstream::config::{ServerEntry, Startup};
use ptc_vm::Reason;
use std::sync::{Arc, Mutex};

const ADD: &str = "(tool/call {:server \"fake\" :tool \"add\" :args {:a 1 :b 2}})";

#[tokio::test]
async fn every_form_gives_the_documented_result() {
    let runtime = runtime().await;
    let ok = "{:ok true :value {\"sum\" 3} :value_kind :json}";
    assert_eq!(value(&runtime, ADD).await, ok);
    assert_eq!(value(&runtime, "(tool/call 'fake/add {:a 1 :b 2})").await, ok);
    assert_eq!(
        value(&runtime, "(tool/call {\"server\" \"fake\" \"tool\" \"add\" \"args\" {\"a\" 1 :b 2}})").await,
        ok
    );
    let mapped = "(map tool/call [{:server \"fake\" :tool \"number\"} {:server \"fake\" :tool \"image\"}])";
    let want = "[{:ok true :value 42 :value_kind :json} \
                {:content [{\"data\" \"AAAA\" \"mimeType\" \"image/png\" \"type\" \"image\"}] \
                :ok true :value nil :value_kind :none}]";
    assert_eq!(value(&runtime, mapped).await, want);
    assert_eq!(value(&runtime, &mapped.replace("(map", "(pmap")).await, want);
    let text = "(tool/call 'fake/noise)";
    assert_eq!(value(&runtime, text).await, "{:ok true :value \"after noise\" :value_kind :text}");
}

#[tokio::test]
async fn what_the_value_does_not_say_is_in_the_content() {
    let runtime = runtime().await;
    let program =
        "(let [r (tool/call 'fake/mixed)] [(:value r) (map :type (:content r)) (:uri (last (:content r)))])";
    let want = "[\"see the picture\" [\"text\" \"image\" \"resource_link\"] \"file:///notes.md\"]";
    assert_eq!(value(&runtime, program).await, want);
}

#[tokio::test]
async fn world_faults_are_values_and_are_recorded() {
    let runtime = runtime().await;
    let program = "[(:reason (tool/call 'fake/fail)) (:reason (tool/call 'fake/rpc-error))
                    (:reason (tool/call 'fake/big {:bytes 3000000})) (:reason (tool/call 'fake/exit {:code 4}))]";
    let outcome = run(&runtime, program).await;
    let want = "[:tool_error :upstream_error :response_too_large :upstream_unavailable]";
    assert_eq!(outcome.result.as_ref().unwrap().text, want);
    let reasons: Vec<CallFault> = outcome
        .upstream_calls
        .iter()
        .map(|record| match &record.status {
            CallStatus::Error { reason, .. } => *reason,
            CallStatus::Ok => panic!("{record:?}"),
        })
        .collect();
    use CallFault::{ResponseTooLarge, ToolError, UpstreamError, UpstreamUnavailable};
    assert_eq!(reasons, [ToolError, UpstreamError, ResponseTooLarge, UpstreamUnavailable]);
    assert!(outcome.upstream_calls[2].result_bytes.unwrap() > 3_000_000);
    let metrics = PtcMetrics::from_outcome(&outcome, 10);
    assert_eq!((metrics.upstream_error_count, metrics.upstream_oversize_count), (3, 1));
    assert_eq!(metrics.payload_reduction_ratio, None);
}

#[tokio::test]
async fn a_slow_call_is_a_timeout_fault() {
    let runtime = runtime().await;
    let limits = Limits { upstream_call_timeout_ms: 50, timeout_ms: 60_000, ..Limits::with_upstreams() };
    let program = "(select-keys (tool/call 'fake/hang) [:ok :reason :message])";
    let outcome = runtime.run(program, RunOptions { limits, ..RunOptions::default() }).await;
    assert_eq!(
        outcome.result.unwrap().text,
        "{:message \"no answer within 50 ms (--upstream-call-timeout)\" :ok false :reason :timeout}"
    );
}

#[tokio::test]
async fn programmer_faults_end_the_program() {
    let runtime = runtime().await;
    let unknown = failure(&runtime, "(def s \"fke\") (tool/call {:server s :tool \"add\"})").await;
    assert_eq!(unknown.reason, Reason::RuntimeError);
    assert_eq!(unknown.message, "no upstream 'fke' configured. Configured upstreams: fake");
    let tool = failure(&runtime, "(def t \"ad\") (tool/call {:server \"fake\" :tool t})").await;
    assert!(tool.message.starts_with("no tool 'ad' in upstream 'fake'"), "{}", tool.message);
    let missing = failure(&runtime, "(tool/call {:server \"fake\" :tool \"add\" :args {:a 1}})").await;
    assert_eq!(missing.message, "tool 'fake.add' rejected args: missing required args b");
    let closure =
        failure(&runtime, "(tool/call {:server \"fake\" :tool \"echo\" :args {:f (fn [] 1)}})").await;
    assert!(
        closure.message.starts_with("tool 'fake.echo' rejected args: not JSON-encodable"),
        "{}",
        closure.message
    );
}

#[tokio::test]
async fn without_upstreams_a_call_says_so() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let failed = failure(&runtime, ADD).await;
    assert!(failed.message.contains("no upstream 'fake' configured"), "{}", failed.message);
    assert!(failed.hints()[0].contains("~/.config/ptc/upstreams.json"), "{:?}", failed.hints());
}

#[tokio::test]
async fn pmap_calls_overlap_on_one_connection() {
    let runtime = runtime().await;
    let program = "(count (filter :ok (pmap (fn [_] (tool/call 'fake/gather {:n 40})) (range 40))))";
    assert_eq!(value(&runtime, program).await, "40");
    let most = value(&runtime, "(:most_in_flight (:value (tool/call 'fake/stats)))").await;
    assert!(most.parse::<u32>().unwrap() >= 40, "{most}");
}

#[tokio::test]
async fn the_call_budget_is_exact_under_pmap() {
    let runtime = runtime().await;
    let program = "(frequencies (pmap (fn [n] (:reason (tool/call 'fake/echo {:n n}) :fine)) (range 80)))";
    let outcome = run(&runtime, program).await;
    assert_eq!(outcome.result.unwrap().text, "{:cap_exhausted 30 :fine 50}");
    assert_eq!((outcome.usage.upstream_calls, outcome.upstream_calls.len()), (50, 80));
}

#[tokio::test]
async fn images_that_a_program_returns_are_part_of_its_answer() {
    let runtime = runtime().await;
    let asked = |room| RunOptions { media_bytes: room, ..options() };
    let png = |data: &str| Media { kind: MediaKind::Image, data: data.into(), mime_type: "image/png".into() };
    let own = "{:type :audio :data \"UklGRg==\" :mimeType \"audio/wav\"}";
    let wav = Media { kind: MediaKind::Audio, data: "UklGRg==".into(), mime_type: "audio/wav".into() };
    for (program, want) in [
        ("(tool/call 'fake/image)".to_owned(), vec![png("AAAA")]),
        ("(first (:content (tool/call 'fake/image)))".to_owned(), vec![png("AAAA")]),
        (
            format!("[{own} {{:a (second (:content (tool/call 'fake/mixed)))}}]"),
            vec![wav.clone(), png("AAAA")],
        ),
        (own.to_owned(), vec![wav]),
        ("(:value (tool/call 'fake/mixed))".to_owned(), vec![]),
        ("{:type \"image\" :data \"no base64!\" :mimeType \"image/png\"}".to_owned(), vec![]),
    ] {
        // Again, now that the result is known to be small.
        for _ in 0..3 {
            let answer = runtime.run(program.clone(), asked(1_000)).await.result.unwrap();
            assert_eq!(answer.media, want, "{program}");
        }
        assert!(runtime.run(program, options()).await.result.unwrap().media.is_empty());
    }
    let outcome = runtime.run("(:content (tool/call 'fake/image))", asked(3)).await;
    assert!(outcome.result.unwrap().media.is_empty());
    assert!(outcome.notes[0].starts_with("image/png of 4 bytes is left out"), "{:?}", outcome.notes);
}

#[tokio::test]
async fn failures_that_a_program_filters_away_are_noted() {
    let runtime = runtime().await;
    let notes = async |program: &str| run(&runtime, program).await.notes;
    let filtered =
        notes("(count (filter :ok (pmap (fn [n] (tool/call 'fake/echo {:n n})) (range 60))))").await;
    let want = "10 of 60 tool calls gave :ok false, and the answer does not say why: \
                10 cap_exhausted (fake/echo; a program may make 50 calls)";
    assert_eq!(filtered, [want]);
    let both = notes("(or (:value (tool/call 'fake/fail)) (:value (tool/call 'fake/rpc-error)) :none)").await;
    let want = "2 of 2 tool calls gave :ok false, and the answer does not say why: \
                1 tool_error (fake/fail), 1 upstream_error (fake/rpc-error)";
    assert_eq!(both, [want]);
    // No hint is needed if the answer shows the result, its message or its reason.
    for shown in [
        "(tool/call 'fake/fail)",
        "(fail (:message (tool/call 'fake/fail)))",
        "(:reason (tool/call 'fake/fail))",
    ] {
        assert_eq!(notes(shown).await, [""; 0], "{shown}");
    }
}

#[tokio::test]
async fn a_call_inside_callbacks_inside_a_branch_suspends() {
    let runtime = runtime().await;
    let program =
        "(pmap (fn [xs] (map (fn [x] (sort-by (fn [y] (- (:value (tool/call 'fake/echo y)) )) x)) xs))
                   [])";
    assert_eq!(value(&runtime, program).await, "[]");
    let program = "(pmap (fn [rows] (map (fn [row] (sort-by (fn [n] (:n (:value (tool/call 'fake/echo {:n (- n)})))) row)) rows))
                         [[[1 2 3] [5 4]] [[7 9 8]]])";
    assert_eq!(value(&runtime, program).await, "[[[3 2 1] [5 4]] [[9 8 7]]]");
}

#[tokio::test]
async fn a_failing_branch_cancels_its_siblings_calls() {
    let runtime = runtime().await;
    let program = "(pmap (fn [n] (if (= n 2) (/ 1 (:n (:value (tool/call 'fake/echo {:n 0})))) (tool/call 'fake/hang))) [0 1 2])";
    let outcome = run(&runtime, program).await;
    let failed = outcome.result.unwrap_err();
    assert_eq!(failed.reason, Reason::PmapError, "{}", failed.compact());
    let cancelled =
        |status: &CallStatus| matches!(status, CallStatus::Error { reason: CallFault::Cancelled, .. });
    assert_eq!(outcome.upstream_calls.iter().filter(|call| cancelled(&call.status)).count(), 2);
}

#[tokio::test]
async fn records_have_bytes_and_effects() {
    let runtime = runtime().await;
    let outcome = run(&runtime, &format!("{ADD} (tool/call 'fake/number)")).await;
    let [add, number] = outcome.upstream_calls.as_slice() else { panic!() };
    assert_eq!((&*add.server, &*add.tool, add.effect), ("fake", "add", Effect::Read));
    assert_eq!(add.result_bytes, Some("{\"sum\":3}".len() as u64));
    assert_eq!((number.result_bytes, number.effect), (Some(2), Effect::Unknown));
    assert_eq!(PtcMetrics::from_outcome(&outcome, 1).upstream_result_bytes, 11);
}

#[tokio::test]
async fn hundreds_of_programs_wait_on_one_worker() {
    let runtime = runtime().await;
    let program = "(:value (tool/call 'fake/gather {:n 300}))";
    let runs: Vec<_> = (0..300).map(|_| runtime.run(program, options())).collect();
    for run in runs {
        assert_eq!(run.await.result.unwrap().text, "\"together\"");
    }
}

#[tokio::test]
async fn a_server_that_was_not_started_starts_with_its_first_call() {
    let servers = || vec![entry("fake", &[]), entry("other", &["--die-at-start"])];
    let runtime = runtime_of(servers(), StartPolicy::Lazy, 1).await;
    assert!(runtime.servers().iter().all(|server| server.state == UpstreamState::Idle));
    assert_eq!(value(&runtime, "(:sum (:value (tool/call 'fake/add {:a 1 :b 2})))").await, "3");
    let failed = failure(&runtime, "(tool/call 'fake/add {:a 1})").await;
    assert!(failed.message.contains("missing required args b"));
    let died = value(&runtime, "(let [r (tool/call 'other/x)] [(:ok r) (:reason r)])").await;
    assert_eq!(died, "[false :upstream_unavailable]");
    let states: Vec<_> = runtime.servers().iter().map(|server| server.state).collect();
    assert_eq!(states, [UpstreamState::Ready, UpstreamState::Failed]);
    // An error of the program that only the tool list reveals is found after the start.
    let lazy = runtime_of(servers(), StartPolicy::Lazy, 1).await;
    let failed = failure(&lazy, "(tool/call 'fake/add {:a 1})").await;
    assert!(failed.message.contains("missing required args b"), "{}", failed.message);
}

#[tokio::test]
async fn start_up_is_strict_or_lenient() {
    let servers = || vec![entry("fake", &[]), entry("dying", &["--die-at-start"])];
    let config =
        |startup| RuntimeConfig { servers: servers(), startup, workers: 1, ..RuntimeConfig::default() };
    let Err(StartError::Upstreams(failed)) = Runtime::start(config(None)).await else { panic!("it started") };
    assert_eq!(failed.len(), 1);
    assert!(failed[0].0 == "dying" && failed[0].1.contains("status=3"), "{failed:?}");

    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let seen = seen.clone();
        Arc::new(move |event: ptc_engine::StartEvent| {
            let what = match event.progress {
                StartProgress::Starting => "starting",
                StartProgress::Ready { .. } => "ready",
                StartProgress::Failed { .. } => "failed",
            };
            seen.lock().unwrap().push(format!("{} {what}", event.server));
        })
    };
    let lenient = RuntimeConfig { observer: Some(observer), ..config(Some(Startup::Lenient)) };
    let runtime = Runtime::start(lenient).await.unwrap();
    runtime.settle().await;
    assert_eq!(value(&runtime, "(:sum (:value (tool/call 'fake/add {:a 1 :b 2})))").await, "3");
    let dying = runtime.servers().into_iter().find(|server| &*server.name == "dying").unwrap();
    assert_eq!(dying.state, UpstreamState::Failed);
    assert!(dying.error.unwrap().contains("subprocess exited (status=3)"));
    let seen = seen.lock().unwrap().clone();
    for event in ["fake starting", "fake ready", "dying starting", "dying failed"] {
        assert!(seen.iter().any(|got| got == event), "{event} not in {seen:?}");
    }
}

#[tokio::test]
async fn this_very_program_is_refused_as_an_upstream() {
    let own = std::env::current_exe().unwrap().display().to_string();
    let servers = vec![ServerEntry::stdio("me", own, vec![])];
    let started = Runtime::start(RuntimeConfig { servers, ..RuntimeConfig::default() }).await;
    assert!(matches!(started, Err(StartError::SelfAsUpstream { server }) if server == "me"));
}

#[tokio::test]
async fn tool_servers_lists_what_is_configured() {
    let runtime = runtime_of(vec![entry("b", &[]), entry("a", &[])], StartPolicy::Lazy, 1).await;
    let listed =
        value(&runtime, "(map (fn [s] [(:name s) (:tool_count s) (:catalog_loaded s)]) (tool/servers))")
            .await;
    assert_eq!(listed, "[[\"a\" 0 false] [\"b\" 0 false]]");
}

#[tokio::test]
async fn secrets_never_leave() {
    let secrets = SecretRegistry::new();
    secrets.register("sesame-open");
    let servers = vec![entry("fake", &[])];
    let config = RuntimeConfig { servers, secrets, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    let outcome =
        run(&runtime, "(println \"p sesame-open\") (:value (tool/call 'fake/echo {:s \"sesame-open\"}))")
            .await;
    assert_eq!(outcome.prints, ["p [REDACTED]"]);
    assert_eq!(outcome.result.unwrap().text, "{\"s\" \"[REDACTED]\"}");
    let failed = failure(&runtime, "(fail \"sesame-open\")").await;
    assert!(!format!("{failed:?}").contains("sesame"), "{failed:?}");
}

#[tokio::test]
async fn shutdown_leaves_no_process() {
    let runtime = runtime().await;
    let pid = value(&runtime, "(:pid (:value (tool/call 'fake/stats)))").await.parse().unwrap();
    assert!(common::is_alive(pid));
    runtime.shutdown().await;
    assert!(!common::is_alive(pid));
    assert!(fake_server().exists());
}

#[tokio::test]
async fn literal_and_computed_calls_are_refused_with_the_same_texts() {
    let runtime = runtime().await;
    let rows = [
        ("\"\"", "\"x\"", "{}", "tool/call requires :server (string), got \"\". Configured upstreams: fake"),
        ("\"fake\"", "\"\"", "{}", "tool/call on upstream 'fake' requires :tool (string), got \"\""),
        ("\"fake\"", "\"add\"", "[1]", "tool 'fake.add' rejected args: :args must be a map, got [1]"),
        ("\"fake\"", "\"add\"", "1.0", "tool 'fake.add' rejected args: :args must be a map, got 1.0"),
        ("\"fake\"", "\"add\"", "\"x\"", "tool 'fake.add' rejected args: :args must be a map, got \"x\""),
        ("\"nope\"", "\"x\"", "{}", "no upstream 'nope' configured. Configured upstreams: fake"),
        ("\"fake\"", "\"nope\"", "{}", "no tool 'nope' in upstream 'fake'."),
    ];
    for (server, tool, args, text) in rows {
        let literal = format!("(tool/call {{:server {server} :tool {tool} :args {args}}})");
        let computed =
            format!("(let [s {server} t {tool} a {args}] (tool/call {{:server s :tool t :args a}}))");
        let [literal, computed] = [failure(&runtime, &literal).await, failure(&runtime, &computed).await];
        assert!(literal.message.starts_with(text), "{}", literal.message);
        assert_eq!(literal.message, computed.message);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_world_while_its_server_is_gone() {
    let runtime = runtime().await;
    assert_eq!(value(&runtime, "(:reason (tool/call 'fake/exit {:code 4}))").await, ":upstream_unavailable");
    for program in [
        "(:reason (tool/call {:server \"fake\" :tool \"nope\"}))",
        "(let [t \"nope\"] (:reason (tool/call {:server \"fake\" :tool t})))",
    ] {
        assert_eq!(value(&runtime, program).await, ":upstream_unavailable", "{program}");
    }
}
