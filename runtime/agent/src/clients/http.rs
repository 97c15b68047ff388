//! Sends one request to a language model over HTTP and reads the reply, which may be streamed, with retries up to a
//! deadline.

use super::{anthropic, openai};
use crate::llm::{Llm, LlmError, LlmErrorKind, LlmReply, LlmRequest};
use async_trait::async_trait;
use ptc_base::net::{
    Body, HeaderError, HeaderName, Headers, HttpClient, Method, NetError, NetFault, Payload, Response,
    StatusCode, Url, excerpt,
};
use ptc_base::secrets::{Credential, SecretRegistry};
use ptc_upstream::{EventParser, ServerSentEvent};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Size limit of a response.
const ANSWER_BYTES: usize = 8 << 20;
/// Size limits of an error response, in bytes and in characters.
const ERROR_BYTES: usize = 64 << 10;
const SHOWN: usize = 500;
/// How long a stream may be silent.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// The API that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelProtocol {
    OpenAi,
    Anthropic,
}

/// How long a stream may be silent after the model's last word. Most streams announce their end; some only
/// stop.
const PAUSE: Duration = Duration::from_secs(3);

/// A reply that arrives in pieces.
#[derive(Default)]
pub(super) struct Partial {
    pub(super) reply: LlmReply,
    /// The model reported the end of its reply.
    pub(super) is_complete: bool,
}

impl ModelProtocol {
    /// The path below the base address.
    pub(super) const fn path(self) -> &'static str {
        match self {
            ModelProtocol::OpenAi => "/chat/completions",
            ModelProtocol::Anthropic => "/v1/messages",
        }
    }

    pub(super) fn set_headers(
        self,
        headers: &mut Headers,
        key: Option<&Credential>,
    ) -> Result<(), HeaderError> {
        headers.set(HeaderName::from_static("content-type"), "application/json")?;
        match (self, key) {
            (ModelProtocol::Anthropic, key) => {
                headers.plain("anthropic-version", anthropic::VERSION)?;
                key.map_or(Ok(()), |key| headers.secret("x-api-key", key))
            }
            (ModelProtocol::OpenAi, Some(key)) => {
                headers.secret("authorization", &Credential::composed(format!("Bearer {}", key.expose())))
            }
            (ModelProtocol::OpenAi, None) => Ok(()),
        }
    }
}

/// A model of a provider.
pub(super) struct HttpModel {
    pub(super) client: HttpClient,
    pub(super) secrets: SecretRegistry,
    pub(super) url: Url,
    pub(super) headers: Headers,
    /// The provider's name in messages; the next field is the variable that holds its key.
    pub(super) title: &'static str,
    pub(super) key_name: Option<&'static str>,
    /// Name with the provider, for messages.
    pub(super) model: String,
    /// Name that the provider expects.
    pub(super) id: String,
    pub(super) protocol: ModelProtocol,
    pub(super) stream: bool,
    pub(super) retries: u32,
    pub(super) pause: Duration,
}

/// A failed try, and how long the provider asks clients to wait.
struct FailedTry {
    error: LlmError,
    retry_after: Option<Duration>,
}

impl From<LlmError> for FailedTry {
    fn from(error: LlmError) -> FailedTry {
        FailedTry { error, retry_after: None }
    }
}

#[async_trait]
impl Llm for HttpModel {
    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
        let body = match self.protocol {
            ModelProtocol::OpenAi => {
                let is_openai = self.url.host_str() == Some("api.openai.com");
                openai::body(&request, &self.id, self.stream, is_openai)
            }
            ModelProtocol::Anthropic => anthropic::body(&request, &self.id, self.stream),
        };
        let body = body.to_string();
        let begun = Instant::now();
        let mut pause = self.pause;
        for left in (0..=self.retries).rev() {
            let time = request.timeout.saturating_sub(begun.elapsed());
            let tried = tokio::time::timeout(time, self.once(body.clone(), Instant::now() + time)).await;
            let failed = match tried {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(failed)) => failed,
                Err(_) => {
                    let text = format!("{}: no answer within {} ms", self.title, request.timeout.as_millis());
                    return Err(LlmError::new(LlmErrorKind::Timeout, text));
                }
            };
            let wait = failed.retry_after.unwrap_or(pause);
            let is_in_time = begun.elapsed().saturating_add(wait) < request.timeout;
            if left == 0 || !failed.error.kind.is_temporary() || !is_in_time {
                return Err(failed.error);
            }
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2);
        }
        // Unreachable: the last try returns.
        Err(LlmError::new(LlmErrorKind::Unavailable, format!("{} was not asked", self.title)))
    }
}

