//! What an agent asks of a model: messages in, a text and its cost out.

use async_trait::async_trait;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A model that continues a conversation. Shared by all agents that use it.
///
/// ```
/// use ptc_runtime::agent::{Llm, LlmError, LlmReply, LlmRequest, async_trait};
///
/// /// It says the same whatever it is asked.
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
    /// The model as people name it, for traces.
    fn model(&self) -> &str;

    /// Continues a conversation, within the time of the request. Dropping the future gives the request up.
    ///
    /// # Errors
    /// See [`LlmError`]. What can be tried again within the time was tried again.
    async fn complete(&self, request: LlmRequest<'_>) -> Result<LlmReply, LlmError>;
}

/// One request to a model.
#[derive(Clone, Copy, Debug)]
pub struct LlmRequest<'a> {
    /// Who it is and what it must keep to: the same in every turn of an agent.
    pub system: &'a str,
    /// The conversation so far, of which the last is the user's.
    pub messages: &'a [LlmMessage],
    /// Most tokens of the reply; `None` leaves it to the model.
    pub max_output_tokens: Option<u32>,
    /// Wall clock of the request, further tries included.
    pub timeout: Duration,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmRole {
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

/// A part of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LlmMessage {
    /// Who.
    pub role: LlmRole,
    /// What.
    pub text: String,
}

impl LlmMessage {
    /// Of the one who asks.
    pub fn user(text: impl Into<String>) -> LlmMessage {
        LlmMessage { role: LlmRole::User, text: text.into() }
    }

    /// Of the model.
    pub fn assistant(text: impl Into<String>) -> LlmMessage {
        LlmMessage { role: LlmRole::Assistant, text: text.into() }
    }
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LlmReply {
    /// Its text.
    pub text: String,
    /// What it cost, as far as the model says.
    pub usage: TokenUsage,
    /// The text ends before its end: there were no more tokens, or a filter took the rest.
    pub is_cut: bool,
}

impl From<&str> for LlmReply {
    fn from(text: &str) -> LlmReply {
        LlmReply { text: text.to_owned(), ..LlmReply::default() }
    }
}

/// Tokens, as far as a model counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenUsage {
    /// Of what it read.
    pub input: Option<u64>,
    /// Of what it wrote.
    pub output: Option<u64>,
}

impl TokenUsage {
    /// Both, if the model says one of them.
    pub fn total(self) -> Option<u64> {
        (self.input.is_some() || self.output.is_some())
            .then(|| self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0)))
    }

    /// Counts more.
    pub(super) fn add(&mut self, more: TokenUsage) {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        *self = TokenUsage { input: sum(self.input, more.input), output: sum(self.output, more.output) };
    }
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmError {
    /// Which kind of reason.
    pub kind: LlmErrorKind,
    /// One line for people, without secrets.
    pub message: String,
}

/// Kinds of reasons why a model gave no answer, by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmErrorKind {
    /// There is no key: give it.
    KeyMissing,
    /// The key is refused, or the model does not exist: correct the configuration.
    Configuration,
    /// The provider refused the request as it is, because of its length for instance.
    Refused,
    /// Too many requests: later.
    RateLimited,
    /// Nobody answers, or the provider is out of order: later.
    Unavailable,
    /// Not within its time.
    Timeout,
    /// An answer that is none.
    Malformed,
}

impl LlmErrorKind {
    /// Whether the same request may be answered later.
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
