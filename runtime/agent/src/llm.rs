//! The interface between agents and models: messages in, text and usage out.

use async_trait::async_trait;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A model that continues a conversation. Shared by all agents that use it.
///
/// ```
/// # mod ptc_runtime { pub use ptc_agent as agent; }
/// use ptc_runtime::agent::{Llm, LlmError, LlmReply, LlmRequest, async_trait};
///
/// /// Replies the same text to every request.
/// struct Parrot;
///
/// #[async_trait]
/// impl Llm for Parrot {
///     fn model(&self) -> &str {
///         "parrot"
///     }
///
///     async fn complete(&self, _: LlmRequest<'_>) -> Result<LlmReply, LlmError> {
///         Ok("```clojure\n(return 1)\n```".into())
///     }
/// }
/// ```
#[async_trait]
pub trait Llm: Send + Sync {
    /// The model's name in traces.
    fn model(&self) -> &str;

    /// Continues a conversation within the request's timeout. Dropping the future cancels the request.
    ///
    /// # Errors
    /// See [`LlmError`]. Temporary failures were already retried as far as time allowed.
    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError>;
}

/// One request to a model.
#[derive(Clone, Copy, Debug)]
pub struct LlmRequest<'a> {
    /// The system prompt: the same in every turn of an agent.
    pub system: &'a str,
    /// The conversation so far; the last message is the user's.
    pub messages: &'a [LlmMessage],
    /// Token limit of the reply; `None` leaves it to the model.
    pub max_output_tokens: Option<u32>,
    /// Time limit of the request, retries included.
    pub timeout: Duration,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmRole {
    /// The agent, which asks.
    User,
    /// The model, which replies.
    Assistant,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LlmMessage {
    /// Its author.
    pub role: LlmRole,
    /// Its text.
    pub text: String,
}

impl LlmMessage {
    /// A message of the agent.
    pub fn user(text: impl Into<String>) -> LlmMessage {
        LlmMessage { role: LlmRole::User, text: text.into() }
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> LlmMessage {
        LlmMessage { role: LlmRole::Assistant, text: text.into() }
    }
}

/// The reply of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LlmReply {
    /// Its text.
    pub text: String,
    /// Its token counts, as far as the model reports them.
    pub usage: TokenUsage,
    /// The text is incomplete: it reached the token limit, or a filter removed the rest.
    pub is_cut: bool,
}

impl From<&str> for LlmReply {
    fn from(text: &str) -> LlmReply {
        LlmReply { text: text.to_owned(), ..LlmReply::default() }
    }
}

/// Token counts, as far as a model reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: Option<u64>,
    /// Tokens of the reply.
    pub output: Option<u64>,
}

impl TokenUsage {
    /// The sum, if the model reports at least one of them.
    pub fn total(self) -> Option<u64> {
        (self.input.is_some() || self.output.is_some())
            .then(|| self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0)))
    }

    /// Adds other counts.
    pub(super) fn add(&mut self, more: TokenUsage) {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        *self = TokenUsage { input: sum(self.input, more.input), output: sum(self.output, more.output) };
    }
}

/// Why a model gave no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmError {
    /// The kind of failure.
    pub kind: LlmErrorKind,
    /// One line for people, without secrets.
    pub message: String,
}

/// Kinds of failure, by what the caller can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// No key is set: set it.
    KeyMissing,
    /// The key is refused, or the model does not exist: correct the configuration.
    Configuration,
    /// The provider refused this request, for example because it is too long.
    Refused,
    /// Too many requests: try later.
    RateLimited,
    /// The provider does not answer or is out of order: try later.
    Unavailable,
    /// The time limit was reached.
    Timeout,
    /// The provider's response is malformed.
    Malformed,
}

impl LlmErrorKind {
    /// Whether the same request may succeed later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, LlmErrorKind::RateLimited | LlmErrorKind::Unavailable)
    }
}

impl LlmError {
    /// An error of this kind.
    pub fn new(kind: LlmErrorKind, message: impl Into<String>) -> LlmError {
        LlmError { kind, message: message.into() }
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LlmError {}
