//! Builds (emits) the HTTP headers that carry the secrets for a server, from the rules in the `auth` list of its
//! configuration entry, one header for each rule.

use super::header::{self, Use, VALUE};
use super::{Binding, Credentials, oauth};
use crate::config::entry::EntryReader;
use crate::config::{ConfigError, Shape};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_base::net::Headers;
use ptc_base::secrets::Credential;
use ptc_vm::fault::nearest;
use serde_json::{Map, Value};

/// Schemes of emitters.
pub(in crate::config) const SCHEMES: [&str; 3] = ["bearer", "basic", "custom_header"];

const USAGE: &str = "write {\"scheme\": \"bearer\"|\"basic\", \"binding\": NAME} or {\"scheme\": \"custom_header\", \
    \"header\": HEADER, \"binding\": NAME}";

impl EntryReader<'_> {
    /// The headers of `auth`, in order.
    pub(super) fn emitted(
        &self,
        entry: &Map<String, Value>,
    ) -> Result<Vec<(String, Credential)>, ConfigError> {
        let emitters = match entry.get("auth") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(emitters)) => emitters,
            // Cursor's own `auth` object, about OAuth.
            Some(Value::Object(_)) if self.shape != Shape::Upstreams => return Ok(Vec::new()),
            Some(_) => return Err(self.about(&["auth"], &format!("auth must be a list; {USAGE}"))),
        };
        let mut headers: Vec<(String, Credential)> = Vec::with_capacity(emitters.len());
        // A login has no header of its own: its token changes.
        for emitter in emitters.iter().filter(|emitter| emitter["scheme"] != oauth::SCHEME) {
            let (name, value) = self.emit(emitter)?;
            if headers.iter().any(|(known, _)| *known == name) {
                return Err(
                    self.about(&["auth"], &format!("auth sets header \"{name}\" twice; keep one of them"))
                );
            }
            headers.push((name, value));
        }
        Ok(headers)
    }

    fn emit(&self, emitter: &Value) -> Result<(String, Credential), ConfigError> {
        let invalid = |why: &str| self.about(&["auth"], &format!("has invalid auth emitter: {why}; {USAGE}"));
        let Value::Object(fields) = emitter else { return Err(invalid("it must be an object")) };
        let text = |key: &str| match fields.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
            Some(_) => Err(invalid(&format!("{key} must be a string that is not empty"))),
            None => Err(invalid(&format!("it has no {key}"))),
        };
        let scheme = text("scheme")?;
        if !SCHEMES.contains(&scheme) {
            return Err(invalid(&format!("there is no scheme \"{scheme}\"")));
        }
        let is_custom = scheme == "custom_header";
        let is_known = |key: &str| key == "scheme" || key == "binding" || (is_custom && key == "header");
        if let Some(odd) = fields.keys().find(|key| !is_known(key)) {
            return Err(invalid(&format!("{scheme} takes no \"{odd}\"")));
        }
        let name = text("binding")?;
        let Some(binding) = self.credentials.get(name) else {
            return Err(self.about(&["auth"], &unknown_binding(name, self.credentials)));
        };
        self.secrets.own(self.server, binding.value.expose());
        if let Some(hint) = binding.hint.as_ref().filter(|hint| *hint != scheme) {
            let message = format!("uses credential {name} as {scheme}, and its scheme_hint is {hint}");
            self.unprotected.borrow_mut().push(self.about(&["auth"], &message));
        }
        let (header, value) = match scheme {
            "bearer" => (
                "authorization".to_owned(),
                Credential::composed(format!("Bearer {}", binding.value.expose())),
            ),
            "basic" => ("authorization".to_owned(), self.basic(name, binding)?),
            _ => {
                let header = text("header")?;
                let header = header::checked(header, Use::Auth)
                    .map_err(|why| self.about(&["auth"], &format!("auth {why}")))?;
                (header, binding.value.clone())
            }
        };
        if Headers::default().secret(&header, &value).is_err() {
            let what = format!("cannot send credential {name}: it {VALUE}; check where it comes from");
            return Err(self.about(&["auth"], &what));
        }
        Ok((header, value))
    }

    /// `Basic …` from a credential `user:pass`, or from JSON with both fields.
    fn basic(&self, name: &str, binding: &Binding) -> Result<Credential, ConfigError> {
        let wrong = |why: &str| {
            let hint = "write user:pass or {\"user\": …, \"pass\": …}";
            self.about(&["auth"], &format!("uses credential {name}: basic credential {why}; {hint}"))
        };
        let value = binding.value.expose();
        let (user, password) = match serde_json::from_str(value) {
            Ok(Value::Object(pair)) => match (pair.get("user"), pair.get("pass")) {
                (Some(Value::String(user)), Some(Value::String(password))) => {
                    (user.clone(), password.clone())
                }
                _ => return Err(wrong("JSON must contain user and pass")),
            },
            _ => match value.split_once(':') {
                Some((user, password)) => (user.to_owned(), password.to_owned()),
                None => return Err(wrong("must be user:pass")),
            },
        };
        if user.is_empty() || user.contains(':') {
            return Err(wrong("needs a user, without a colon in its name"));
        }
        // Both are registered as secrets: base64 is made of the pair, and either may be echoed alone.
        if !password.is_empty() {
            self.protect(&["auth"], &format!("the password of credential {name}"), &password);
        }
        let pair = format!("{user}:{password}");
        self.protect(&["auth"], &format!("credential {name}"), &pair);
        Ok(Credential::composed(format!("Basic {}", STANDARD.encode(pair))))
    }
}

pub(super) fn unknown_binding(name: &str, credentials: &Credentials) -> String {
    let hint = match nearest(name, credentials.names()) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("add it to the top-level \"{}\"", super::KEY),
    };
    format!("references unknown credential binding {name}; {hint}")
}
