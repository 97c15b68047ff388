//! An answer of the test server for logins: status, headers, and a body or a stream.

use serde_json::Value;
use std::sync::{Arc, Mutex, mpsc};

/// An answer: status, headers, body.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Texts that come behind the body, as a stream without a known end.
    pub(super) rest: Option<Arc<Mutex<mpsc::Receiver<String>>>>,
}

impl Reply {
    /// JSON with status 200.
    pub fn json(body: &Value) -> Reply {
        Reply::error(200, body)
    }

    /// JSON with this status.
    pub fn error(status: u16, body: &Value) -> Reply {
        Reply {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.to_string(),
            rest: None,
        }
    }

    /// A status without a body.
    pub fn status(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: String::new(), rest: None }
    }

    /// With more members in its JSON object.
    #[must_use]
    pub fn with(mut self, more: &Value) -> Reply {
        let mut body: Value = serde_json::from_str(&self.body).unwrap();
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.body = body.to_string();
        self
    }

    /// A stream of events, as they are sent here.
    pub fn events(events: mpsc::Receiver<String>) -> Reply {
        let reply = Reply::status(200).header("content-type", "text/event-stream");
        Reply { rest: Some(Arc::new(Mutex::new(events))), ..reply }
    }

    /// Its body.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// True if the token of the request was refused.
    pub fn is_unauthorized(&self) -> bool {
        self.status == 401
    }

    /// True for a status of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// As the last of two events, behind this message.
    #[must_use]
    pub fn behind(mut self, message: &Value) -> Reply {
        self.headers.retain(|(name, _)| name != "content-type");
        self.body = format!("data: {message}\n\ndata: {}\n\n", self.body);
        self.header("content-type", "text/event-stream")
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }
}
