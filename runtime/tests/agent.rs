//! Agents with a scripted model: how a mission goes on and ends, what the prompts say, and what is spent. Prompts are
//! in `agent/*.txt`; `PTC_BLESS=1 cargo test --workspace --test runtime agent` writes them.
#![cfg(feature = "agent")]

use crate::common;
use async_trait::async_trait;
use common::script::{Script, failure, run, runtime, statuses, tool};
use ptc_agent::{
    Agent, AgentFailure, AgentLimits, AgentReason, AttemptKind, AttemptStatus, Continuation,
    ContinuationGuard, Llm, LlmError, LlmErrorKind, LlmReply, LlmRequest, MatchedCall,
};
use ptc_calls::limits::Limits;
use ptc_calls::outcome::CallRecord;
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A runtime with a server; its tools do not say whether they change data.
async fn with_server() -> Runtime {
    let servers = vec![common::entry("fake", &[])];
    let config = RuntimeConfig { servers, start: StartPolicy::All, workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("a runtime")
}

#[derive(Deserialize, JsonSchema, Debug, PartialEq)]
struct Product {
    name: String,
    price: f64,
}

fn products() -> Value {
    json!({"category": "garden", "products": [
        {"name": "rake", "price": 12.5}, {"name": "saw", "price": 30.0}, {"name": "hose", "price": 25}]})
}

const DEAREST: &str =
    "```clojure\n(return (select-keys (apply max-key :price data/products) [:name :price]))\n```";

#[tokio::test]
async fn a_mission_ends_with_the_first_program_that_returns() {
    let script = Script::with_replies(&[DEAREST]);
    let agent = Agent::new("What is the dearest thing for the {{category}}?").output::<Product>();
    let step = agent.run(&runtime().await, script.clone(), &products()).await;
    assert_eq!(step.value::<Product>().expect("an answer"), Product { name: "saw".into(), price: 30.0 });
    assert_eq!(statuses(&step), [AttemptStatus::Answered]);
    assert_eq!((step.usage.requests, step.usage.tokens.total()), (1, Some(110)));
    assert!(script.last_messages()[0].contains("What is the dearest thing for the garden?"));
    assert!(step.program.expect("a program").starts_with("(return"));
}

#[tokio::test]
async fn later_programs_build_on_earlier_ones_and_see_what_was_told() {
    let script = Script::with_replies(&[
        "First I look.\n```clojure\n(println (describe data/products))\n(def dear (filter #(> (:price %) 20) data/products))\n(count dear)\n```",
        "```clojure\n(def names (map :name dear))\n(first names)\n```",
        "```clojure\n(return {:names names :last *1})\n```",
    ]);
    let step = Agent::new("Find what is dear.").run(&runtime().await, script.clone(), &products()).await;
    assert_eq!(step.result, Ok(json!({"names": ["saw", "hose"], "last": "saw"})));
    assert_eq!(
        statuses(&step),
        [AttemptStatus::Continued, AttemptStatus::Continued, AttemptStatus::Answered]
    );
    let told = script.last_messages();
    assert!(told[1].contains("Value: <data>2</data>\nDefined: dear\n\n4 turns left."), "{}", told[1]);
    assert!(told[1].starts_with("Printed:\n<data>"), "{}", told[1]);
    let trace = serde_json::to_value(&step.turns).expect("JSON");
    assert_eq!((&trace[0]["status"], &trace[0]["kind"]), (&json!("continued"), &json!("work")));
}

#[tokio::test]
async fn a_wrong_program_is_repaired_by_what_its_model_is_told() {
    let script = Script::with_replies(&[
        "```clojure\n(def kept 1)\n(return (map :price data/product))\n```",
        "The answer is 67.5.",
        "(return (reduce + (map :price data/products)))",
    ]);
    let step = Agent::new("Add up.").run(&runtime().await, script.clone(), &products()).await;
    assert_eq!(step.result, Ok(json!(67.5)));
    assert_eq!(statuses(&step), [AttemptStatus::Failed, AttemptStatus::NoProgram, AttemptStatus::Answered]);
    let told = script.last_messages();
    assert!(
        told[1].contains("The program failed: <data>") && told[1].contains("data/product is not bound"),
        "{}",
        told[1]
    );
    assert!(told[2].starts_with("There was no program in your reply."), "{}", told[2]);
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let replies: Vec<&str> = vec!["```clojure\n1\n```"; 10];
    let script = Script::with_replies(&replies);
    let step = run(&Agent::new("Go on.").max_turns(3), &script).await;
    assert_eq!(
        failure(&step).to_string(),
        "max_turns_exceeded: no answer in 3 turns: no program said (return v)"
    );
    assert!(script.last_messages()[2].ends_with("\n\nThis is your last turn: (return v) now."));
    assert_eq!(script.requests(), 3);
    let failing = Script::with_replies(&["```clojure\n(/ 1 0)\n```"; 2]);
    let step = run(&Agent::new("Divide.").max_turns(2), &failing).await;
    let told = failure(&step).message.clone();
    assert!(told.starts_with("no answer in 2 turns; the last failed: arithmetic_error: "), "{told}");
}

#[tokio::test]
async fn a_program_can_give_up() {
    let step =
        run(&Agent::new("?"), &Script::with_replies(&["```clojure\n(fail {:reason :not-found})\n```"])).await;
    assert_eq!(failure(&step), &AgentFailure::new(AgentReason::Failed, "{:reason :not-found}"));
    assert_eq!(statuses(&step), [AttemptStatus::GivenUp]);
}

#[tokio::test]
async fn budgets_of_turns_tokens_and_time_end_a_run() {
    let go_on = ["```clojure\n1\n```"; 9];
    let limits = AgentLimits { turn_budget: 2, ..AgentLimits::default() };
    let step = run(&Agent::new("?").limits(limits), &Script::with_replies(&go_on)).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::TurnBudgetExhausted, 2));
    let limits = AgentLimits { token_budget: Some(250), ..AgentLimits::default() };
    let step = run(&Agent::new("?").limits(limits), &Script::with_replies(&go_on)).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::TokenBudgetExhausted, 3));
    let limits = AgentLimits { timeout: Duration::ZERO, ..AgentLimits::default() };
    let step = run(&Agent::new("?").limits(limits), &Script::with_replies(&go_on)).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::Timeout, 0));
}

