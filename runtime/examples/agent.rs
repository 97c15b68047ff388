//! Example of an agent: a model solves a mission with programs that use data and a function of this
//! application.
//!
//! `ANTHROPIC_API_KEY=… cargo run -p ptc-runtime --features agent --example agent --
//! anthropic:claude-haiku-4-5`, or with a server of your own: `… --example agent -- some-model
//! http://localhost:11434/v1`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use ptc_runtime::agent::{Agent, ModelOptions, model};
use ptc_runtime::{Effect, HostTool, Runtime};
use std::convert::Infallible;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Product {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    name: String,
    price: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: agent MODEL [BASE_URL]")?;
    let runtime = Runtime::builder().start().await?;
    let options = ModelOptions { base_url: arguments.next(), ..ModelOptions::new(name) };
    let model = model(options, runtime.secrets())?;
    let price = HostTool::new("price", |Product { name }: Product| async move {
        Ok::<_, Infallible>(name.len() as f64 * 2.5)
    });
    let agent = Agent::new("Which of the products for the {{category}} has the highest price?")
        .tool(price.describe("The price of a product.").effect(Effect::Read))
        .output::<Answer>();
    let context = serde_json::json!({"category": "garden", "products": ["rake", "wheelbarrow", "hose"]});
    let step = agent.run(&runtime, model, &context).await;
    for turn in &step.turns {
        println!("turn {}: {:?}", turn.number, turn.status);
    }
    let Answer { name, price } = step.value()?;
    println!("{name} for {price}");
    runtime.shutdown().await;
    Ok(())
}
