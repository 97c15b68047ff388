//! Builds the HTTP headers of an MCP message: content types, session, protocol version, and the parts of a request that
//! MCP repeats in headers.

use super::session::HttpSession;
use crate::ServerRequest;
use crate::request::{Era, Mirrored};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_base::net::{HeaderName, Headers, Response};
use ptc_base::oauth::LoginId;
use ptc_calls::run::trace::TraceContext;
use std::sync::{Arc, OnceLock};

const ACCEPT: HeaderName = HeaderName::from_static("accept");
const CONTENT_TYPE: HeaderName = HeaderName::from_static("content-type");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// In the eras with a handshake: the session of a message.
const SESSION: &str = "mcp-session-id";

/// The longest id of a session: each request repeats it.
const LONGEST_SESSION: usize = 4_096;

/// The session that a server begins with an answer.
pub(super) fn session_of(response: &Response) -> Option<&str> {
    response.header(SESSION).filter(|id| !id.is_empty() && id.len() <= LONGEST_SESSION)
}

/// Whose token a request may carry.
#[derive(Debug)]
pub(super) enum TokenLimit {
    /// That of any login.
    Any,
    /// Only that of the login with which its session began; `None`: without a token.
    Session(Option<LoginId>),
    /// Only that of the first login of a stream.
    Stream(Arc<OnceLock<LoginId>>),
}

impl TokenLimit {
    /// True where the token of this login may be sent. It is sent then.
    pub(super) fn allows(&self, login: &LoginId) -> bool {
        match self {
            TokenLimit::Any => true,
            TokenLimit::Session(began) => began.as_ref() == Some(login),
            TokenLimit::Stream(first) => first.get_or_init(|| login.clone()) == login,
        }
    }
}

/// Builds the headers of one request.
pub(super) struct MessageHeaders {
    pub(super) headers: Headers,
    /// Whose token may join them.
    pub(super) token: TokenLimit,
}

impl MessageHeaders {
    /// For a message that is posted.
    pub(super) fn post(configured: &Headers) -> MessageHeaders {
        let mut metadata = MessageHeaders::plain(configured);
        metadata.set(CONTENT_TYPE, "application/json");
        metadata.set(ACCEPT, "application/json, text/event-stream");
        metadata
    }

    /// For a request for a stream of events, from an event on.
    pub(super) fn events(configured: &Headers, from: Option<&str>) -> MessageHeaders {
        let mut metadata = MessageHeaders::plain(configured);
        metadata.set(ACCEPT, "text/event-stream");
        if let Some(id) = from {
            metadata.set(LAST_EVENT_ID, id);
        }
        metadata
    }

    /// For the end of a session.
    pub(super) fn plain(configured: &Headers) -> MessageHeaders {
        MessageHeaders { headers: configured.clone(), token: TokenLimit::Any }
    }

    /// Adds the session and the negotiated revision. The request then carries no token of another login.
    pub(super) fn session(mut self, session: &HttpSession) -> MessageHeaders {
        if let Some(id) = &session.id {
            self.set(HeaderName::from_static(SESSION), id);
            self.token = TokenLimit::Session(session.login.clone());
        }
        if let Some(revision) = session.revision.as_deref().filter(|revision| !revision.is_empty()) {
            self.set(REVISION, revision);
        }
        self
    }

    /// Adds what a request repeats in headers: in the stateless era revision, method and name, so that a server need not
    /// read the body; arguments that a schema marks; the trace.
    pub(super) fn request(mut self, request: &ServerRequest) -> MessageHeaders {
        if let Era::Stateless(revision) = request.envelope.era {
            self.set(REVISION, revision);
            self.set(METHOD, request.method());
            if let Some(subject) = request.target.subject() {
                self.set(NAME, &encoded(subject));
            }
        }
        for Mirrored { name, value } in &request.envelope.mirrored {
            if let Ok(name) = HeaderName::try_from(format!("mcp-param-{name}")) {
                self.set(name, &encoded(value));
            }
        }
        self.trace(request.trace.as_ref())
    }

    /// Adds the trace.
    pub(super) fn trace(mut self, trace: Option<&TraceContext>) -> MessageHeaders {
        for (name, text) in trace.iter().flat_map(|trace| trace.parts()) {
            self.set(HeaderName::from_static(name), text);
        }
        self
    }

    /// Limits the token to that of the first login of the stream whose session the address names.
    pub(super) fn in_stream_of(self, first: &Arc<OnceLock<LoginId>>) -> MessageHeaders {
        MessageHeaders { token: TokenLimit::Stream(first.clone()), ..self }
    }

    /// Sets a header. A value that no header can carry is left out: the server reports what is missing.
    fn set(&mut self, name: HeaderName, value: &str) {
        if let Err(why) = self.headers.set(name.clone(), value) {
            tracing::debug!(header = name.as_str(), "{why}");
        }
    }
}

/// A text as the value of a header: itself, or its base64 between marks where a header could not carry it.
fn encoded(text: &str) -> String {
    const OPEN: &str = "=?base64?";
    const CLOSE: &str = "?=";
    let is_safe = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) && text.trim() == text;
    let looks_encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    if is_safe && !looks_encoded {
        text.to_owned()
    } else {
        format!("{OPEN}{}{CLOSE}", STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_the_specification_encodes_them() {
        let table = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ];
        for (text, header) in table {
            assert_eq!(encoded(text), header);
        }
    }
}