/// A model that never answers.
struct Silent;

#[async_trait]
impl Llm for Silent {
    fn model(&self) -> &str {
        "silent"
    }

    async fn complete(&self, _: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_ends_the_run() {
    let runtime = runtime().await;
    let limits = AgentLimits { model_timeout: Duration::from_millis(1), ..AgentLimits::default() };
    let step = Agent::new("?").limits(limits).run(&runtime, Arc::new(Silent), &json!({})).await;
    assert_eq!(failure(&step).to_string(), "llm_error: planner exceeded 1ms timeout");
    assert_eq!(failure(&step).model_error, Some(LlmErrorKind::Timeout));
    let limits = AgentLimits { timeout: Duration::from_millis(1), ..AgentLimits::default() };
    let step = Agent::new("?").limits(limits).run(&runtime, Arc::new(Silent), &json!({})).await;
    assert_eq!(failure(&step).reason, AgentReason::Timeout);
    let step = run(&Agent::new("?"), &Script::with_replies(&[])).await;
    assert_eq!(failure(&step).to_string(), "llm_error: the script is over");
}

#[tokio::test]
async fn nothing_goes_on_behind_a_write_or_what_may_be_one() {
    let read = "```clojure\n(tool/look)\n```";
    let write = "```clojure\n(do (tool/look) (tool/change) (/ 1 0))\n```";
    let agent = Agent::new("?").tool(tool("look", Effect::Read)).tool(tool("change", Effect::Write));
    let script = Script::with_replies(&[read, write, "(return 1)"]);
    let step = run(&agent, &script).await;
    let stopped = failure(&step);
    assert_eq!(stopped.reason, AgentReason::PartialSideEffects);
    assert_eq!(stopped.message, "Continuation blocked after write or unknown upstream side effects");
    let matched = MatchedCall { server: "tool".into(), tool: "change".into(), effect: "write" };
    assert_eq!(stopped.matched_calls, [matched]);
    assert_eq!((script.requests(), step.calls.len()), (2, 3), "reads may be followed by more");
    // The mission ends with this program, so the guard does not apply.
    let step = run(&agent, &Script::with_replies(&["```clojure\n(tool/change)\n(return 2)\n```"])).await;
    assert_eq!(step.result, Ok(json!(2)));
    // The guard applies in the last round as well.
    let step =
        run(&agent.clone().max_turns(1), &Script::with_replies(&["```clojure\n(tool/change)\n```"])).await;
    assert_eq!(failure(&step).reason, AgentReason::PartialSideEffects);
}

#[tokio::test]
async fn calls_of_servers_are_guarded_and_a_host_can_decide_otherwise() {
    let runtime = with_server().await;
    let call =
        "```clojure\n(tool/call {:server \"fake\" :tool \"echo\" :args {:text \"secret words\"}})\n```";
    let script = Script::with_replies(&[call, "(return 1)"]);
    let step = Agent::new("?").run(&runtime, script.clone(), &json!({})).await;
    let matched = MatchedCall { server: "fake".into(), tool: "echo".into(), effect: "unknown" };
    assert_eq!(failure(&step).matched_calls, [matched]);
    assert!(!format!("{:?}", failure(&step)).contains("secret words"), "neither arguments nor results");

    struct AtMost(usize, AtomicUsize);
    impl ContinuationGuard for AtMost {
        fn decide(&self, calls: &[CallRecord]) -> Continuation {
            let seen = self.1.fetch_add(calls.len(), Ordering::Relaxed) + calls.len();
            match seen <= self.0 {
                true => Continuation::Continue,
                false => Continuation::Stop { matched_calls: calls.iter().map(MatchedCall::from).collect() },
            }
        }
    }
    let agent = Agent::new("?").guard(Arc::new(AtMost(1, AtomicUsize::new(0))));
    let step = agent.run(&runtime, Script::with_replies(&[call, call, "(return 1)"]), &json!({})).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::PartialSideEffects, 2));
}

