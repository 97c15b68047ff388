//! Models that fail: temporarily, permanently, or half-way.

use crate::common::provider::KEY;
use crate::common::provider::TextEnd::Cut;
use crate::conversations::scenario::{Answer, check, program, told, tool};
use ptc_agent::{Agent, Llm};
use ptc_calls::Effect;
use ptc_engine::Runtime;
use std::sync::Arc;

const DONE: Answer = program!("(return (count data/products))");

#[tokio::test]
async fn answered_after_a_while() {
    let answers = &[
        Answer::Fails(429, "rate_limit_error", "slow down"),
        Answer::Breaks,
        program!("(println (keys (first data/products)))"),
        Answer::Fails(503, "overloaded_error", "too busy"),
        DONE,
    ];
    let agent = Agent::new("Count.");
    check("rate_limited", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn never_answered() {
    let agent = Agent::new("Count.");
    let answers = &[program!("(count data/products)"), Answer::Fails(429, "rate_limit_error", "slow down")];
    check("rate_limited_for_good", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_refused() {
    let agent = Agent::new("Count.");
    let answers = &[
        program!("(count data/products)"),
        Answer::Fails(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ];
    check("refused_request", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_refused() {
    const SAID: &str = "Incorrect API key provided: sk-test-0123456789abcdef";
    assert!(SAID.contains(KEY), "the provider says the key");
    let agent = Agent::new("Count.");
    check(
        "refused_key",
        &[Answer::Fails(401, "authentication_error", SAID)],
        async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await,
    )
    .await;
}

#[tokio::test]
async fn a_reply_that_is_cut() {
    let agent = Agent::new("Pay for what is dear.").tool(tool("pay", Effect::Write));
    // The part that arrived would be a valid program.
    let answers = &[Answer::Says("```clojure\n(tool/pay)\n(println \"and", Cut), DONE];
    check("cut_reply", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}
