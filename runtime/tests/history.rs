//! The namespace `log/`: programs query the records of earlier runs.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use ptc_calls::limits::Limits;
use ptc_calls::{Effect, HostTool, NoArguments, RunOptions};
use ptc_engine::history::{TurnHistory, introspection};
use ptc_engine::{Runtime, RuntimeConfig, Scope};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;

fn options() -> RunOptions {
    RunOptions { limits: Limits::with_upstreams(), ..RunOptions::typed() }
}

async fn runtime() -> Runtime {
    let look = HostTool::new("look", |_: NoArguments| async { Ok::<_, Infallible>(7) });
    // Programs that may only read can query the log as well.
    let config = RuntimeConfig {
        workers: 1,
        read_only: true,
        tools: vec![look.effect(Effect::Read)],
        ..RuntimeConfig::default()
    };
    Runtime::start(config).await.expect("a runtime")
}

/// Three programs, of which the second fails, and one of another session that calls a tool twice.
async fn recorded(runtime: &Runtime) -> Arc<TurnHistory> {
    runtime.broker().hash_arguments();
    let history = Arc::new(TurnHistory::new());
    for (id, program) in [
        ("one", "(def x 1)"),
        ("one", "(no-such-fn 1)"),
        ("two", "(println :hi) [(tool/look) (tool/look)]"),
        ("one", "(+ 1 1)"),
    ] {
        history.add_run(id, program, &runtime.run(program, options()).await);
    }
    history
}

fn place(runtime: &Runtime, history: &Arc<TurnHistory>) -> Scope {
    let (tools, log) = introspection(history);
    runtime.base().with(tools, &[log]).expect("a place")
}

async fn value(place: &Scope, program: &str) -> Value {
    let outcome = place.run(program, options()).await;
    outcome.value().unwrap_or_else(|error| panic!("{program}: {error}"))
}

#[tokio::test]
async fn programs_find_out_what_was_done_and_where_turns_were_wasted() {
    let runtime = runtime().await;
    let place = place(&runtime, &recorded(&runtime).await);
    let summary = |id: &str, turns: u64, committed: u64| {
        json!({"correlation_id": id, "driver": "session", "turns": turns, "committed": committed,
            "failed": turns - committed})
    };
    let rows = [
        ("(log/sessions-all)", json!([summary("one", 3, 2), summary("two", 1, 1)])),
        ("(:items (log/programs \"one\"))", json!(["(def x 1)", "(no-such-fn 1)", "(+ 1 1)"])),
        ("(map :program (remove :committed (log/turns-all \"one\")))", json!(["(no-such-fn 1)"])),
        (
            "(map (fn [t] [(:turn t) (:attempt t) (:status t)]) (log/turns-all \"one\"))",
            json!([[1, 1, "ok"], [1, 2, "error"], [2, 3, "ok"]]),
        ),
        ("(map (comp :reason :fail) (log/turns-all \"one\"))", json!([null, "unbound_var", null])),
        (
            "(let [t (first (log/turns-all \"two\"))] [(:prints t) (:result_preview t)])",
            json!([[":hi"], "[7 7]"]),
        ),
        // Calls that were repeated with the same arguments.
        (
            "(count (filter #(> (count (second %)) 1) (group-by (juxt :tool :args_hash) (log/tool-calls-all \"two\"))))",
            json!(1),
        ),
        (
            "(map (juxt :server :tool :outcome) (:items (log/tool-calls \"two\")))",
            json!([["tool", "look", "ok"], ["tool", "look", "ok"]]),
        ),
        ("(log/turns-all \"nobody\")", json!([])),
    ];
    for (program, want) in rows {
        assert_eq!(value(&place, program).await, want, "{program}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_and_always_get_on() {
    let runtime = runtime().await;
    let place = place(&runtime, &recorded(&runtime).await);
    let page = |items: Value, next: Value, limit: u64| json!({"items": items, "next_cursor": next, "has_more": !next.is_null(), "limit": limit});
    let rows = [
        ("(log/programs \"one\" {:limit 1})", page(json!(["(def x 1)"]), json!("1"), 1)),
        ("(log/programs \"one\" {:limit 1 :cursor \"2\"})", page(json!(["(+ 1 1)"]), Value::Null, 1)),
        ("(log/programs \"one\" {:limit 0})", page(json!(["(def x 1)"]), json!("1"), 1)),
        ("(log/programs \"one\" {:cursor \"99\"})", page(json!([]), Value::Null, 100)),
        (
            "(log/programs \"one\" {:cursor \"x\" :limit -3})",
            page(json!(["(def x 1)", "(no-such-fn 1)", "(+ 1 1)"]), Value::Null, 100),
        ),
    ];
    for (program, want) in rows {
        assert_eq!(value(&place, program).await, want, "{program}");
    }
    let all = "(loop [at \"0\" all []] (let [p (log/programs \"one\" {:limit 1 :cursor at})
        all (into all (:items p))] (if (:has_more p) (recur (:next_cursor p) all) (count all))))";
    assert_eq!(value(&place, all).await, json!(3));
}