#[tokio::test]
async fn a_single_shot_is_one_program_whose_value_is_the_answer() {
    let script =
        Script::with_replies(&["```clojure\n(count (filter #(= % data/letter) (seq data/word)))\n```"]);
    let agent = Agent::new("How many {{letter}} are in {{word}}?")
        .single_shot()
        .output_schema(json!({"type": "integer"}));
    let context = json!({"letter": "r", "word": "raspberry"});
    let step = agent.run(&runtime().await, script, &context).await;
    assert_eq!(step.result, Ok(json!(3)));
    let step = agent.run(&runtime().await, Script::with_replies(&["\"three\"", "(str 3)"]), &context).await;
    assert_eq!(failure(&step).to_string(), "program_failed: there was no program in the reply");
    let step = agent.run(&runtime().await, Script::with_replies(&["(str 3)"]), &context).await;
    let want = "validation_failed: the answer must be integer, got \"3\". Write 3 without quotes.";
    assert_eq!(failure(&step).to_string(), want);
}

#[tokio::test]
async fn retry_turns_are_for_repairs_alone() {
    let wrong = "```clojure\n(return {:name \"saw\"})\n```";
    let agent = Agent::new("?").output::<Product>().max_turns(1).retry_turns(2);
    let script = Script::with_replies(&[wrong, wrong, "```clojure\n(return {:name \"saw\" :price 3})\n```"]);
    let step = run(&agent, &script).await;
    assert_eq!(step.result, Ok(json!({"name": "saw", "price": 3})));
    let kinds: Vec<AttemptKind> = step.turns.iter().map(|turn| turn.kind).collect();
    assert_eq!(kinds, [AttemptKind::Work, AttemptKind::Retry, AttemptKind::Retry]);
    let told = script.last_messages();
    assert!(told[1].starts_with("The answer was refused: <data>missing required args price"), "{}", told[1]);
    assert!(told[1].contains("It has to be {:name string :price number"), "{}", told[1]);
    assert!(told[2].ends_with("This is your last try: 1 left. End it with (return v)."), "{}", told[2]);
    let step = run(&agent, &Script::with_replies(&[wrong; 3])).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::ValidationFailed, 3));
    // A value is no failure, so there is nothing to repair.
    let step = run(&agent, &Script::with_replies(&["```clojure\n1\n```"; 3])).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::MaxTurnsExceeded, 1));
}

