//! Tools that ask in a response, and are called again with the client's answers (2026-07-28). The server stores
//! nothing between two calls: the state comes back from the client, with a signature.

use crate::asking::form;
use crate::plain::{definition, text};
use ptc_server::answer::{Content, ToolAnswer};
use ptc_server::protocol::RpcError;
use ptc_server::protocol::borrowed::Raw;
use ptc_server::protocol::params::Params;
use ptc_server::tools::{Begun, CallContext, Definition, Facts, Responder, Tool};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::SystemRandom;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;

/// A tool, with its questions for each round.
struct RoundsTool {
    name: &'static str,
    rounds: Vec<Map<String, Value>>,
    /// Key that signs the number of the round in the state. Without a key there is one round, and no state.
    key: Option<Arc<Key>>,
}

/// All such tools.
///
/// # Errors
/// The system has no random numbers for a key.
pub(crate) fn tools() -> io::Result<impl Iterator<Item = Box<dyn Tool>>> {
    let key = Key::generate(HMAC_SHA256, &SystemRandom::new())
        .map_err(|_| io::Error::other("no random numbers"))?;
    let key = Some(Arc::new(key));
    let name = || elicitation("What is your name?", "name", "string");
    let confirm = || elicitation("Please confirm", "ok", "boolean");
    let roots = || json!({ "method": "roots/list", "params": {} });
    let tool = |name, rounds: Vec<Value>, key: &Option<Arc<Key>>| {
        let rounds = rounds.into_iter().map(|round| match round {
            Value::Object(round) => round,
            _ => Map::new(),
        });
        RoundsTool { name, rounds: rounds.collect(), key: key.clone() }
    };
    Ok([
        tool("test_input_required_result_elicitation", vec![json!({ "user_name": name() })], &None),
        tool("test_streaming_elicitation", vec![json!({ "user_name": name() })], &None),
        tool(
            "test_input_required_result_sampling",
            vec![json!({ "capital_question": sampling("What is the capital of France?", 100) })],
            &None,
        ),
        tool("test_input_required_result_list_roots", vec![json!({ "client_roots": roots() })], &None),
        tool("test_input_required_result_request_state", vec![json!({ "confirm": confirm() })], &key),
        tool("test_input_required_result_tampered_state", vec![json!({ "confirm": confirm() })], &key),
        tool(
            "test_input_required_result_multiple_inputs",
            vec![json!({
                "user_name": name(), "greeting": sampling("Generate a greeting", 50), "client_roots": roots(),
            })],
            &key,
        ),
        tool(
            "test_input_required_result_multi_round",
            vec![
                json!({ "step1": elicitation("Step 1: What is your name?", "name", "string") }),
                json!({ "step2": elicitation("Step 2: What is your favorite color?", "color", "string") }),
            ],
            &key,
        ),
        tool(
            "test_input_required_result_capabilities",
            vec![json!({ "user_name": name(), "greeting": sampling("Generate a greeting", 50) })],
            &None,
        ),
    ]
    .into_iter()
    .map(|tool| Box::new(tool) as Box<dyn Tool>))
}

/// An elicitation of one value.
pub(crate) fn elicitation(message: &str, name: &str, kind: &str) -> Value {
    let params = form(message, &json!({ name: { "type": kind } }), &[name]);
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling(prompt: &str, tokens: u32) -> Value {
    let content = json!({ "type": "text", "text": prompt });
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": tokens });
    json!({ "method": "sampling/createMessage", "params": params })
}

/// The capability that a client needs for a request.
fn capability(request: &Value) -> &'static str {
    match request["method"].as_str() {
        Some("elicitation/create") => "elicitation",
        Some("sampling/createMessage") => "sampling",
        _ => "roots",
    }
}

/// The client's answers by name, without those that are not objects.
pub(crate) fn responses(raw: Option<Raw<'_>>) -> Map<String, Value> {
    let all: Map<String, Value> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    all.into_iter().filter(|(_, answer)| answer.is_object()).collect()
}

impl RoundsTool {
    fn state(&self, round: usize) -> Option<String> {
        let key = self.key.as_ref()?;
        let said = format!("{}:{round}", self.name);
        let signature = sign(key, said.as_bytes());
        let digits: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{round}:{digits}"))
    }

    /// The round of a call.
    fn round(&self, state: Option<Raw<'_>>) -> Result<usize, RpcError> {
        let (Some(key), Some(state)) = (&self.key, state) else { return Ok(0) };
        let wrong = || RpcError::invalid_params("requestState is not one of ours");
        let state: String = serde_json::from_str(state.get()).map_err(|_| wrong())?;
        let (round, digits) = state.split_once(':').ok_or_else(wrong)?;
        let round: usize = round.parse().map_err(|_| wrong())?;
        let bytes: Result<Vec<u8>, _> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(digits.get(at..at + 2).unwrap_or("-"), 16))
            .collect();
        let said = format!("{}:{round}", self.name);
        verify(key, said.as_bytes(), &bytes.map_err(|_| wrong())?).map_err(|_| wrong())?;
        Ok(round)
    }
}

impl Tool for RoundsTool {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self, _: &Facts) -> Definition {
        definition("Asks for input before it answers", json!({ "type": "object" }))
    }

    fn keeps_state(&self) -> bool {
        true
    }

    fn begin(&self, params: &Params<'_>, _: &CallContext, reply: Responder<'_>) -> Begun {
        let mut round = match self.round(params.request_state) {
            Ok(round) => round,
            Err(error) => return Begun::Refused(Box::new(error)),
        };
        let declared: Value = params
            .declared_capabilities()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let said = responses(params.input_responses);
        // A client that has answered everything in a round goes on to the next one.
        if self.rounds.get(round).is_some_and(|asked| asked.keys().all(|name| said.contains_key(name))) {
            round += 1;
        }
        let Some(asked) = self.rounds.get(round) else {
            return reply.with(&text(&format!("state-ok, and the client says: {}", Value::Object(said))));
        };
        let is_able = |request: &Value| declared[capability(request)].is_object();
        // A client without capabilities is asked as well: the conformance suite looks at the question.
        let asks_all = declared.as_object().is_none_or(Map::is_empty);
        let requests = asked
            .iter()
            .filter(|(_, request)| asks_all || is_able(request))
            .map(|(n, r)| (n.clone(), r.clone()));
        let content =
            Content::InputRequired { requests: Box::new(requests.collect()), state: self.state(round) };
        reply.with(&ToolAnswer::new(content))
    }
}