#[tokio::test]
async fn only_the_namespace_reaches_its_tools_and_nothing_runs_without_them() {
    let runtime = runtime().await;
    let history = recorded(&runtime).await;
    let outcome = place(&runtime, &history).run("(tool/log_sessions {})", options()).await;
    assert!(outcome.result.is_err(), "{outcome:?}");
    let (_, log) = introspection(&history);
    let bare = runtime.base().with(Vec::new(), &[log]).expect("a place");
    let failure = bare.run("1", options()).await.result.expect_err("it cannot be attached");
    assert!(
        failure.message.starts_with("prelude attach failed: ") && failure.message.contains("log_sessions"),
        "{failure}"
    );
}

#[tokio::test]
async fn turn_logs_are_read_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |id: &str, program: &str, committed: bool| {
        json!({"schema_version": 2, "event": "turn", "driver": "session", "session_id": id, "turn": 1, "attempt": 1,
            "committed": committed, "status": if committed { "ok" } else { "error" }, "duration_ms": 3,
            "data": {"program": program, "result_preview": "1", "tool_calls": [{"server": "s", "tool": "t"}]}})
        .to_string()
    };
    let file = folder.path().join("20261123T101502Z-1a2b3c4d-turns.jsonl");
    let other = json!({"event": "other"}).to_string();
    // The last line is still being written.
    std::fs::write(
        &file,
        format!("{}\n\n{other}\n{}\n{{\"event\": \"tu", line("a", "(f)", true), line("b", "(g)", false)),
    )
    .expect("written");
    std::fs::write(folder.path().join("else.jsonl"), "no log").expect("written");
    let runtime = runtime().await;
    for path in [folder.path(), &file] {
        let place = place(&runtime, &Arc::new(TurnHistory::load(path).expect("a log")));
        let want = json!([[["a", 1, 0], ["b", 0, 1]], ["(g)"], [{"server": "s", "tool": "t"}]]);
        let program = "[(map (juxt :correlation_id :committed :failed) (log/sessions-all)) (log/programs-all \"b\") (log/tool-calls-all \"a\")]";
        assert_eq!(value(&place, program).await, want);
    }
    std::fs::write(&file, "{}\nnonsense\n{}\n").expect("written");
    let wrong = TurnHistory::load(folder.path()).err().expect("no log");
    assert!(wrong.ends_with("line 2 is no JSON object"), "{wrong}");
    assert!(TurnHistory::load(&folder.path().join("gone")).is_err());
}

/// Programs that an agent wrote, and those of its child.
#[cfg(feature = "agent")]
#[tokio::test]
async fn runs_of_agents_are_turns_too() {
    use async_trait::async_trait;
    use ptc_agent::{Agent, Llm, LlmError, LlmReply, LlmRequest};

    struct Says(&'static str);

    #[async_trait]
    impl Llm for Says {
        fn model(&self) -> &str {
            "says"
        }

        async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
            let is_first = request.messages.len() == 1;
            Ok(LlmReply::from(if is_first { self.0 } else { "(return 1)" }))
        }
    }

    let runtime = runtime().await;
    let child = Agent::new("?").llm(Arc::new(Says("(return 5)")));
    let agent = Agent::new("?").child("five", child);
    let step = agent.run(&runtime, Arc::new(Says("(tool/five {}) (nope)")), &json!({})).await;
    let history = Arc::new(TurnHistory::new());
    step.record(&history, "mission");
    let place = place(&runtime, &history);
    let program = "(map (juxt :correlation_id :driver :turns :failed) (log/sessions-all))";
    let told = value(&place, program).await;
    assert_eq!(told[0][0], "mission", "{told} {step:?}");
    assert_eq!(value(&place, "(first (log/programs-all \"mission\"))").await, json!("(tool/five {}) (nope)"));
}
