//! An answer of the test server for logins: status, headers and body.

use serde_json::Value;

/// An answer: status, headers, body.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
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
        }
    }

    /// A status without a body.
    pub fn status(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: String::new() }
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

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }
}
