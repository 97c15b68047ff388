//! Functions of the application as tools of programs: called in every notation, checked, charged, entered into the
//! ledger, and cancelled with their program.

use crate::common;
use common::programs::options;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallFault, CallStatus, Outcome};
use ptc_calls::{Effect, HostTool, NoArguments, ValueError};
use ptc_engine::session::SessionLimits;
use ptc_engine::{Prelude, RunEvent, Runtime, RuntimeConfig, Scope, StartError};
use ptc_runtime::schemars::JsonSchema;
use ptc_vm::Reason;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

#[derive(Deserialize, JsonSchema)]
struct Find {
    /// Words of the name.
    words: String,
    max_items: Option<u32>,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, PartialEq)]
struct Found {
    id: u32,
    name: String,
}

fn find() -> HostTool {
    HostTool::new("find-users", |Find { words, max_items }: Find| async move {
        if words == "boom" {
            return Err("no index");
        }
        let name = |id| Found { id, name: format!("{words} {id}") };
        Ok((0..max_items.unwrap_or(2)).map(name).collect::<Vec<Found>>())
    })
    .describe("Finds users by words of their name.")
    .effect(Effect::Read)
    .returns::<Vec<Found>>()
}

fn echo() -> HostTool {
    HostTool::with_schema("echo", json!({"type": "object"}), |all: Value| async { Ok::<_, Infallible>(all) })
}

async fn start(tools: Vec<HostTool>) -> Runtime {
    let builder = tools.into_iter().fold(Runtime::builder().workers(1), |builder, tool| builder.tool(tool));
    builder.start().await.expect("a runtime")
}

async fn run(runtime: &Runtime, source: &str) -> Outcome {
    runtime.run(source, options()).await
}

async fn text(runtime: &Runtime, source: &str) -> String {
    match run(runtime, source).await.result {
        Ok(answer) => answer.text,
        Err(failure) => format!("{}: {}", failure.reason.raw(), failure.message),
    }
}

#[tokio::test]
async fn arguments_are_named_or_in_the_order_of_the_schema_and_results_are_data() {
    let runtime = start(vec![find(), echo()]).await;
    let cases = [
        ("(map :id (tool/find-users {:words \"ada\"}))", "(0 1)"),
        ("(map :name (tool/find-users {\"words\" \"ada\" :max-items 1}))", "(\"ada 0\")"),
        ("(count (tool/find-users :words \"ada\" :max_items 3))", "3"),
        ("(count (tool/find-users \"ada\" 4))", "4"),
        ("(count (tool/find-users \"ada\"))", "2"),
        ("(map (fn [f] (count (f \"ada\" 1))) [tool/find-users])", "(1)"),
        ("(mapv #(count (tool/find-users % 3)) [\"a\" \"b\"])", "[3 3]"),
        ("(tool/echo)", "{}"),
        ("(tool/echo {:a-b [1 #{2}] :c nil})", "{\"a-b\" [1 [2]] \"c\" nil}"),
        (
            "(pmap (fn [n] (:n (tool/echo {:n n}))) (range 20))",
            "(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19)",
        ),
    ];
    for (program, want) in cases {
        let got = text(&runtime, program).await;
        assert_eq!(
            got.replace(['(', ')', '[', ']'], ""),
            want.replace(['(', ')', '[', ']'], ""),
            "{program}"
        );
    }
}

