//! Reads an HTTP response with an error status, and decides whether the session is lost, the server speaks the
//! other HTTP transport (SSE), or only this request failed.

use super::wire::LoginTrouble;
use crate::UpstreamFault;
use crate::jsonrpc::message::{self, Incoming, OversizeKind};
use crate::jsonrpc::{ErrorObject, error};
use ptc_base::net::{Response, StatusCode, excerpt, explain_challenges};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes that are read of the body of a refusal.
const BODY: usize = 16 << 10;

/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Characters of it that are shown.
const SHOWN: usize = 200;

/// A refused request.
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    /// What the server says, as an error of JSON-RPC if it is one.
    error: Option<ErrorObject>,
    /// The request that the body answers, if it names one.
    answered: Option<u64>,
    /// What it says otherwise, in short.
    text: String,
    /// The authentication that it asks for, in words.
    challenge: Option<String>,
    retry_after: Option<String>,
    /// What stands between the request and a token.
    login: Option<LoginTrouble>,
}

impl HttpRefusal {
    pub(super) async fn read(mut response: Response, login: Option<LoginTrouble>) -> HttpRefusal {
        let status = response.status;
        let body = timeout(PATIENCE, response.body.beginning(BODY)).await.unwrap_or_default();
        let is_text = !response.media_type().contains("html");
        let text =
            if is_text { excerpt(String::from_utf8_lossy(&body).trim(), SHOWN) } else { String::new() };
        let (error, answered) = match message::parse(body) {
            Incoming::Response { id, body } => (body.err(), Some(id)),
            Incoming::Broken { why, ids, .. } => (Some(ErrorObject::about(why)), ids.first().copied()),
            // Only its beginning was read.
            Incoming::Open(text) => match message::identify(&text, b"") {
                OversizeKind::Response(id) => (None, Some(id)),
                OversizeKind::Other | OversizeKind::Unknown => (None, None),
            },
            _ => (None, None),
        };
        let challenge = (status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN)
            .then(|| explain_challenges(response.headers("www-authenticate")))
            .flatten();
        let retry_after = response.header("retry-after").map(|after| error::shorten(after.to_owned()));
        HttpRefusal { status, error, answered, text, challenge, retry_after, login }
    }

    /// The server itself answered, not something in front of it.
    pub(super) fn is_answer(&self) -> bool {
        self.error.is_some()
    }

    /// The body is the answer to this request: the server may have executed it.
    pub(super) fn answers(&self, id: u64) -> bool {
        self.answered == Some(id)
    }

    /// The server no longer knows the session that the request named. By the specification it says so with 404; many
    /// servers say so with 400 and a text about the session. Mostly the body names no request, because they have not read
    /// it. An answer to a request says nothing about the session, unless its text does.
    pub(super) fn is_lost_session(&self) -> bool {
        let says = |text: &str| {
            let text = text.to_ascii_lowercase();
            // The SDK for TypeScript: "Bad Request: Server not initialized".
            text.contains("session") || text.contains("server not initialized")
        };
        let is_about_session =
            says(&self.text) || self.error.as_ref().is_some_and(|error| says(&error.message));
        match self.status {
            StatusCode::NOT_FOUND => self.answered.is_none() || is_about_session,
            StatusCode::BAD_REQUEST => self.answered.is_none() && is_about_session,
            _ => false,
        }
    }

    /// True for an answer that a server of another transport may give: it does not know the request.
    pub(super) fn is_foreign(&self) -> bool {
        let is_unknown = matches!(
            self.status,
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
        );
        is_unknown && self.error.is_none()
    }

    /// The fault of a request.
    pub(super) fn fault(self, method: &str) -> UpstreamFault {
        match self.login {
            Some(LoginTrouble::Needed(need)) => return UpstreamFault::LoginRequired(need),
            Some(LoginTrouble::ScopeDenied(why)) => return UpstreamFault::ScopeDenied(why),
            Some(LoginTrouble::Other(_)) | None => {}
        }
        let status = self.status;
        // Servers of the handshake era may fail in any way at the question that they do not know.
        let is_unknown = method == "server/discover"
            && (status == StatusCode::INTERNAL_SERVER_ERROR || self.answered.is_some());
        let is_down = status.is_server_error() && !is_unknown;
        let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        // A token that could not be renewed now may be renewed later. What answers the request is final.
        if is_busy || (is_down && self.answered.is_none()) || self.login.is_some() {
            return UpstreamFault::Transient { why: self.words(), after: self.pause() };
        }
        if is_down || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return UpstreamFault::Unavailable(self.words());
        }
        let words = self.words();
        UpstreamFault::Rpc(self.error.unwrap_or_else(|| ErrorObject::about(words)))
    }

    /// How long the server wants to be left alone, if it says so in seconds.
    fn pause(&self) -> Option<Duration> {
        self.retry_after.as_deref()?.trim().parse().ok().map(Duration::from_secs)
    }

    /// `http 401 Unauthorized: …; …`.
    pub(super) fn words(&self) -> String {
        let mut words = format!("http {}", self.status);
        let said = self.error.as_ref().map_or(self.text.as_str(), |error| &error.message);
        if !said.is_empty() {
            words += &format!(": {}", excerpt(said, SHOWN + 1));
        }
        if let Some(challenge) = &self.challenge {
            words += &format!("; the server asks for {challenge}");
        }
        match &self.login {
            Some(LoginTrouble::Needed(need)) => words += &format!("; {need}"),
            Some(LoginTrouble::ScopeDenied(why)) => words += &format!("; {why}"),
            Some(LoginTrouble::Other(why)) => words += &format!("; there is no token: {why}"),
            None => {}
        }
        if let Some(after) = &self.retry_after {
            let unit = if after.bytes().all(|byte| byte.is_ascii_digit()) { " s" } else { "" };
            words += &format!("; Retry-After: {after}{unit}");
        }
        words
    }
}