#[tokio::test]
async fn a_refused_answer_leaves_nothing_behind() {
    let script = Script::with_replies(&[
        "```clojure\n(def a 1)\n(return \"no\")\n```",
        "```clojure\n(return a)\n```",
        "```clojure\n(return 3)\n```",
    ]);
    let step = run(&Agent::new("?").output_schema(json!({"type": "integer"})), &script).await;
    assert_eq!(step.result, Ok(json!(3)));
    assert!(script.last_messages()[2].contains("unbound_var"), "{}", script.last_messages()[2]);
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    /// The word to look at.
    word: String,
}

fn counter(script: Arc<Script>) -> Agent {
    let agent = Agent::new("Count the letters of {{word}}.").describe("Counts letters.").input::<Word>();
    agent.output_schema(json!({"type": "integer"})).max_turns(2).llm(script)
}

#[tokio::test]
async fn a_child_is_a_tool_on_the_budget_of_its_parent() {
    let child = Script::with_replies(&["```clojure\n(return (count data/word))\n```"; 4]);
    let agent = Agent::new("Add up.").child("count-letters", counter(child.clone()));
    let script = Script::with_replies(&[
        "```clojure\n(return (reduce + (map tool/count-letters [\"a\" \"bcd\"])))\n```",
    ]);
    let step = run(&agent, &script).await;
    assert_eq!(step.result, Ok(json!(4)));
    let told = &script.last_messages()[0];
    assert!(told.contains("(tool/count-letters {:word string}) => integer  Counts letters."), "{told}");
    assert!(child.last_messages()[1].contains("Count the letters of bcd."));
    let children: Vec<_> =
        step.children.iter().map(|(name, step)| (name.as_str(), step.result.clone())).collect();
    assert_eq!(children, [("count-letters", Ok(json!(1))), ("count-letters", Ok(json!(3)))]);
    // The same with a budget of two rounds, which the parent and the first child use up.
    let limits = AgentLimits { turn_budget: 2, ..AgentLimits::default() };
    let step = run(
        &agent.limits(limits),
        &Script::with_replies(&[
            "```clojure\n(return (reduce + (map tool/count-letters [\"a\" \"bcd\"])))\n```",
        ]),
    )
    .await;
    assert_eq!(failure(&step).reason, AgentReason::TurnBudgetExhausted);
    assert!(
        step.turns[0].feedback.contains("Tool 'count-letters' failed: \\\"turn_budget_exhausted: ")
            || step.turns[0].feedback.contains("turn_budget_exhausted"),
        "{}",
        step.turns[0].feedback
    );
}

