//! Checks the HTTP headers that the configuration sets for requests to a server: none that ptc sets itself, and in
//! `static_headers` none that may hold a secret. It also reads `static_headers`.

use crate::config::ConfigError;
use crate::config::entry::EntryReader;
use ptc_base::net::{HeaderError, Headers};
use ptc_base::secrets::names;
use serde_json::{Map, Value};

/// The key that sets a header.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    /// `static_headers`: values without secrets.
    Static,
    /// `auth`: values that are secrets.
    Auth,
}

/// Headers of the protocol.
const PROTOCOL: [&str; 6] =
    ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "last-event-id", "user-agent"];

/// Headers that frame or route a message.
const FRAMING: [&str; 10] = [
    "host",
    "content-length",
    "content-type",
    "accept-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// Headers that hold a secret by definition.
const SENSITIVE: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// Parts of header names that suggest a secret.
const SENSITIVE_PARTS: [&str; 10] = [
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "api-key",
    "apikey",
    "access-key",
    "subscription-key",
    "cookie",
];

/// The name of a header as sent, in lower case. The error says what is wrong with it.
pub(super) fn checked(name: &str, purpose: Use) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!(
            "header {name:?} is invalid: a name is made of letters, digits and !#$%&'*+-.^_`|~"
        ));
    }
    let lower = name.to_ascii_lowercase();
    let known = lower.as_str();
    if PROTOCOL.contains(&known) || FRAMING.contains(&known) || known.starts_with("mcp-param-") {
        return Err(format!("header \"{name}\" is reserved: ptc sets it itself; leave it out"));
    }
    match purpose {
        Use::Auth if known == "authorization" => {
            Err("header \"Authorization\" is reserved; use scheme bearer or basic for it".to_owned())
        }
        Use::Static if SENSITIVE.contains(&known) => Err(format!("header \"{name}\" is reserved: {MOVE}")),
        Use::Static if SENSITIVE_PARTS.iter().any(|part| known.contains(part)) => {
            Err(format!("header \"{name}\" is reserved, because its name is one of a secret: {MOVE}"))
        }
        Use::Static | Use::Auth => Ok(lower),
    }
}

const MOVE: &str = "secrets belong into credentials; name one in auth";

/// The error about a value that cannot be sent.
pub(super) const VALUE: &str = "holds a line break or another character that no header can carry";

impl EntryReader<'_> {
    /// The headers of an entry, each once: those of `static_headers`, then those of `auth` in order; and
    /// whether `auth` set any.
    pub(in crate::config) fn headers(
        &self,
        entry: &Map<String, Value>,
    ) -> Result<(Headers, bool), ConfigError> {
        let mut headers = self.static_headers(entry)?;
        let emitted = self.emitted(entry)?;
        let has_auth = !emitted.is_empty();
        for (name, value) in emitted {
            let wrong = |why| match why {
                HeaderError::Duplicate => {
                    format!("configures header \"{name}\" in both auth and static_headers; keep one of them")
                }
                why => format!("auth header \"{name}\" {why}"),
            };
            headers.secret(&name, &value).map_err(|why| self.about(&["auth"], &wrong(why)))?;
        }
        Ok((headers, has_auth))
    }

    fn static_headers(&self, entry: &Map<String, Value>) -> Result<Headers, ConfigError> {
        const KEY: &str = "static_headers";
        let mut headers = Headers::default();
        let given = match entry.get(KEY) {
            None | Some(Value::Null) => return Ok(headers),
            Some(Value::Object(given)) => given,
            Some(_) => {
                return Err(self.about(&[KEY], "static_headers must be an object of header names and texts"));
            }
        };
        for (name, value) in given {
            let wrong = |what: String| self.about(&[KEY, name], &what);
            let lower = checked(name, Use::Static).map_err(|why| wrong(format!("static_headers {why}")))?;
            let Value::String(value) = value else {
                return Err(wrong(format!("static_headers \"{name}\" value must be a string")));
            };
            let added = match names::is_secret(name) {
                true => {
                    headers.secret(&lower, &self.protect(&[KEY, name], &format!("the header {name}"), value))
                }
                false => headers.plain(&lower, value),
            };
            added.map_err(|why| match why {
                HeaderError::Duplicate => {
                    wrong(format!("static_headers duplicate header \"{name}\"; keep one of them"))
                }
                HeaderError::Value | HeaderError::Name => wrong(format!("static_headers \"{name}\" {VALUE}")),
            })?;
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers() {
        use Use::{Auth, Static};
        for name in ["X-Tenant", "x-mcp-readonly", "Accept", "X-Partition-Key", "X_1!"] {
            assert_eq!(checked(name, Static), Ok(name.to_ascii_lowercase()), "{name}");
        }
        for name in ["X-Api-Key", "Cookie", "X-Auth-Token"] {
            assert!(checked(name, Auth).is_ok() && checked(name, Static).is_err(), "{name}");
        }
        for name in
            ["", "a b", "a:b", "é", "Authorization", "USER-AGENT", "Mcp-Session-Id", "Host", "mcp-param-x"]
        {
            assert!(checked(name, Auth).is_err() && checked(name, Static).is_err(), "{name}");
        }
    }
}
