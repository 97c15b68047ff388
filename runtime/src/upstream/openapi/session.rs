//! The tools of an OpenAPI service, and calls of them.

use super::compile::{compile, is_json};
use super::link::{Exchange, OpenApiService};
use super::load::load;
use super::plan::RequestPlan;
use crate::net::{Method, Response, StatusCode, excerpt};
use crate::secrets::SecretRegistry;
use crate::spill::SpillStore;
use crate::tasks::{self, TaskOwner};
use crate::tools::{CallTarget, Listed};
use crate::upstream::mcp::Listing;
use crate::upstream::overflow;
use crate::upstream::{CallRequest, CallResult, RawAnswer, ResultBody, UpstreamFault};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Size limit of the response to a failed call.
const FAILURE_BYTES: usize = 64 << 10;

/// Length limit of a response in a message, in characters.
const SHOWN: usize = 500;

/// Members of a problem's JSON that hold a message, in order of preference.
const SAYINGS: [&str; 6] = ["detail", "message", "error_description", "error", "title", "reason"];

/// One service, with the operations that were chosen.
pub(in crate::upstream) struct OpenApiSession {
    service: Arc<OpenApiService>,
    secrets: SecretRegistry,
    plans: BTreeMap<String, RequestPlan>,
    info: String,
    version: String,
}

impl OpenApiSession {
    /// Loads the document and compiles its operations; the caller limits the time.
    pub(in crate::upstream) async fn open(
        service: Arc<OpenApiService>,
        secrets: &SecretRegistry,
    ) -> Result<(OpenApiSession, Listed), UpstreamFault> {
        let text = load(&service).await?;
        let spec = service.spec.clone();
        let compiled = tasks::blocking(TaskOwner::Connection, move |_| compile(&text, &spec)).await;
        let compiled = compiled
            .unwrap_or_else(|| Err("the document could not be compiled".to_owned()))
            .map_err(UpstreamFault::Protocol)?;
        // Parsed like the list of any other server: limited in size, and redacted.
        let page = RawAnswer::from_bytes(format!("{{\"tools\":[{}]}}", compiled.tools.join(",")));
        let (listing, _) = Listing::default().take(page, secrets).await?;
        let mut listed = listing.finish();
        listed.notes.extend(compiled.notes);
        let info = secrets.scrub(&compiled.info).into_owned();
        let (plans, version) = (compiled.plans, compiled.version);
        Ok((OpenApiSession { service, secrets: secrets.clone(), plans, info, version }, listed))
    }

    /// Title and version of the document.
    pub(in crate::upstream) fn server_info(&self) -> &str {
        &self.info
    }

    /// The version of the specification.
    pub(in crate::upstream) fn version(&self) -> &str {
        &self.version
    }

    /// Calls an operation; the time of the call began at `begun`.
    pub(in crate::upstream) async fn call(
        &self,
        request: CallRequest,
        begun: Instant,
    ) -> Result<CallResult, UpstreamFault> {
        let CallRequest { target, arguments, timeout, sink, trace, client: _ } = request;
        let (max_bytes, store) = sink.parts();
        let CallTarget::Tool(tool) = target else {
            return Err(UpstreamFault::Protocol("a plain JSON service has tools only".to_owned()));
        };
        let Some(plan) = self.plans.get(&*tool) else {
            return Err(UpstreamFault::Protocol(format!("there is no operation for tool {tool}")));
        };
        let message =
            plan.message(&self.service.spec.base_url, arguments.as_str()).map_err(UpstreamFault::Protocol)?;
        let exchange = Exchange { method: plan.method.clone(), url: message.url, body: message.body, trace };
        let answered = async {
            let response = self.service.send(exchange).await?;
            // The arguments are charged to the account of their program until they are sent.
            drop(arguments);
            self.result(response, max_bytes, store.as_ref()).await
        };
        let answered = async {
            tokio::select! {
                answer = answered => answer,
                fault = self.service.closed() => Err(fault),
            }
        };
        match begun.checked_add(timeout) {
            Some(deadline) => {
                timeout_at(deadline, answered).await.unwrap_or(Err(UpstreamFault::Timeout(timeout)))
            }
            None => answered.await,
        }
    }

    /// The result of a successful response.
    async fn result(
        &self,
        mut response: Response,
        max_bytes: usize,
        store: Option<&SpillStore>,
    ) -> Result<CallResult, UpstreamFault> {
        let status = response.status;
        if !status.is_success() {
            return self.failure(response, max_bytes).await;
        }
        let media = response.media_type();
        let body: ResultBody = overflow::read(&mut response.body, max_bytes, store).await?.into();
        let is_empty = matches!(&body, ResultBody::Inline(text) if text.bytes().is_empty());
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
                let body = ResultBody::Inline(RawAnswer::from_bytes(body));
                Ok(CallResult::Failed { message, body })
            }
            _ => Err(UpstreamFault::Protocol(message + &advice)),
        }
    }

    /// True when the service sends any response within `patience`.
    pub(in crate::upstream) async fn is_alive(&self, patience: Duration) -> bool {
        let events = self.service.events();
        let signs = events.signs_of_life();
        let url = self.service.spec.base_url.clone();
        let question = self.service.send(Exchange { method: Method::HEAD, url, body: None, trace: None });
        matches!(timeout(patience, question).await, Ok(Ok(_))) || events.signs_of_life() > signs
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