#[tokio::test]
async fn a_child_inherits_no_servers_and_agents_nest_only_so_deep() {
    let runtime = with_server().await;
    let child = Script::with_replies(&["```clojure\n(return (count (tool/servers)))\n```"]);
    let blind = Agent::new("How many servers?").llm(child.clone());
    let script =
        Script::with_replies(&["```clojure\n(return [(count (tool/servers)) (tool/servers-of-child)])\n```"]);
    let step =
        Agent::new("?").child("servers-of-child", blind).run(&runtime, script.clone(), &json!({})).await;
    assert_eq!(step.result, Ok(json!([1, 0])));
    assert!(!child.first_system().contains("tool/call") && script.first_system().contains("tool/call"));

    let deep = Script::with_replies(&["```clojure\n(return (tool/next))\n```"; 5]);
    let leaf = Agent::new("leaf");
    let agent = Agent::new("top").child("next", Agent::new("middle").child("next", leaf));
    let limits = |max_depth| AgentLimits { max_depth, max_turns: 1, ..AgentLimits::default() };
    let agent = Agent::new("top").limits(limits(3)).child("next", agent.limits(limits(0)));
    let step = run(&agent, &deep).await;
    assert!(step.turns[0].feedback.contains("max_depth_exceeded"), "{}", step.turns[0].feedback);
}

#[tokio::test]
async fn what_is_around_an_agent_says_how_deep_it_goes() {
    let deep = Script::with_replies(&["```clojure\n(return (tool/next))\n```"; 2]);
    let limits = AgentLimits { max_depth: 0, max_turns: 1, ..AgentLimits::default() };
    let step = run(&Agent::new("top").limits(limits).child("next", Agent::new("leaf")), &deep).await;
    assert!(step.turns[0].feedback.contains("max_depth_exceeded"), "{}", step.turns[0].feedback);
}

#[tokio::test]
async fn a_child_whose_caller_does_not_wait_leaves_its_turns() {
    // The model answers the first request and no other.
    struct Once(AtomicUsize);
    #[async_trait]
    impl Llm for Once {
        fn model(&self) -> &str {
            "once"
        }

        async fn complete(&self, _: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(LlmReply::from("```clojure\n(println \"looked\")\n```")),
                _ => std::future::pending().await,
            }
        }
    }
    let child = Agent::new("Look.").llm(Arc::new(Once(AtomicUsize::new(0))));
    let limits = Limits { timeout_ms: 1_000, ..Limits::with_upstreams() };
    let agent = Agent::new("?").child("look", child).program_limits(limits).max_turns(1);
    let script = Script::with_replies(&["```clojure\n(return (tool/look {}))\n```"]);
    let step = run(&agent, &script).await;
    assert!(step.result.is_err(), "{step:?}");
    let [(name, child)] = &step.children[..] else { panic!("{step:?}") };
    assert_eq!((&**name, failure(child).reason), ("look", AgentReason::Cancelled));
    assert_eq!(failure(child).message, "the program that had called it ended before it");
    assert_eq!((child.turns.len(), child.usage.requests), (1, 2));
    assert_eq!(child.turns[0].prints, ["looked"]);
}

