//! The symptoms of the prelude guide as agents show them, each with its text: in a loop, as a single shot, compiled.
#![cfg(feature = "agent")]

use crate::common;
use async_trait::async_trait;
use ptc_agent::{Agent, AgentReason, AgentStep, Llm, LlmError, LlmErrorKind, LlmReply, LlmRequest};
use ptc_calls::{Effect, HostTool, NoArguments};
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A model that replies with these programs, and records the last prompt.
struct Says {
    programs: Vec<&'static str>,
    asked: AtomicUsize,
    told: Mutex<String>,
}

impl Says {
    fn these(programs: &[&'static str]) -> Arc<Says> {
        let (asked, told) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Says { programs: programs.to_vec(), asked, told })
    }
}

#[async_trait]
impl Llm for Says {
    fn model(&self) -> &str {
        "says"
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        *self.told.lock().expect("whole") = request.messages.last().expect("a message").text.clone();
        let program = self.programs.get(self.asked.fetch_add(1, Ordering::Relaxed));
        let over = || LlmError::new(LlmErrorKind::Unavailable, "nothing more to say");
        program.map(|program| LlmReply::from(*program)).ok_or_else(over)
    }
}

/// The ways in which an agent runs a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Loop,
    SingleShot,
    Compiled,
}

const MODES: [Mode; 3] = [Mode::Loop, Mode::SingleShot, Mode::Compiled];

const CRM: &str =
    "(ns crm)\n(defn get-user [id] (tool/call {:server \"crm\" :tool \"get_user\" :args {:id id}}))";
const LOGS: &str = "(ns log)\n(defn sessions [] (tool/log_sessions {}))";

fn with(agent: Agent, text: &str) -> Agent {
    agent.prelude(Arc::new(Prelude::compile("p.clj", text).expect("it compiles")))
}

/// Runs one program.
async fn step(runtime: &Runtime, agent: &Agent, mode: Mode, program: &'static str) -> (AgentStep, usize) {
    let says = Says::these(&[program]);
    let agent = agent.clone().max_turns(1);
    let step = match mode {
        Mode::Loop => agent.run(runtime, says.clone(), &json!({})).await,
        Mode::SingleShot => agent.single_shot().run(runtime, says.clone(), &json!({})).await,
        Mode::Compiled => match agent.compiled_from(runtime, program) {
            Ok(compiled) => compiled.run(&json!({})).await,
            Err(failure) => panic!("{failure}"),
        },
    };
    (step, says.asked.load(Ordering::Relaxed))
}

async fn with_server(name: &str) -> Runtime {
    let servers = vec![common::entry(name, &[])];
    let config = RuntimeConfig { servers, start: StartPolicy::All, workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("a runtime")
}

#[tokio::test]
async fn every_symptom_of_an_agent_has_its_text() {
    let runtime = with_server("fake").await;
    let plain = Agent::new("?");
    let users = with(Agent::new("?"), "(ns crm)\n(defn get-user [id] id)");
    let attach = AgentReason::PreludeAttachFailed;
    let failed = AgentReason::ProgramFailed;
    let rows: [(&str, Agent, &'static str, AgentReason, &str, usize); 5] = [
        ("not attached", plain, "(return (crm/get-user 1))", failed, "unknown namespace crm/", 1),
        (
            "no such operation",
            with(Agent::new("?"), CRM),
            "(return 1)",
            attach,
            "prelude attach failed: export `crm/get-user` requires upstream operation `upstream:crm/get_user`, but upstream \
             server `crm` is not configured for this run",
            0,
        ),
        (
            "no such tool",
            with(Agent::new("?"), LOGS),
            "(return 1)",
            attach,
            "prelude attach failed: export `log/sessions` requires granted tool `log_sessions`, but the host did not grant a \
             tool of that name for this run",
            0,
        ),
        (
            "redefined",
            users.clone(),
            "(defn crm/get-user [x] x)",
            failed,
            "cannot redefine crm/get-user: it is a public export of the protected namespace crm and cannot be redefined by \
             user code",
            1,
        ),
        (
            "protected",
            users,
            "(def crm/mine 1)",
            failed,
            "cannot define crm/mine: crm is a protected namespace whose names cannot be redefined by user code",
            1,
        ),
    ];
    for (symptom, agent, program, reason, text, asked) in rows {
        for mode in MODES {
            let (step, requests) = step(&runtime, &agent, mode, program).await;
            let failure = step.result.expect_err(symptom);
            // A loop without rounds left reports that, with the reason why the last round failed.
            let reason = match (mode, reason) {
                (Mode::Loop, AgentReason::ProgramFailed) => AgentReason::MaxTurnsExceeded,
                _ => reason,
            };
            assert_eq!(failure.reason, reason, "{symptom}, {mode:?}: {failure}");
            assert!(failure.message.contains(text), "{symptom}, {mode:?}: {failure}");
            let asked = if mode == Mode::Compiled { 0 } else { asked };
            assert_eq!(
                requests, asked,
                "{symptom}, {mode:?}: a model is asked only where its program could run"
            );
        }
    }
}

#[tokio::test]
async fn what_the_guide_says_to_do_about_it_helps() {
    let runtime = with_server("fake").await;
    let granted = HostTool::new("log_sessions", |_: NoArguments| async { Ok::<_, Infallible>(["s1"]) });
    let logs = with(Agent::new("?"), LOGS).tool(granted.effect(Effect::Read));
    let users = with(Agent::new("?"), "(ns crm)\n(defn get-user [id] {:id id})");
    let rows: [(&Agent, &'static str, Value); 2] = [
        (&logs, "(return (log/sessions))", json!(["s1"])),
        (&users, "(return (crm/get-user 1))", json!({"id": 1})),
    ];
    for (agent, program, want) in rows {
        for mode in MODES {
            let (step, _) = step(&runtime, agent, mode, program).await;
            assert_eq!(step.result.as_ref().ok(), Some(&want), "{program}, {mode:?}: {step:?}");
        }
    }
}

#[tokio::test]
async fn an_export_for_discovery_alone_is_in_no_prompt_and_can_be_called() {
    let runtime = with_server("fake").await;
    let crm = "(ns crm)\n(defn rare {:visibility :discoverable} [] 1)\n(defn usual [] (rare))";
    for single in [false, true] {
        let agent = with(Agent::new("?"), crm).max_turns(1);
        let agent = if single { agent.single_shot() } else { agent };
        let says = Says::these(&["(return [(crm/rare) (crm/usual) (count (apropos \"rare\"))])"]);
        let step = agent.run(&runtime, says.clone(), &json!({})).await;
        assert_eq!(step.result, Ok(json!([1, 1, 1])), "{step:?}");
        let told = says.told.lock().expect("whole").clone();
        assert!(told.contains("crm/usual") && !told.contains("crm/rare"), "{told}");
    }
}
