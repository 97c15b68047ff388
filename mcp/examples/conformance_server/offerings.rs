//! The conformance server's offerings other than tools: prompts, resources and completions.

use crate::input_required::{elicitation, responses};
use crate::plain::PNG;
use ptc_server::protocol::params::Params;
use ptc_server::protocol::{Era, RpcError};
use ptc_server::server::Offerings;
use serde_json::{Map, Value, json};

/// How long a client may cache results, in milliseconds.
const TTL: u64 = 60_000;

/// The offerings.
#[derive(Debug)]
pub(crate) struct ConformanceOfferings;

type Answer = Result<Map<String, Value>, RpcError>;

impl Offerings for ConformanceOfferings {
    fn capabilities(&self) -> Map<String, Value> {
        object(json!({ "prompts": {}, "resources": { "subscribe": true }, "completions": {} }))
    }

    fn has(&self, method: &str, era: Era) -> bool {
        match method {
            "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "completion/complete" => true,
            "resources/subscribe" | "resources/unsubscribe" => era == Era::Handshake,
            _ => false,
        }
    }

    fn answer(&self, method: &str, params: &Params<'_>, era: Era) -> Answer {
        let listed = |result: Value| {
            let mut result = object(result);
            if era == Era::Stateless {
                result.extend([("ttlMs".to_owned(), TTL.into()), ("cacheScope".to_owned(), "public".into())]);
            }
            Ok(result)
        };
        match method {
            "prompts/list" => listed(json!({ "prompts": prompts() })),
            "prompts/get" => prompt(params),
            "resources/list" => listed(json!({ "resources": resources() })),
            "resources/templates/list" => listed(json!({ "resourceTemplates": [{
                "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json",
                "description": "Data of an id",
            }] })),
            "resources/read" => listed(json!({ "contents": [read(params)?] })),
            "completion/complete" => {
                Ok(object(json!({ "completion": { "values": [], "total": 0, "hasMore": false } })))
            }
            // Subscribers would get changes, but no resource changes.
            "resources/subscribe" | "resources/unsubscribe" => Ok(Map::new()),
            _ => Err(RpcError::method_not_found()),
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn prompts() -> Value {
    let argument = |name: &str| json!({ "name": name, "description": "A text", "required": true });
    json!([
        { "name": "test_simple_prompt", "description": "One message" },
        {
            "name": "test_prompt_with_arguments", "description": "A message with two texts of the client's",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "A message with a resource",
            "arguments": [argument("resourceUri")],
        },
        { "name": "test_prompt_with_image", "description": "A message with an image" },
        { "name": "test_input_required_result_prompt", "description": "Asks for input first" },
    ])
}

fn prompt(params: &Params<'_>) -> Answer {
    let arguments = params.arguments_value();
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let message = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| message(json!({ "type": "text", "text": text }));
    let messages = match params.name.as_deref().unwrap_or_default() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            json!([
                message(json!({ "type": "resource", "resource": resource })),
                text("Please process the embedded resource above."),
            ])
        }
        "test_prompt_with_image" => json!([
            message(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
            text("Please analyze the image above."),
        ]),
        "test_input_required_result_prompt" => match responses(params.input_responses).get("user_context") {
            Some(context) => json!([text(&format!("The context: {context}"))]),
            None => {
                let question = elicitation("What context should the prompt use?", "context", "string");
                let requests = json!({ "user_context": question });
                return Ok(object(json!({ "resultType": "input_required", "inputRequests": requests })));
            }
        },
        unknown => return Err(RpcError::invalid_params(&format!("unknown prompt: {unknown}"))),
    };
    Ok(object(json!({ "messages": messages })))
}

fn resources() -> Value {
    json!([
        { "uri": "test://static-text", "name": "static text", "description": "A text", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static binary", "description": "An image", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched", "description": "One to subscribe to", "mimeType": "text/plain" },
    ])
}

fn read(params: &Params<'_>) -> Result<Value, RpcError> {
    let uri: String = params.uri.and_then(|uri| serde_json::from_str(uri.get()).ok()).unwrap_or_default();
    let text = |kind: &str, text: &str| json!({ "uri": uri, "mimeType": kind, "text": text });
    match &*uri {
        "test://static-text" => Ok(text("text/plain", "This is the content of the static text resource.")),
        "test://watched-resource" => Ok(text("text/plain", "Watched, and always the same.")),
        "test://static-binary" => Ok(json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })),
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                    .to_string();
                Ok(text("application/json", &data))
            }
            None => Err(RpcError {
                data: Some(json!({ "uri": uri })),
                ..RpcError::invalid_params("Resource not found")
            }),
        },
    }
}