#[tokio::test]
async fn wrong_calls_are_told_before_anybody_is_asked() {
    let runtime = start(vec![find()]).await;
    let signature = "Signature: tool/find-users {:words string :max_items integer?}";
    let cases = [
        (
            "(tool/find-users {:words 1})",
            "invalid_tool_args: tool/find-users rejected args: :words must be string, got 1",
        ),
        (
            "(tool/find-users)",
            "invalid_tool_args: tool/find-users rejected args: missing required args words",
        ),
        (
            "(tool/find-users {:words \"a\" :max-item 1})",
            "invalid_tool_args: tool/find-users rejected args: unknown arg :max-item",
        ),
        ("(tool/find-users \"a\" 1 2)", "invalid_tool_args: tool/find-users takes 2 arguments, got 3"),
        (
            "(tool/find-users :words \"a\" :words \"b\")",
            "invalid_tool_args: tool/find-users got duplicate key :words",
        ),
        (
            "(do (tool/find-user {:words \"a\"}))",
            "unknown_tool: Unknown tool: find-user. Available tools: find-users",
        ),
    ];
    for (program, want) in cases {
        let outcome = run(&runtime, program).await;
        let Err(failure) = &outcome.result else { panic!("{program} answers") };
        assert_eq!(format!("{}: {}", failure.reason.raw(), failure.message), want);
        assert!(outcome.upstream_calls.is_empty() && failure.position().is_some(), "{program}");
        assert!(!failure.hints().is_empty(), "{program}");
        if want.contains("takes 2") {
            assert_eq!(failure.hints(), [signature]);
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_in_a_tool_ends_the_program_and_is_in_the_ledger() {
    let panics = HostTool::new("panics", |_: NoArguments| async {
        if true {
            panic!("on purpose");
        }
        Ok::<(), Infallible>(())
    });
    let slow = HostTool::new("slow", |_: NoArguments| std::future::pending::<Result<(), String>>());
    let slow = slow.timeout(Duration::from_millis(1)).effect(Effect::Write);
    let runtime = start(vec![find(), panics, slow]).await;
    let cases = [
        (
            "(do (println 1) (tool/find-users \"boom\"))",
            "Tool 'find-users' failed: \"no index\"",
            CallFault::ToolError,
            Effect::Read,
        ),
        ("(tool/panics)", "Tool 'panics' failed: \"it panicked\"", CallFault::ToolError, Effect::Unknown),
        ("(tool/slow)", "Tool 'slow' failed: \"no answer within 1 ms\"", CallFault::Timeout, Effect::Write),
    ];
    for (program, message, fault, effect) in cases {
        let outcome = run(&runtime, program).await;
        let Err(failure) = &outcome.result else { panic!("{program} answers") };
        assert_eq!((failure.reason.raw(), &*failure.message), ("tool_error", message));
        let [call] = &outcome.upstream_calls[..] else { panic!("{program}: one call") };
        assert!(matches!(&call.status, CallStatus::Error { reason, .. } if *reason == fault), "{call:?}");
        assert_eq!((&*call.server, call.effect), ("tool", effect));
    }
    assert_eq!(text(&runtime, "(tool/find-users \"ada\" 0)").await, "[]", "the runtime goes on");
}

#[tokio::test]
async fn calls_count_against_the_budget_of_calls() {
    let runtime = start(vec![echo()]).await;
    let limits = Limits { max_upstream_calls: 3, ..options().limits };
    let program = "(dotimes [n 5] (println (:n (tool/echo {:n n}))))";
    let outcome = runtime.run(program, RunOptions { limits, ..options() }).await;
    let failure = outcome.result.expect_err("the budget ends");
    assert!(failure.reason == Reason::ToolCallLimitExceeded, "{failure}");
    assert_eq!(failure.message, "tool/echo was not called: the program has used up its calls");
    assert_eq!(outcome.prints, ["0", "1", "2"]);
    assert_eq!(outcome.usage.upstream_calls, 3);
    let left = runtime
        .run("(do (tool/echo) (:upstream-calls (budget/remaining)))", RunOptions { limits, ..options() });
    assert_eq!(left.await.result.expect("an answer").text, "2");
}

#[tokio::test]
async fn dropping_the_run_drops_the_call() {
    struct Dropped(Option<oneshot::Sender<()>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().expect("once").send(());
        }
    }
    let (begun, (sender, dropped)) = (Arc::new(Notify::new()), oneshot::channel());
    let (begins, held) = (begun.clone(), std::sync::Mutex::new(Some(Dropped(Some(sender)))));
    let hangs = HostTool::new("hangs", move |_: NoArguments| {
        let (begins, held) = (begins.clone(), held.lock().unwrap().take());
        async move {
            begins.notify_one();
            std::future::pending::<()>().await;
            drop(held);
            Ok::<(), Infallible>(())
        }
    });
    let runtime = start(vec![hangs]).await;
    let run = runtime.run("(tool/hangs)", options());
    begun.notified().await;
    drop(run);
    dropped.await.expect("the function is dropped");
}

#[tokio::test]
async fn answers_and_contexts_are_types_of_the_application() {
    let runtime = start(vec![find()]).await;
    let options = RunOptions::typed().with_context(&Found { id: 7, name: "ada".into() }).expect("an object");
    let program = "(assoc (first (tool/find-users data/name)) :id data/id)";
    let outcome = runtime.run(program, options.clone()).await;
    assert_eq!(outcome.value::<Found>().expect("a Found"), Found { id: 7, name: "ada 0".into() });
    assert!(matches!(outcome.value::<u32>(), Err(ValueError::Mismatch(_))));
    let failed = runtime.run("(fail \"no\")", options.clone()).await.value::<u32>().expect_err("it failed");
    assert!(failed.to_string().contains("no"), "{failed}");
    assert!(matches!(run(&runtime, "1").await.value::<u32>(), Err(ValueError::NotAsked)));
    assert!(matches!(runtime.run("inc", options).await.value::<Value>(), Err(ValueError::NoJson(_))));
    assert!(RunOptions::typed().with_context(&[1]).is_err());
}

#[tokio::test]
async fn a_stream_tells_of_lines_and_calls_while_the_program_runs() {
    let go = Arc::new(Notify::new());
    let waits = go.clone();
    let wait = HostTool::new("wait", move |_: NoArguments| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Ok::<(), Infallible>(())
        }
    });
    let runtime = start(vec![wait, echo()]).await;
    let program =
        "(do (println \"one\") (tool/echo {:n 1}) (println \"two\") (tool/wait) (println \"three\") 4)";
    let mut events = runtime.stream(program, options());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            RunEvent::Printed(line) => {
                // The function waits for a signal that comes only after this line was seen.
                if line == "two" {
                    go.notify_one();
                }
                seen.push(line);
            }
            RunEvent::Called(call) => seen.push(format!("call {}", call.tool)),
            RunEvent::Ended(outcome) => {
                assert_eq!(outcome.prints, ["one", "two", "three"]);
                seen.push(outcome.result.expect("an answer").text);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["one", "call echo", "two", "call wait", "three", "4"]);
}

