//! Tools that ask their client something while they run, over the stream of their call. Without a session the
//! client cannot be asked, and the answer says so.

use crate::plain::{blocks, definition, text, texts};
use ptc_server::protocol::params::Params;
use ptc_server::tools::{Begun, CallContext, Definition, Facts, Job, Responder, Tool};
use serde_json::{Value, json};

struct AskingTool {
    name: &'static str,
    arguments: &'static [&'static str],
    method: &'static str,
    /// Builds the parameters of the question from the arguments of the call.
    question: fn(&Value) -> Value,
}

/// All such tools.
pub(crate) fn tools() -> impl Iterator<Item = Box<dyn Tool>> {
    const ELICIT: &str = "elicitation/create";
    [
        AskingTool {
            name: "test_sampling",
            arguments: &["prompt"],
            method: "sampling/createMessage",
            question: |arguments| {
                let content = json!({ "type": "text", "text": arguments["prompt"] });
                json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 })
            },
        },
        AskingTool {
            name: "test_elicitation",
            arguments: &["message"],
            method: ELICIT,
            question: |arguments| {
                let properties = json!({
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                });
                form(arguments["message"].as_str().unwrap_or_default(), &properties, &["username", "email"])
            },
        },
        AskingTool {
            name: "test_elicitation_sep1034_defaults",
            arguments: &[],
            method: ELICIT,
            question: |_| {
                let properties = json!({
                    "name": { "type": "string", "default": "John Doe" },
                    "age": { "type": "integer", "default": 30 },
                    "score": { "type": "number", "default": 95.5 },
                    "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                    "verified": { "type": "boolean", "default": true },
                });
                form("Who are you?", &properties, &[])
            },
        },
        AskingTool {
            name: "test_elicitation_sep1330_enums",
            arguments: &[],
            method: ELICIT,
            question: |_| form("What do you choose?", &choices(), &[]),
        },
    ]
    .into_iter()
    .map(|tool| Box::new(tool) as Box<dyn Tool>)
}

/// The parameters of `elicitation/create`.
pub(crate) fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "message": message, "requestedSchema": schema })
}

fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = |noun: &str| {
        let one = |number: usize, word: &str| json!({ "const": format!("value{number}"), "title": format!("{word} {noun}") });
        json!([one(1, "First"), one(2, "Second"), one(3, "Third")])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}

impl Tool for AskingTool {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self, _: &Facts) -> Definition {
        definition("Asks its client", texts(self.arguments))
    }

    fn begin(&self, params: &Params<'_>, _: &CallContext, _: Responder<'_>) -> Begun {
        let arguments = params.arguments_value();
        let (method, question) = (self.method, (self.question)(&arguments).to_string());
        Begun::Run(Job::new(0, move |mut reporter| {
            reporter.begun();
            let asking = tokio::spawn(async move {
                let answer = match reporter.caller().and_then(|caller| caller.asked) {
                    Some(client) => client.ask(method, question).await.map_err(|error| error.message),
                    None => Err("nobody can be asked here".to_owned()),
                };
                reporter.ended(&match answer {
                    Ok(answer) => text(&format!("The client answers: {answer}")),
                    Err(why) => blocks(&json!([{ "type": "text", "text": why }]), true),
                });
            });
            Box::new(move || asking.abort())
        }))
    }
}
