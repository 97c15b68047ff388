//! Limits of an agent's run that hold for any model, tools and data: bounds of prompts and of the trace, budgets that
//! no answer evades, and secrets that are not disclosed.
#![cfg(feature = "agent")]

use crate::common;
use common::script::{Script, failure, run, runtime, statuses, tool};
use ptc_agent::{Agent, AgentLimits, AgentReason, AttemptStatus, LlmReply, MatchedCall, TokenUsage};
use ptc_base::secrets::{Credential, SecretRegistry};
use ptc_calls::limits::Limits;
use ptc_calls::outcome::CallStatus;
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::{Runtime, RuntimeConfig};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

#[tokio::test]
async fn a_conversation_is_bounded() {
    let print = "```clojure\n(println (apply str (repeat 3000 \"x\")))\n```";
    let script = Script::with_replies(&[print, print, print, print, "(return 1)"]);
    let limits = AgentLimits { prompt_bytes: 5_000, feedback_bytes: 1_000, ..AgentLimits::default() };
    let step = run(&Agent::new("?").limits(limits), &script).await;
    assert_eq!(step.result, Ok(json!(1)));
    let told = script.told.lock().expect("a whole list");
    let (_, last) = told.last().expect("requests");
    let bytes: usize = last.iter().map(|message| message.text.len()).sum();
    assert!(bytes <= 5_000 + 100, "{bytes}");
}

#[tokio::test]
async fn no_prompt_and_no_trace_holds_a_secret() {
    let secrets = SecretRegistry::new();
    let _ = Credential::secret("sk-planted-1234567890", &secrets);
    let config = RuntimeConfig { secrets, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.expect("a runtime");
    let script = Script::with_replies(&[
        "```clojure\n(println data/key)\n(tool/leak)\n```",
        "I saw sk-planted-1234567890\n```clojure\n(fail data/key)\n```",
    ]);
    let leak =
        HostTool::new("leak", |_: NoArguments| async { Err::<(), _>("bad key sk-planted-1234567890") });
    let agent = Agent::new("Use {{key}}.")
        .system_prefix("Key: sk-planted-1234567890")
        .tool(leak.effect(Effect::Read));
    let step = agent.run(&runtime, script.clone(), &json!({"key": "sk-planted-1234567890"})).await;
    assert_eq!(statuses(&step), [AttemptStatus::Failed, AttemptStatus::GivenUp]);
    let seen = format!("{:?} {step:?}", script.told.lock().expect("a whole list"));
    assert!(!seen.contains("planted") && seen.contains("[REDACTED]"), "{seen}");
}

#[tokio::test]
async fn a_write_that_is_under_way_when_the_time_is_over_is_told() {
    let hangs = HostTool::new("pay", |_: NoArguments| std::future::pending::<Result<(), Infallible>>());
    let limits = AgentLimits { timeout: Duration::from_secs(3), ..AgentLimits::default() };
    let agent = Agent::new("Pay.").tool(hangs.effect(Effect::Write)).limits(limits);
    let step = run(&agent, &Script::with_replies(&["```clojure\n(return (tool/pay))\n```"])).await;
    let stopped = failure(&step);
    assert_eq!(stopped.reason, AgentReason::PartialSideEffects, "{step:?}");
    let matched = MatchedCall { server: "tool".into(), tool: "pay".into(), effect: "write" };
    assert_eq!(stopped.matched_calls, [matched]);
}

#[tokio::test]
async fn calls_of_all_turns_have_one_budget() {
    let limits = Limits { max_upstream_calls: 3, ..Limits::with_upstreams() };
    let agent = Agent::new("?").tool(tool("look", Effect::Read)).program_limits(limits);
    let twice = "```clojure\n(do (tool/look) (tool/look) (:upstream-calls (budget/remaining)))\n```";
    let script = Script::with_replies(&[twice, twice, "(return :no)"]);
    let step = run(&agent, &script).await;
    assert_eq!(statuses(&step)[..2], [AttemptStatus::Continued, AttemptStatus::Failed]);
    assert_eq!(step.calls.iter().filter(|call| call.status == CallStatus::Ok).count(), 3);
    let told = script.last_messages();
    assert!(told[1].contains("Value: <data>1</data>"), "{}", told[1]);
    assert!(told[2].contains("the program has used up its calls"), "{}", told[2]);
    // A program to be compiled has the whole budget for each of the samples.
    let samples = [json!({"n": 1}), json!({"n": 2})];
    let kept = Script::with_replies(&["```clojure\n(do (tool/look) (tool/look) (return data/n))\n```"]);
    assert!(agent.compile(&runtime().await, kept, &samples).await.is_ok());
}

#[tokio::test]
async fn a_reply_without_end_is_neither_run_nor_told_back() {
    let limits = AgentLimits { prompt_bytes: 8_000, ..AgentLimits::default() };
    let agent = Agent::new("Pay.").tool(tool("pay", Effect::Write)).limits(limits);
    let long = format!("```clojure\n(tool/pay)\n{}\n```", "; é".repeat(100_000));
    let talk = "é".repeat(100_000);
    let script = Script::with_replies(&[&long, &talk, "```clojure\n(return 1)\n```"]);
    let step = run(&agent, &script).await;
    assert_eq!((&step.result, step.calls.len()), (&Ok(json!(1)), 0));
    let told = script.last_messages();
    assert!(told[1].starts_with("Your reply has 400026 bytes, of 4000 at most"), "{}", told[1]);
    let told = script.told.lock().expect("a whole list");
    for (_, messages) in &*told {
        let bytes: usize = messages.iter().map(|message| message.text.len()).sum();
        assert!(bytes <= 8_000, "{bytes}");
    }
    assert!(step.turns.iter().all(|turn| turn.reply.len() <= 4_010));
}

#[tokio::test]
async fn tokens_that_a_server_makes_up_end_the_budget() {
    let script = Script::with_replies(&[]);
    let usage = TokenUsage { input: Some(u64::MAX), output: Some(u64::MAX) };
    let counted = LlmReply { usage, ..LlmReply::from("```clojure\n1\n```") };
    script.replies.lock().expect("a whole list").extend([counted.clone(), counted].map(Ok));
    let limits = AgentLimits { token_budget: Some(u64::MAX), ..AgentLimits::default() };
    let step = run(&Agent::new("?").limits(limits), &script).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::TokenBudgetExhausted, 1));
}

#[tokio::test]
async fn a_program_that_fails_with_later_data_is_told_so() {
    let script =
        Script::with_replies(&["```clojure\n(return (/ 6 data/n))\n```", "```clojure\n(return data/n)\n```"]);
    let samples = [json!({"n": 2}), json!({"n": 0})];
    assert!(Agent::new("?").compile(&runtime().await, script.clone(), &samples).await.is_ok());
    let told = &script.last_messages()[1];
    assert!(told.starts_with("With other data of the same shape: The program failed: <data>"), "{told}");
}
