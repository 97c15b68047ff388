//! Connects to an OpenAPI service: compiles its document to tools, and sends an HTTP request for each call of a tool.

use super::compile::compile;
use super::load::load;
use super::media::{JSON, is_json};
use super::plan::RequestPlan;
use super::service::{Exchange, OpenApiService};
use super::spec::OpenApiSpec;
use crate::transport::{ConnectContext, Connection, Opened, Opening, Transport};
use crate::{CallResult, RawAnswer, ResultSink, ServerRequest, UpstreamFault, listing, overflow};
use ptc_base::net::{HttpClient, Method, Response, StatusCode, excerpt};
use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::tools::CallTarget;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::timeout;

/// Size limit of the response to a failed call.
const FAILURE_BYTES: usize = 64 << 10;

/// Length limit of a response in a message, in characters.
const SHOWN: usize = 500;

/// Members of a problem's JSON that hold a message, in order of preference.
const SAYINGS: [&str; 6] = ["detail", "message", "error_description", "error", "title", "reason"];

#[async_trait::async_trait]
impl Transport for OpenApiSpec {
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        let options = self.client.clone();
        // Reads certificate files, so it runs on a blocking thread.
        let made = tasks::blocking(TaskOwner::Connection, move |_| HttpClient::new(&options)).await;
        let client = made
            .ok_or_else(|| "the client could not be made".to_owned())?
            .map_err(|error| error.to_string())?;
        let service = OpenApiService::new(self.clone(), client, context.events.clone());
        let (secrets, plans) = (context.secrets.clone(), OnceLock::new());
        Ok(Arc::new(OpenApiConnection { service, secrets, plans }))
    }

    fn describe(&self) -> String {
        self.base_url.to_string()
    }

    fn speaks_mcp(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Value {
        json!({ "type": "openapi", "url": self.base_url.as_str(), "headers": self.headers.names(),
            "operations": self.include })
    }

    fn identity(&self) -> Value {
        let document = match &self.schema {
            super::SchemaSource::Url(url) => url.to_string(),
            super::SchemaSource::File(path) => path.display().to_string(),
        };
        json!({ "descriptor": self.descriptor(), "document": document, "headers": self.headers.identity() })
    }

    fn remedy(&self, error: &str) -> String {
        super::remedy(error)
    }

    fn remedy_of_slow_start(&self, patience: Duration) -> String {
        let raise = format!("raise handshake_timeout_ms (now {})", patience.as_millis());
        format!("{raise}, or set schema_file instead of schema_url")
    }

    fn is_document(&self) -> bool {
        true
    }
}

/// One service, with the operations that were chosen.
struct OpenApiConnection {
    service: OpenApiService,
    secrets: SecretRegistry,
    /// The operations; empty until the connection is opened.
    plans: OnceLock<BTreeMap<String, RequestPlan>>,
}

#[async_trait::async_trait]
impl Connection for OpenApiConnection {
    /// Loads the document and compiles its operations; the caller limits the time.
    async fn open(&self, _: Opening) -> Result<Opened, UpstreamFault> {
        let text = load(&self.service).await?;
        let spec = self.service.spec.clone();
        let compiled = tasks::blocking(TaskOwner::Connection, move |_| compile(&text, &spec)).await;
        let compiled = compiled
            .unwrap_or_else(|| Err("the document could not be compiled".to_owned()))
            .map_err(UpstreamFault::Protocol)?;
        let left_out = compiled.notes_of_left_out();
        let mut listed = listing::read(compiled.tools, &self.secrets).await?;
        listed.notes.extend(left_out);
        for left_out in &compiled.left_out {
            tracing::debug!("left out: {left_out}");
        }
        listed.notes.extend(compiled.notes);
        let _ = self.plans.set(compiled.plans);
        let server_info = self.secrets.scrub(&compiled.info).into_owned();
        Ok(Opened { listed, server_info, version: compiled.version, tools_may_change: false })
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let ServerRequest { target, arguments, sink, trace, .. } = request;
        let CallTarget::Tool(tool) = target else {
            return Err(UpstreamFault::Protocol("a plain JSON service has tools only".to_owned()));
        };
        let Some(plan) = self.plans.get().and_then(|plans| plans.get(&*tool)) else {
            return Err(UpstreamFault::Protocol(format!("there is no operation for tool {tool}")));
        };
        let message =
            plan.message(&self.service.spec.base_url, arguments.as_str()).map_err(UpstreamFault::Protocol)?;
        let (method, accept) = (plan.method.clone(), plan.accept.clone());
        let body = message.body.zip(plan.body.clone());
        let exchange = Exchange { method, url: message.url, accept, body, trace };
        let answered = async {
            let response = self.service.send(exchange).await?;
            // The arguments are charged to the account of their program until they are sent.
            drop(arguments);
            self.result(response, &sink).await
        };
        self.service.life.unless_closed(answered).await?
    }