#[tokio::test]
async fn an_agent_that_only_reads_is_not_told_of_tools_that_change_something() {
    let config = RuntimeConfig { read_only: true, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.expect("a runtime");
    let agent = Agent::new("?").tool(tool("look", Effect::Read)).tool(tool("change", Effect::Write));
    let script = Script::with_replies(&["```clojure\n(tool/change)\n```", "(return (tool/look))"]);
    let step = agent.run(&runtime, script.clone(), &json!({})).await;
    assert_eq!(step.result, Ok(json!(7)));
    let told = script.last_messages();
    assert!(told[0].contains("(tool/look {})") && !told[0].contains("change"), "{}", told[0]);
    assert!(told[1].contains("Unknown tool: change"), "{}", told[1]);
}

#[tokio::test]
async fn a_reply_that_was_cut_is_not_run_and_an_empty_one_is_told_as_such() {
    let script = Script::with_replies(&[]);
    let cut = LlmReply { is_cut: true, ..LlmReply::from("```clojure\n(return (tool/pay))\n") };
    let replies = [cut, LlmReply::from(" "), LlmReply::from("```clojure\n(return 1)\n```")];
    script.replies.lock().expect("a whole list").extend(replies.map(Ok));
    let step = run(&Agent::new("Pay.").tool(tool("pay", Effect::Write)), &script).await;
    assert_eq!(step.result, Ok(json!(1)));
    assert_eq!(step.calls.len(), 0);
    assert!(
        script.last_messages()[1].contains("cut, at the limit of tokens"),
        "{:?}",
        script.last_messages()
    );
    let told = script.told.lock().expect("a whole list");
    assert!(told[2].1.iter().all(|message| !message.text.trim().is_empty()), "{:?}", told[2].1);
}

#[tokio::test]
async fn a_compiled_agent_needs_no_model() {
    let runtime = runtime().await;
    let agent = Agent::new("What is the dearest of {{category}}?").output::<Product>();
    let samples = [products(), json!({"category": "x", "products": [{"name": "a", "price": 1}]})];
    // Right for the first sample only.
    let wrong = "```clojure\n(return {:name \"saw\" :price (:price (nth data/products 1))})\n```";
    let script = Script::with_replies(&[wrong, DEAREST]);
    let compiled = agent.compile(&runtime, script.clone(), &samples).await.expect("a program");
    assert_eq!(script.requests(), 2);
    assert!(script.last_messages()[0].contains("Your program will be kept"));
    let other = json!({"category": "y", "products": [{"name": "b", "price": 2}, {"name": "c", "price": 9}]});
    let step = compiled.run(&other).await;
    assert_eq!(step.value::<Product>().expect("an answer"), Product { name: "c".into(), price: 9.0 });
    assert!(step.turns.is_empty());
    let kept = agent.compiled_from(&runtime, compiled.source()).expect("the same");
    assert_eq!(kept.run(&other).await.result, step.result);
    let failed = kept.run(&json!({"category": "z", "products": []})).await;
    assert!(failed.result.is_err());
    let parent = agent.child("next", Agent::new("?"));
    let refused = parent.compile(&runtime, script, &samples).await.err().expect("it needs a model");
    assert!(failure(&refused).message.contains("an agent with children cannot be compiled"));
}

#[tokio::test]
async fn wrong_contexts_and_tools_are_told() {
    let runtime = runtime().await;
    let step = Agent::new("?").run(&runtime, Script::with_replies(&[]), &json!([1])).await;
    assert_eq!(failure(&step).reason, AgentReason::InvalidAgent);
    let step = Agent::new("{{x}}").run(&runtime, Script::with_replies(&[]), &json!({})).await;
    assert!(failure(&step).message.contains("{{x}}"));
    let twice = Agent::new("?").tool(tool("a", Effect::Read)).child("a", Agent::new("?"));
    let step = twice.run(&runtime, Script::with_replies(&[]), &json!({})).await;
    assert_eq!(failure(&step).message, "tool \"a\" is given twice");
}

fn conversation(script: &Script) -> String {
    let told = script.told.lock().expect("a whole list");
    let (system, messages) = told.last().expect("a request");
    let mut text = format!("=== system\n{system}\n");
    for message in messages {
        text.push_str(&format!("=== {:?}\n{}\n", message.role, message.text));
    }
    text
}

#[tokio::test]
async fn prompts_are_as_they_were_looked_at() {
    let crm = "(ns crm)\n(defn top \"The best n customers.\" [n] (take n [1 2 3]))\n(def size 50)";
    let find = HostTool::new("find", |Word { word }: Word| async move { Ok::<_, Infallible>(vec![word]) });
    let agent = Agent::new("What is the dearest thing for the {{category}}?")
        .tool(find.describe("Finds words.").effect(Effect::Read).returns::<Vec<String>>())
        .prelude(Arc::new(Prelude::compile("crm.clj", crm).expect("it compiles")))
        .system_prefix("You work for a garden centre.")
        .system_suffix("Prices are in euros.")
        .output::<Product>();
    let script = Script::with_replies(&[
        "```clojure\n(println (describe data/products))\n(def n (count data/products))\n```",
        "```clojure\n(return {:name (tool/find 1)})\n```",
        "```clojure\n(return {:name \"saw\"})\n```",
        DEAREST,
    ]);
    let step = agent.run(&with_server().await, script.clone(), &products()).await;
    assert!(step.result.is_ok(), "{step:?}");
    common::golden("agent", "loop.txt", &conversation(&script));
    let script = Script::with_replies(&[DEAREST]);
    let single =
        Agent::new("What is the dearest thing for the {{category}}?").single_shot().output::<Product>();
    let _ = single.run(&runtime().await, script.clone(), &products()).await;
    common::golden("agent", "single_shot.txt", &conversation(&script));
}

#[tokio::test]
async fn what_a_namespace_needs_is_looked_at_before_each_turn() {
    let logs =
        Prelude::compile("logs", "(ns logs)\n(defn all [] (tool/log_sessions {}))").expect("it compiles");
    let agent = Agent::new("?").prelude(Arc::new(logs));
    let script = Script::with_replies(&["(return 1)"]);
    let step = run(&agent, &script).await;
    let want = "prelude_attach_failed: prelude attach failed: export `logs/all` requires granted tool `log_sessions`, but \
                the host did not grant a tool of that name for this run";
    assert_eq!(failure(&step).to_string(), want);
    assert_eq!(script.requests(), 0, "no model is asked");
    let granted = agent.tool(tool("log_sessions", Effect::Read));
    assert_eq!(run(&granted, &Script::with_replies(&["(return (logs/all))"])).await.result, Ok(json!(7)));

    // The backing tool exists in the first round, and is gone in the second.
    let runtime = Arc::new(with_server().await);
    let servers = runtime.clone();
    let swap = HostTool::new("swap", move |_: NoArguments| {
        let swapped = servers.reconfigure(vec![common::entry("other", &[])]).map(drop);
        async move { swapped.map_err(|error| error.to_string()) }
    });
    let crm = "(ns crm)\n(defn look [] (tool/call {:server \"fake\" :tool \"echo\" :args {}}))";
    let crm = Arc::new(Prelude::compile("crm", crm).expect("it compiles"));
    let agent = Agent::new("?").prelude(crm).tool(swap.effect(Effect::Read));
    let script = Script::with_replies(&["```clojure\n(tool/swap)\n```", "(return 1)"]);
    let step = agent.run(&runtime, script.clone(), &json!({})).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::PreludeAttachFailed, 1));
    assert!(failure(&step).message.contains("upstream server `fake` is not configured for this run"));
    assert_eq!(script.requests(), 1, "a hard stop");
}

#[tokio::test]
async fn a_step_says_which_prelude_its_programs_had() {
    let prelude = Arc::new(Prelude::compile("n.clj", "(ns n) (defn one [] 1)").expect("a prelude"));
    let runtime = runtime().await;
    let agent = Agent::verbatim("?").prelude(prelude.clone());
    for (agent, replies) in [
        (agent.clone(), ["(n/one)", "(return (n/one))"]),
        (agent.clone().single_shot(), ["(return (n/one))", ""]),
    ] {
        let step = agent.run(&runtime, Script::with_replies(&replies), &json!({})).await;
        assert_eq!(step.result.expect("an answer"), 1);
        assert_eq!(step.prelude_trace.as_ref(), Some(prelude.trace()));
    }
    let compiled = agent.compiled_from(&runtime, "(return (n/one))").expect("a program");
    assert_eq!(compiled.run(&json!({})).await.prelude_trace.as_ref(), Some(prelude.trace()));
    let bare = Agent::verbatim("?").run(&runtime, Script::with_replies(&["(return 1)"]), &json!({})).await;
    assert_eq!(bare.prelude_trace, None);
}
