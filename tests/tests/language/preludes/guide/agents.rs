//! Sections 1, 5 and 7 of the guide: agents with a prelude for their programs.

use super::QUICK_START;
use crate::preludes::attach::{entries, with_servers};
use async_trait::async_trait;
use ptc_agent::{
    Agent, AgentFailure, AgentReason, AgentStep, Continuation, ContinuationGuard, Llm, LlmError,
    LlmErrorKind, LlmReply, LlmRequest, MatchedCall,
};
use ptc_calls::outcome::CallRecord;
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::{Prelude, Runtime};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A model with scripted replies.
struct Script {
    replies: Mutex<VecDeque<String>>,
    /// The text of the first request, and the number of requests.
    told: Mutex<(String, usize)>,
}

#[async_trait]
impl Llm for Script {
    fn model(&self) -> &str {
        "script"
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        let mut told = self.told.lock().expect("whole");
        if told.1 == 0 {
            let said = request.messages.iter().map(|message| message.text.as_str());
            told.0 = [request.system].into_iter().chain(said).collect();
        }
        told.1 += 1;
        let next = self.replies.lock().expect("whole").pop_front();
        next.map(|text| LlmReply::from(text.as_str()))
            .ok_or_else(|| LlmError::new(LlmErrorKind::Unavailable, "the script is over"))
    }
}

impl Script {
    fn with_replies(programs: &[&str]) -> Arc<Script> {
        let replies = programs.iter().map(|program| format!("```clojure\n{program}\n```")).collect();
        Arc::new(Script { replies: Mutex::new(replies), told: Mutex::default() })
    }

    fn requests(&self) -> usize {
        self.told.lock().expect("whole").1
    }
}

fn with(text: &str) -> Agent {
    let prelude = Arc::new(Prelude::compile("crm.clj", text).expect("it compiles"));
    Agent::new("Look up the requested user").prelude(prelude)
}

async fn run(agent: &Agent, runtime: &Runtime, script: &Arc<Script>) -> AgentStep {
    agent.run(runtime, script.clone(), &json!({"user-id": "norm:u_123"})).await
}

fn failure(step: &AgentStep) -> &AgentFailure {
    step.result.as_ref().expect_err("it failed")
}

/// Servers, one of which has the tools that the guide's prelude requires; not every program attaches `crm`.
async fn servers(names: &[&str]) -> Runtime {
    with_servers("(ns nothing)", names).await
}

const LOOK: &str = "(return (get (:value (crm/get-user data/user-id)) \"name\"))";

#[tokio::test]
async fn an_agent_calls_and_discovers_the_export() {
    let runtime = servers(&["crm"]).await;
    let script = Script::with_replies(&["(println (keys (ns-publics 'crm)) (doc 'crm/get-user))", LOOK]);
    let step = run(&with(QUICK_START), &runtime, &script).await;
    assert_eq!(step.result, Ok(json!("Ada")));
    assert!(script.told.lock().expect("whole").0.contains("crm/get-user (get-user id) [read]"));
    // Prompts of an agent without the prelude do not mention it: they list the tools of the server only.
    let bare = Script::with_replies(&["(return 1)"]);
    run(&Agent::new("?"), &runtime, &bare).await;
    assert!(!bare.told.lock().expect("whole").0.contains("crm/get-user"));
}

#[tokio::test]
async fn every_kind_of_agent_has_it() {
    let runtime = servers(&["crm"]).await;
    let whole = "(get (:value (crm/get-user data/user-id)) \"name\")";
    let step = run(&with(QUICK_START).single_shot(), &runtime, &Script::with_replies(&[whole])).await;
    assert_eq!(step.result, Ok(json!("Ada")));
    let compiled = with(QUICK_START)
        .compile(&runtime, Script::with_replies(&[LOOK]), &[json!({"user-id": "norm:u_123"})])
        .await
        .expect("a program");
    let again = compiled.run(&json!({"user-id": "norm:u_124"})).await;
    assert_eq!(again.result, Ok(json!("Bob")));
}

#[tokio::test]
async fn what_is_missing_stops_an_agent_before_its_model_is_asked() {
    let runtime = servers(&["hr"]).await;
    for agent in [with(QUICK_START), with(QUICK_START).single_shot()] {
        let script = Script::with_replies(&[LOOK]);
        let step = run(&agent, &runtime, &script).await;
        assert_eq!(failure(&step).reason, AgentReason::PreludeAttachFailed, "{step:?}");
        assert!(failure(&step).message.contains("upstream:crm/get_user"), "{step:?}");
        assert_eq!(script.requests(), 0);
    }
}

#[tokio::test]
async fn each_turn_looks_again() {
    // The backing tool exists in the first round, and is gone in the second.
    let runtime = Arc::new(servers(&["crm"]).await);
    let place = runtime.clone();
    let swap = HostTool::new("swap", move |_: NoArguments| {
        let swapped = place.reconfigure(entries(&["hr"])).map(drop).map_err(|error| error.to_string());
        async move { swapped }
    });
    let script = Script::with_replies(&["(tool/swap)", LOOK]);
    let step = run(&with(QUICK_START).tool(swap.effect(Effect::Read)), &runtime, &script).await;
    assert_eq!((failure(&step).reason, step.turns.len()), (AgentReason::PreludeAttachFailed, 1), "{step:?}");
    assert_eq!(script.requests(), 1, "a hard stop, and no turn that could try again");
}

#[tokio::test]
async fn children_do_not_inherit_servers() {
    let runtime = servers(&["crm"]).await;
    let child = with(QUICK_START).describe("Looks up a user.");
    let script =
        Script::with_replies(&["(return (tool/lookup {}))", "(return (:ok (crm/get-user \"norm:u_123\")))"]);
    let parent = Agent::new("Who is it?").child("lookup", child);
    let step = run(&parent, &runtime, &script).await;
    assert_ne!(step.result, Ok(json!(true)), "the child has no server to call");
    assert!(step.calls.iter().all(|call| &*call.server != "crm"), "{step:?}");
}

#[tokio::test]
async fn writes_stop_before_the_next_turn_and_reads_do_not() {
    let runtime = servers(&["crm"]).await;
    let read = "(tool/call {:server \"crm\" :tool \"list_users\" :args {}})";
    let script = Script::with_replies(&[read, "(return 1)"]);
    let default = run(&Agent::new("?"), &runtime, &script).await;
    struct Always;
    impl ContinuationGuard for Always {
        fn decide(&self, _: &[CallRecord]) -> Continuation {
            Continuation::Continue
        }
    }
    let own = Agent::new("?").guard(Arc::new(Always));
    let allowed = run(&own, &runtime, &Script::with_replies(&[read, "(return 1)"])).await;
    assert_eq!(allowed.result, Ok(json!(1)), "a host's own guard decides alone");
    // The tools of this server are not marked as read-only.
    let stopped = failure(&default);
    assert_eq!(stopped.reason.name(), "partial_side_effects");
    let matched = MatchedCall { server: "crm".into(), tool: "list_users".into(), effect: "unknown" };
    assert_eq!(serde_json::to_value(&stopped.matched_calls).expect("JSON"), json!([matched]));
}
