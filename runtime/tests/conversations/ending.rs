//! Missions that end without an answer, each for a different reason.

use crate::common;
use crate::conversations::scenario::{Answer, check, program, told, tool, with_server};
use ptc_agent::{Agent, AgentLimits, Llm};
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::{Prelude, Runtime};
use std::sync::Arc;
use std::time::Duration;

/// Enough time for a working server to answer, on any machine.
const GENEROUS: Duration = Duration::from_secs(5);

const GOES_ON: Answer = program!("(count data/products)");

#[tokio::test]
async fn a_model_that_never_stops() {
    let agent = Agent::new("Go on.").max_turns(3);
    check("never_stops", &[GOES_ON], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn the_budget_of_turns() {
    let agent = Agent::new("Go on.").limits(AgentLimits { turn_budget: 2, ..AgentLimits::default() });
    check("turn_budget", &[GOES_ON], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn the_budget_of_tokens() {
    let agent = Agent::new("Go on.").limits(AgentLimits { token_budget: Some(50), ..AgentLimits::default() });
    check("token_budget", &[GOES_ON], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn the_time_of_a_mission() {
    let agent = Agent::new("Go on.").limits(AgentLimits { timeout: GENEROUS, ..AgentLimits::default() });
    check("time", &[GOES_ON, Answer::Never], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn the_time_of_a_reply() {
    let limits = AgentLimits { model_timeout: GENEROUS, ..AgentLimits::default() };
    let agent = Agent::new("Go on.").limits(limits);
    check("reply_time", &[GOES_ON, Answer::Never], async |runtime: &Runtime, llm: Arc<dyn Llm>| {
        told(&agent, runtime, llm).await
    })
    .await;
}

#[tokio::test]
async fn a_program_that_gives_up() {
    let agent = Agent::new("Find the unicorn.");
    let answers = &[program!("(fail {:reason :not-found :looked-at (count data/products)})")];
    check("gives_up", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await)
        .await;
}

#[tokio::test]
async fn a_write_that_is_left_open() {
    let agent = Agent::new("Change it.").tool(tool("look", Effect::Read)).tool(tool("change", Effect::Write));
    let answers = &[program!("(tool/look)"), program!("(do (tool/look) (tool/change) (/ 1 0))")];
    check("guard", answers, async |runtime: &Runtime, llm: Arc<dyn Llm>| told(&agent, runtime, llm).await)
        .await;
}

#[tokio::test]
async fn a_backing_that_goes() {
    let crm = "(ns crm)\n(defn look [] (tool/call {:server \"fake\" :tool \"echo\" :args {}}))";
    let crm = Arc::new(Prelude::compile("crm", crm).expect("it compiles"));
    check("attach", &[program!("(tool/swap)")], async |_: &Runtime, llm: Arc<dyn Llm>| {
        let runtime = Arc::new(with_server().await);
        let servers = runtime.clone();
        let swap = HostTool::new("swap", move |_: NoArguments| {
            let swapped = servers.reconfigure(vec![common::entry("other", &[])]).map(drop);
            async move { swapped.map_err(|error| error.to_string()) }
        });
        let agent = Agent::new("?").prelude(crm.clone()).tool(swap.effect(Effect::Read));
        told(&agent, &runtime, llm).await
    })
    .await;
}