#[tokio::test]
async fn programs_find_the_tools_of_their_host() {
    let runtime = start(vec![find(), echo()]).await;
    let doc = text(&runtime, "(doc 'tool/find-users)").await;
    for part in
        ["Finds users by words of their name.", "(tool/find-users {:words string :max_items integer?})"]
    {
        assert!(doc.contains(part), "{doc}");
    }
    let found = text(&runtime, "(apropos \"users\")").await;
    assert!(found.contains("tool: tool/find-users - Finds users by words of their name."), "{found}");
    let members = text(&runtime, "(dir 'tool)").await;
    for name in ["find-users - ", "echo", "call - "] {
        assert!(members.contains(name), "{members}");
    }
}

#[tokio::test]
async fn a_scope_has_tools_of_its_own_also_for_sessions() {
    let runtime = start(vec![echo()]).await;
    let counted = Arc::new(AtomicUsize::new(0));
    let counts = counted.clone();
    let count = HostTool::new("count", move |_: NoArguments| {
        let count = counts.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(count) }
    });
    let scope = runtime.base().with(vec![count], &[]).expect("a scope");
    assert_eq!(scope.run("(tool/count)", options()).await.result.expect("an answer").text, "0");
    let failure = scope.run("(tool/echo)", options()).await.result.expect_err("not in here");
    assert_eq!(failure.message, "Unknown tool: echo. Available tools: count");
    let session = scope.session(SessionLimits::default());
    for (program, want) in [("(def n (tool/count)) n", "1"), ("(+ n (tool/count))", "3")] {
        let run = session.run(program, options(), None).expect("nothing else runs");
        assert_eq!(run.await.result.expect("an answer").text, want);
    }
    assert_eq!(
        text(&runtime, "(tool/count)").await,
        "unknown_tool: Unknown tool: count. Available tools: echo"
    );
}

