//! Tools that are called as tasks (the extension of 2026-07-28).

use crate::asking::form;
use crate::input_required::{elicitation, responses};
use crate::plain::{blocks, definition, text};
use ptc_server::answer::{Content, ToolAnswer};
use ptc_server::protocol::params::Params;
use ptc_server::tools::{Begun, CallContext, Definition, Facts, Job, Reporter, Responder, TaskSupport, Tool};
use serde_json::{Value, json};
use std::time::Duration;

/// What a tool does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Greets at once.
    Greet,
    /// Sleeps.
    Sleep,
    /// Fails.
    Fail,
    /// Ends without an answer, which is an error of JSON-RPC.
    Vanish,
    /// Asks so many questions at once.
    Ask(usize),
    /// Asks before it begins.
    AskFirst,
}

struct TaskTool {
    name: &'static str,
    support: TaskSupport,
    work: Work,
}

/// All such tools.
pub(crate) fn tools() -> impl Iterator<Item = Box<dyn Tool>> {
    use TaskSupport::{Forbidden, Optional, Required};
    [
        ("greet", Forbidden, Work::Greet),
        ("slow_compute", Optional, Work::Sleep),
        ("failing_job", Required, Work::Fail),
        ("protocol_error_job", Required, Work::Vanish),
        ("confirm_delete", Required, Work::Ask(1)),
        ("multi_input", Required, Work::Ask(2)),
        ("test_tool_with_task", Required, Work::AskFirst),
    ]
    .into_iter()
    .map(|(name, support, work)| Box::new(TaskTool { name, support, work }) as Box<dyn Tool>)
}

async fn work(work: Work, arguments: Value, said: String, reporter: Box<dyn Reporter>) {
    match work {
        Work::Greet => {}
        Work::Sleep => {
            tokio::time::sleep(Duration::from_secs(arguments["seconds"].as_u64().unwrap_or_default())).await;
            reporter.ended(&text("computed"));
        }
        Work::Fail => reporter.ended(&blocks(&json!([{ "type": "text", "text": "the job failed" }]), true)),
        Work::Vanish => drop(reporter),
        Work::Ask(number) => {
            let client = reporter.caller().and_then(|caller| caller.asked);
            let ask = |_| {
                let (client, form) =
                    (client.clone(), form("Sure?", &json!({ "confirm": { "type": "boolean" } }), &[]));
                async move {
                    match client {
                        Some(client) => client.ask("elicitation/create", form.to_string()).await.is_ok(),
                        None => false,
                    }
                }
            };
            let answered = futures_util::future::join_all((0..number).map(ask)).await;
            reporter.ended(&text(&format!("answered: {answered:?}")));
        }
        Work::AskFirst => reporter.ended(&text(&format!("the client says {said}"))),
    }
}

impl Tool for TaskTool {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self, _: &Facts) -> Definition {
        definition("A job", json!({ "type": "object" }))
    }

    fn task_support(&self) -> TaskSupport {
        self.support
    }

    fn keeps_state(&self) -> bool {
        self.work == Work::AskFirst
    }

    fn begin(&self, params: &Params<'_>, _: &CallContext, reply: Responder<'_>) -> Begun {
        let arguments = params.arguments_value();
        let said = responses(params.input_responses);
        if self.work == Work::AskFirst && said.is_empty() {
            let requests = json!({ "user_name": elicitation("What is your name?", "name", "string") });
            let requests = requests.as_object().cloned().unwrap_or_default();
            let content = Content::InputRequired { requests: Box::new(requests), state: None };
            return reply.with(&ToolAnswer::new(content));
        }
        if self.work == Work::Greet {
            let name = arguments["name"].as_str().unwrap_or_default();
            return reply.with(&text(&format!("Hello, {name}!")));
        }
        let (kind, said) = (self.work, Value::Object(said).to_string());
        Begun::Run(Job::new(0, move |mut reporter| -> ptc_server::tools::Cancel {
            reporter.begun();
            let working = tokio::spawn(work(kind, arguments, said, reporter));
            Box::new(move || working.abort())
        }))
    }
}
