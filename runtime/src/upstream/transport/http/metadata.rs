//! What stands in the headers of a message beside its text.

use crate::net::{HeaderName, Headers, Response};
use crate::run::trace::TraceContext;
use crate::upstream::ServerRequest;
use crate::upstream::request::{Era, Mirrored};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ACCEPT: HeaderName = HeaderName::from_static("accept");
const CONTENT_TYPE: HeaderName = HeaderName::from_static("content-type");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Of the eras with a handshake: the session that a message belongs to.
const SESSION: &str = "mcp-session-id";

/// The longest name of a session: it is said again in each request.
const LONGEST_SESSION: usize = 4_096;

/// The session that a server begins with an answer.
pub(super) fn session_of(response: &Response) -> Option<&str> {
    response.header(SESSION).filter(|id| !id.is_empty() && id.len() <= LONGEST_SESSION)
}

/// Headers of one request in the making.
pub(super) struct MessageHeaders(Headers);

impl MessageHeaders {
    /// Of a message that is posted.
    pub(super) fn post(configured: &Headers) -> MessageHeaders {
        let mut metadata = MessageHeaders(configured.clone());
        metadata.set(CONTENT_TYPE, "application/json");
        metadata.set(ACCEPT, "application/json, text/event-stream");
        metadata
    }

    /// Of a request for a stream of events, from an event on.
    pub(super) fn events(configured: &Headers, from: Option<&str>) -> MessageHeaders {
        let mut metadata = MessageHeaders(configured.clone());
        metadata.set(ACCEPT, "text/event-stream");
        if let Some(id) = from {
            metadata.set(LAST_EVENT_ID, id);
        }
        metadata
    }

    /// Of the end of a session.
    pub(super) fn plain(configured: &Headers) -> MessageHeaders {
        MessageHeaders(configured.clone())
    }

    /// Belongs to a session, and to a revision that was agreed on.
    pub(super) fn session(mut self, id: Option<&str>, revision: Option<&str>) -> MessageHeaders {
        if let Some(id) = id {
            self.set(HeaderName::from_static(SESSION), id);
        }
        if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
            self.set(REVISION, revision);
        }
        self
    }

    /// What a request repeats of itself in headers: in the stateless era what a server wants to know without reading
    /// the body; arguments whose schema asks for it; the trace.
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

    /// Belongs to a trace.
    pub(super) fn trace(mut self, trace: Option<&TraceContext>) -> MessageHeaders {
        for (name, text) in trace.iter().flat_map(|trace| trace.parts()) {
            self.set(HeaderName::from_static(name), text);
        }
        self
    }

    pub(super) fn headers(&self) -> &Headers {
        &self.0
    }

    /// A value that no header can carry is left out: the server says what it misses.
    fn set(&mut self, name: HeaderName, value: &str) {
        if let Err(why) = self.0.set(name.clone(), value) {
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