#[tokio::test]
async fn a_thousand_calls_are_in_flight_at_once_and_go_with_their_program() {
    let together = Arc::new(tokio::sync::Barrier::new(1_000));
    let meet = HostTool::new("meet", move |_: NoArguments| {
        let together = together.clone();
        async move {
            together.wait().await;
            Ok::<_, Infallible>(1)
        }
    });
    let (alive, waiting) = (Arc::new(()), Arc::new(Notify::new()));
    let (held, begun) = (alive.clone(), waiting.clone());
    let hang = HostTool::new("hang", move |_: NoArguments| {
        let held = held.clone();
        begun.notify_one();
        async move {
            let _held = held;
            std::future::pending::<Result<(), Infallible>>().await
        }
    });
    let runtime = start(vec![meet.effect(Effect::Read), hang]).await;
    let limits = Limits { max_upstream_calls: 1_000, parallel_width: 1_000, ..Limits::with_upstreams() };
    let options = RunOptions { limits, ..options() };
    let outcome = runtime.run("(reduce + (pmap (fn [_] (tool/meet)) (range 1000)))", options.clone()).await;
    assert_eq!(outcome.result.expect("an answer").text, "1000");
    assert_eq!(outcome.upstream_calls.len(), 1_000);
    let run = runtime.run("(doall (pmap (fn [_] (tool/hang)) (range 1000)))", options);
    waiting.notified().await;
    drop(run);
    // One reference is the function's, the other the test's.
    while Arc::strong_count(&alive) > 2 {
        tokio::task::yield_now().await;
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_namespace_keeps_the_tools_that_it_needs_in_places_with_other_tools() {
    let users = Prelude::compile("users", "(ns users)\n(defn named [word] (tool/find-users word))");
    let builder = Runtime::builder().workers(1).prelude(Arc::new(users.expect("it compiles")));
    let runtime = builder.tool(find()).start().await.expect("a runtime");
    let scope = runtime.base().with(vec![echo()], &[]).expect("a scope");
    let run = async |scope: &Scope, program| match scope.run(program, options()).await.result {
        Ok(answer) => answer.text,
        Err(failure) => failure.message,
    };
    assert_eq!(run(&scope, "(count (users/named \"ada\"))").await, "2");
    assert_eq!(run(&scope, "(tool/echo {:n 1})").await, "{\"n\" 1}");
    let told = run(&scope, "(tool/find-users \"ada\")").await;
    assert_eq!(told, "Private tool 'find-users' cannot be called directly", "only the namespace has it");
    let deeper = scope.with(Vec::new(), &[]).expect("a scope");
    assert_eq!(run(&deeper, "(count (users/named \"ada\"))").await, "2");
    // A second function of that name would replace the first in its namespace.
    let other = HostTool::new("find-users", |_: Find| async { Ok::<_, Infallible>(0) });
    let told = runtime.base().with(vec![other], &[]).err().map(|error| error.to_string());
    assert_eq!(told.as_deref(), Some("tool \"find-users\" has the name of one that a namespace needs"));
}

#[tokio::test]
async fn the_same_tool_may_be_given_to_a_place_whose_namespaces_need_it() {
    let (users, find) = (
        Prelude::compile("users", "(ns users)\n(defn named [word] (tool/find-users word))")
            .expect("it compiles"),
        find(),
    );
    let builder = Runtime::builder().workers(1).prelude(Arc::new(users)).tool(find.clone());
    let runtime = builder.start().await.expect("a runtime");
    let scope = runtime.base().with(vec![find], &[]).expect("a scope");
    let program = "[(count (users/named \"ada\")) (count (tool/find-users \"ada\"))]";
    assert_eq!(scope.run(program, options()).await.result.expect("an answer").text, "[2 2]");
}

#[tokio::test]
async fn where_programs_only_read_tools_that_may_change_something_do_not_exist() {
    let write = HostTool::new("pay", |_: NoArguments| async { Ok::<_, Infallible>(1) }).effect(Effect::Write);
    let config = RuntimeConfig {
        read_only: true,
        workers: 1,
        tools: vec![find(), echo(), write.clone()],
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(config).await.expect("a runtime");
    for program in ["(tool/pay)", "(tool/echo {})"] {
        let told = text(&runtime, program).await;
        assert!(told.starts_with("unknown_tool: Unknown tool: "), "{told}");
        assert!(told.ends_with("Available tools: find-users"), "{told}");
    }
    let scope = runtime.base().with(vec![write], &[]).expect("a scope");
    let failure = scope.run("(tool/pay)", options()).await.result.expect_err("it only reads");
    assert_eq!(failure.message, "Unknown tool: pay. No tools available.");
}

#[tokio::test]
async fn names_that_programs_cannot_write_are_refused() {
    let named =
        |name: &str| HostTool::with_schema(name, json!({}), |_: Value| async { Ok::<_, Infallible>(1) });
    for name in ["", "a b", "a/b", "1a", "call", "servers"] {
        let started = Runtime::builder().tool(named(name)).start().await;
        assert!(matches!(started, Err(StartError::Tool(_))), "{name}");
    }
    let twice = Runtime::builder().tool(named("a")).tool(named("a")).start().await;
    assert_eq!(twice.err().map(|error| error.to_string()).as_deref(), Some("tool \"a\" is given twice"));
}

#[tokio::test]
async fn a_tool_without_arguments_is_described_by_nothing_else() {
    let plain = HostTool::new("now", |_: NoArguments| async { Ok::<_, Infallible>(7) });
    assert_eq!(plain.listing().description, None);
    let runtime = start(vec![plain]).await;
    assert_eq!(text(&runtime, "(tool/now)").await, "7");
    let wrong = text(&runtime, "(tool/now {:zone 1})").await;
    assert!(wrong.starts_with("invalid_tool_args: tool/now rejected args: unknown arg :zone"), "{wrong}");
}

#[tokio::test]
async fn errors_of_the_library_say_what_to_do() {
    let Err(error) = Prelude::compile("crm.clj", "(ns crm)\n(defn f [x] (+ x 1)") else {
        panic!("it compiles")
    };
    let error: Box<dyn std::error::Error> = error.into();
    let want = "crm.clj: parse_error: prelude parse error: unbalanced parentheses: 1 unclosed '('\nat 2:1: (";
    assert!(error.to_string().starts_with(want), "{error}");
    let runtime = start(Vec::new()).await;
    let error = runtime.run("1", RunOptions::default()).await.value::<u8>().expect_err("no JSON");
    assert_eq!(error.to_string(), "the run was not asked for JSON: RunOptions::typed() asks for it");
    let session = runtime.session(SessionLimits::default());
    let turn = session.acquire().expect("nobody else has it");
    let busy = session.run("1", options(), None).err().expect("one at a time");
    assert_eq!(busy.to_string(), "another program of this session is under way");
    drop(turn);
}