impl HttpModel {
    async fn once(&self, body: String, end: Instant) -> Result<LlmReply, FailedTry> {
        let sent = self.client.send(Method::POST, &self.url, &self.headers, Some(Payload::from(body)));
        let response = sent.await.map_err(|error| self.net(&error))?;
        if !response.status.is_success() {
            return Err(self.refused(response).await);
        }
        if response.media_type() == "text/event-stream" {
            return Ok(self.streamed(response.body, end).await?);
        }
        let mut body = response.body;
        let answer = body.read(ANSWER_BYTES).await.map_err(|error| self.net(&error))?;
        let answer: Json = serde_json::from_slice(&answer)
            .map_err(|error| self.malformed(&format!("an answer that is no JSON ({error})")))?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(self.unavailable(&self.said(error)).into());
        }
        let reply = match self.protocol {
            ModelProtocol::OpenAi => openai::reply(&answer),
            ModelProtocol::Anthropic => anthropic::reply(&answer),
        };
        Ok(reply.ok_or_else(|| self.malformed("an answer without a message"))?)
    }

    /// Reads a streamed reply. After the model's last word nothing that follows is a failure: the reply is
    /// complete when the stream says so, ends, breaks, or is silent for [`PAUSE`].
    async fn streamed(&self, mut body: Body, end: Instant) -> Result<LlmReply, LlmError> {
        let (mut parser, mut partial) = (EventParser::default(), Partial::default());
        let (mut bytes, mut quiet_at) = (0, end);
        loop {
            let next = match partial.is_complete {
                false => body.chunk().await,
                true => match tokio::time::timeout_at(quiet_at.into(), body.chunk()).await {
                    Ok(next) => next,
                    Err(_) => return Ok(partial.reply),
                },
            };
            let chunk = match next {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(_) if partial.is_complete => break,
                Err(error) => return Err(self.net(&error)),
            };
            bytes += chunk.len();
            if bytes > ANSWER_BYTES {
                return Err(self.malformed(&format!("more than {ANSWER_BYTES} bytes")));
            }
            parser.push(chunk);
            while let Some(event) = parser.next(ANSWER_BYTES, &|| None) {
                let before = (partial.reply.text.len(), partial.is_complete);
                if self.take(&mut partial, event)? {
                    return Ok(partial.reply);
                }
                if before != (partial.reply.text.len(), partial.is_complete) {
                    // With little time left, half of it is reserved for the caller.
                    let now = Instant::now();
                    quiet_at = now + PAUSE.min(end.saturating_duration_since(now) / 2);
                }
            }
        }
        if let Some(event) = parser.finish() {
            let taken = self.take(&mut partial, event);
            if !partial.is_complete {
                taken?;
            }
        }
        match partial.is_complete {
            true => Ok(partial.reply),
            false => Err(self.unavailable("its stream ended too early")),
        }
    }

    /// Processes one event; true at the end.
    fn take(&self, partial: &mut Partial, event: ServerSentEvent) -> Result<bool, LlmError> {
        let ServerSentEvent::Event { data, .. } = event else {
            return Err(self.malformed("an event that is too large"));
        };
        if data == b"[DONE]" {
            partial.is_complete = true;
            return Ok(true);
        }
        let data: Json = serde_json::from_slice(&data)
            .map_err(|error| self.malformed(&format!("an event that is no JSON ({error})")))?;
        if let Some(error) = data.get("error").filter(|error| !error.is_null()) {
            return Err(self.unavailable(&self.said(error)));
        }
        Ok(match self.protocol {
            ModelProtocol::OpenAi => openai::event(partial, &data),
            ModelProtocol::Anthropic => anthropic::event(partial, &data),
        })
    }

    /// Reads a response with an error status.
    async fn refused(&self, mut response: Response) -> FailedTry {
        let status = response.status;
        let seconds = response.header("retry-after").and_then(|text| text.trim().parse().ok());
        let retry_after = seconds.map(Duration::from_secs);
        let text = response.body.beginning(ERROR_BYTES).await;
        let answer = serde_json::from_slice::<Json>(&text).unwrap_or_default();
        let why = match answer.get("error") {
            Some(error) => self.said(error),
            None => self.excerpt(&String::from_utf8_lossy(&text)),
        };
        let code = answer.pointer("/error/code").and_then(Json::as_str).unwrap_or_default();
        let kind = match status {
            _ if code == "insufficient_quota" => LlmErrorKind::Configuration,
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::PAYMENT_REQUIRED => LlmErrorKind::Configuration,
            StatusCode::TOO_MANY_REQUESTS => LlmErrorKind::RateLimited,
            StatusCode::REQUEST_TIMEOUT => LlmErrorKind::Unavailable,
            status if status.is_server_error() => LlmErrorKind::Unavailable,
            _ => LlmErrorKind::Refused,
        };
        let hint = match (status, self.key_name) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(key)) => format!("; check {key}"),
            (StatusCode::NOT_FOUND, _) => format!("; is there a model {}?", self.id),
            _ => String::new(),
        };
        let text = format!("{} answered {}: {why}{hint}", self.title, status.as_u16());
        FailedTry { error: LlmError::new(kind, text), retry_after }
    }

    fn net(&self, error: &NetError) -> LlmError {
        let kind = match error.fault {
            NetFault::Setup | NetFault::Redirect | NetFault::Tls => LlmErrorKind::Configuration,
            NetFault::Garbage | NetFault::TooLarge { .. } => LlmErrorKind::Malformed,
            _ => LlmErrorKind::Unavailable,
        };
        // The error may name the target of a redirect, which is text of the server.
        LlmError::new(kind, format!("{}: {}", self.title, self.excerpt(&error.to_string())))
    }

    fn malformed(&self, what: &str) -> LlmError {
        LlmError::new(LlmErrorKind::Malformed, format!("{} gave {what}", self.title))
    }

    fn unavailable(&self, why: &str) -> LlmError {
        LlmError::new(LlmErrorKind::Unavailable, format!("{}: {why}", self.title))
    }

    /// The message in a provider's error. It may quote the request, keys included.
    fn said(&self, error: &Json) -> String {
        let text = match error {
            Json::String(text) => text.clone(),
            error => {
                error.get("message").and_then(Json::as_str).map_or_else(|| error.to_string(), str::to_owned)
            }
        };
        self.excerpt(&text)
    }

    /// The beginning of a provider's text. Secrets are redacted first: cutting first could leave a part of
    /// one.
    fn excerpt(&self, text: &str) -> String {
        excerpt(&self.secrets.scrub_cut(text), SHOWN)
    }
}
