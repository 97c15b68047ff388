//! Missions that end with an answer.

use crate::common::provider::TextEnd::{Complete, Declined};
use crate::conversations::record;
use crate::conversations::scenario::{Answer, check, products, program, told, tool};
use ptc_agent::{Agent, AgentLimits, Llm};
use ptc_calls::{Effect, HostTool};
use ptc_engine::{Prelude, Runtime};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct Product {
    #[allow(dead_code, reason = "its schema is what counts")]
    name: String,
    #[allow(dead_code, reason = "its schema is what counts")]
    price: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    /// The word to look at.
    word: String,
}

const MISSION: &str = "What is the dearest thing for the {{category}}?";

const DEAREST: Answer =
    program!("(return (select-keys (apply max-key :price data/products) [:name :price]))");

#[tokio::test]
async fn one_turn() {
    let agent = Agent::new(MISSION).output::<Product>();
    check("one_turn", &[DEAREST], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn three_turns() {
    let stock = HostTool::new("stock", |Word { word }: Word| async move { Ok::<_, Infallible>(word.len()) });
    let crm = "(ns shop)\n(defn dear \"Products above a price.\" [price] (filter #(> (:price %) price) data/products))";
    let agent = Agent::new("How many of what costs more than 20 are in stock?")
        .tool(stock.describe("How many there are.").effect(Effect::Read).returns::<u32>())
        .prelude(Arc::new(Prelude::compile("shop.clj", crm).expect("it compiles")))
        .limits(AgentLimits { max_output_tokens: Some(900), ..AgentLimits::default() });
    let answers = &[
        Answer::Says(
            "First I look at what is dear.\n```clojure\n(println (map :name (shop/dear 20)))\n```",
            Complete,
        ),
        program!("(def counts (map tool/stock (map :name (shop/dear 20))))\n(first counts)"),
        program!("(return {:total (reduce + counts) :first *1})"),
    ];
    check("three_turns", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn repaired() {
    let agent = Agent::new(MISSION).output::<Product>().max_turns(1).retry_turns(3);
    let answers = &[
        program!("(return (apply max-key :price data/product))"),
        program!("(return (map :price (sort-by :price data/products))"),
        program!("(return (first (sort-by :name data/products) [:name]))"),
        DEAREST,
    ];
    check("repaired", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await)
        .await;
}

#[tokio::test]
async fn an_answer_that_was_refused() {
    let agent = Agent::new(MISSION).output::<Product>();
    let answers = &[program!("(def n 1)\n(return {:name \"saw\" :cost 30})"), DEAREST];
    check("refused_answer", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn words_without_a_program() {
    let answers = &[
        Answer::Says("I would rather not talk about gardens.", Declined),
        Answer::Says("The dearest is the saw.", Complete),
        Answer::Says("", Complete),
        DEAREST,
    ];
    let agent = Agent::new(MISSION);
    check("words", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await)
        .await;
}

#[tokio::test]
async fn a_single_shot() {
    let agent = Agent::new(MISSION).single_shot().output::<Product>();
    let answers = &[program!("(apply max-key :price data/products)")];
    check("single_shot", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn a_child() {
    let child = Agent::new("Count the letters of {{word}}.").describe("Counts letters.").input::<Word>();
    let child = child.output_schema(json!({"type": "integer"})).max_turns(2);
    let agent = Agent::new("Add up the letters of all names.").child("count-letters", child);
    let answers = &[
        program!(
            "(return (reduce + (map (fn [p] (tool/count-letters {:word (:name p)})) (take 2 data/products))))"
        ),
        program!("(count data/word)"),
        program!("(return *1)"),
        program!("(return (count data/word))"),
    ];
    check("child", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await)
        .await;
}

#[tokio::test]
async fn a_compiled_agent() {
    let agent = Agent::new("What is the dearest of {{category}}?")
        .output::<Product>()
        .tool(tool("look", Effect::Read));
    // Right for the first sample only.
    let answers = &[program!("(return (nth data/products 1))"), DEAREST];
    check("compiled", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        let other = json!({"category": "x", "products": [{"name": "nail", "price": 1}]});
        match agent.compile(runtime, llm, &[products(), other.clone()]).await {
            Ok(compiled) => {
                let runs = [compiled.run(&products()).await, compiled.run(&other).await];
                let runs: Vec<String> = runs.iter().map(record::step).collect();
                format!(
                    "kept: {}\n= run with the first sample: {}\n= with the second: {}",
                    compiled.source(),
                    runs[0],
                    runs[1]
                )
            }
            Err(step) => record::step(&step),
        }
    })
    .await;
}
