//! Answers the questions that a server puts into the result of a call (MCP input requests, revision 2026-07-28) by
//! passing them to the client that runs the program.

use crate::UpstreamFault;
use crate::client_features::{PassedRequest, forwarded};
use crate::transport::ServerEvents;
use ptc_calls::run::client::{CallingClient, Offered};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Most questions of one answer.
const MOST: usize = 16;

/// What is passed on, if the client of the run offers it.
const PASSED: Offered = Offered { elicitation: true, roots: true, urls: false };

/// The answer of a person who is not asked.
const CANCELLED: &str = r#"{"action":"cancel"}"#;

/// Questions by their names.
pub(super) type Requests<'a> = BTreeMap<String, &'a RawValue>;

#[derive(Deserialize)]
struct InputRequest<'a> {
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The answers to questions, as the JSON text of an object.
///
/// # Errors
/// A question that cannot be answered: its call fails.
pub(super) async fn answers(
    events: &ServerEvents,
    client: Option<&CallingClient>,
    requests: &Requests<'_>,
) -> Result<String, UpstreamFault> {
    if requests.len() > MOST {
        return Err(UpstreamFault::Protocol("the server asks too much at once".to_owned()));
    }
    let mut members = Vec::new();
    for (name, request) in requests {
        let answer = answer(events, client, request).await?;
        members.push(format!("{}:{answer}", serde_json::Value::from(name.as_str())));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

async fn answer(
    events: &ServerEvents,
    client: Option<&CallingClient>,
    request: &RawValue,
) -> Result<String, UpstreamFault> {
    let unanswerable = |why: &str| UpstreamFault::Protocol(format!("the server asks for input: {why}"));
    let InputRequest { method, params } =
        serde_json::from_str(request.get()).map_err(|error| unanswerable(&error.to_string()))?;
    let passed = forwarded(PASSED, events.server(), &method, params.map_or("{}", RawValue::get));
    let PassedRequest { kind, method, params } = match passed {
        None => return Err(unanswerable("nothing that a program's client can give")),
        Some(passed) => passed.map_err(unanswerable)?,
    };
    match events.client().asked_for(client, kind) {
        Some(asked) => {
            let answer = asked.ask(method, params).await.map_err(|error| unanswerable(&error.message))?;
            // A message to a server is one line.
            Ok(answer.replace(['\n', '\r'], " "))
        }
        None if method == "elicitation/create" => Ok(CANCELLED.to_owned()),
        None => Err(unanswerable("no client can be asked")),
    }
}