    /// True when the service sends any response within `patience`.
    async fn is_alive(&self, patience: Duration) -> bool {
        let events = self.service.events();
        let signs = events.signs_of_life();
        let url = self.service.spec.base_url.clone();
        let (method, accept) = (Method::HEAD, JSON.to_owned());
        let question = self.service.send(Exchange { method, url, accept, body: None, trace: None });
        matches!(timeout(patience, question).await, Ok(Ok(_))) || events.signs_of_life() > signs
    }

    fn close(&self, why: &str) {
        self.service.life.close(why);
    }

    async fn shut_down(&self) {
        self.close("upstream is stopped");
    }
}

impl OpenApiConnection {
    /// The result of a successful response.
    async fn result(&self, mut response: Response, sink: &ResultSink) -> Result<CallResult, UpstreamFault> {
        let status = response.status;
        if !status.is_success() {
            return self.failure(response, sink.max_bytes).await;
        }
        let media = response.media_type();
        let body = overflow::read(&mut response.body, sink).await?;
        let is_empty = body.spilled().is_none() && body.bytes().is_empty();
        if is_empty || status == StatusCode::NO_CONTENT || media.is_empty() || is_json(&media) {
            return Ok(CallResult::Json(body));
        }
        Err(UpstreamFault::Protocol(format!("http {status}: the answer is {media}, not JSON")))
    }

    /// The failure of any other response.
    async fn failure(&self, mut response: Response, max_bytes: usize) -> Result<CallResult, UpstreamFault> {
        let status = response.status;
        let asks = response.header("www-authenticate").is_some();
        let media = response.media_type();
        let advice = self.service.advice(&response);
        let body = response.body.beginning(FAILURE_BYTES.min(max_bytes)).await;
        let said = self.said(&body);
        let message = match said.is_empty() {
            true => format!("http {status}"),
            false => format!("http {status}: {said}"),
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(UpstreamFault::Unavailable(message + &advice))
            }
            StatusCode::FORBIDDEN if asks => Err(UpstreamFault::Unavailable(message + &advice)),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(UpstreamFault::Unavailable(message + &advice)),
            status if status.is_client_error() => {
                let is_whole =
                    is_json(&media) && serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
                let body = if is_whole { body } else { Vec::new() };
                Ok(CallResult::Failed { message, body: RawAnswer::from_bytes(body) })
            }
            _ => Err(UpstreamFault::Protocol(message + &advice)),
        }
    }

    /// The message of a response, in one short text. Secrets are redacted before anything is cut.
    fn said(&self, body: &[u8]) -> String {
        let text = match serde_json::from_slice::<Value>(body) {
            Ok(value) => {
                let told = SAYINGS.iter().find_map(|key| match &value[*key] {
                    Value::String(text) => Some(text.clone()),
                    Value::Object(inner) => inner.get("message").and_then(Value::as_str).map(str::to_owned),
                    _ => None,
                });
                told.unwrap_or_else(|| value.to_string())
            }
            Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
        };
        let clean = self.secrets.scrub_cut(&text);
        excerpt(&clean, SHOWN)
    }
}
