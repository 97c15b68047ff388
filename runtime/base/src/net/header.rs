//! Holds the headers of an HTTP request so that their values do not leak: headers cannot be printed, and a redirect to
//! another origin does not carry the secret ones.

use crate::secrets::Credential;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers in the order in which they were given, each name once. They may hold secrets, so they can be neither
/// printed nor serialised.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

/// Why a header cannot be sent. Says nothing of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The name is no token of RFC 9110.
    Name,
    /// The value holds characters that no header may have.
    Value,
    /// There is one of this name.
    Duplicate,
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HeaderError::Name => "is no name of a header",
            HeaderError::Value => "has a value that no header may have",
            HeaderError::Duplicate => "is given twice",
        })
    }
}

impl std::error::Error for HeaderError {}

impl Headers {
    /// Adds a secret header, which only the server may see.
    pub fn secret(&mut self, name: &str, value: &Credential) -> Result<(), HeaderError> {
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| HeaderError::Value)?;
        value.set_sensitive(true);
        self.add(name, value)
    }

    /// Adds a header that is no secret.
    pub fn plain(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        let value = HeaderValue::from_str(value).map_err(|_| HeaderError::Value)?;
        self.add(name, value)
    }

    /// Sets a header of a protocol, replacing one of this name. Like a secret, it stays with its origin.
    pub fn set(&mut self, name: HeaderName, value: &str) -> Result<(), HeaderError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| HeaderError::Value)?;
        value.set_sensitive(true);
        self.0.insert(name, value);
        Ok(())
    }

    fn add(&mut self, name: &str, value: HeaderValue) -> Result<(), HeaderError> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::Name)?;
        if self.0.contains_key(&name) {
            return Err(HeaderError::Duplicate);
        }
        self.0.insert(name, value);
        Ok(())
    }

    /// Removes one.
    pub(super) fn remove(&mut self, name: HeaderName) {
        self.0.remove(name);
    }

    /// True when there is one of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Names and values in order, secrets included.
    pub fn identity(&self) -> Vec<(&str, String)> {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut all: Vec<_> = self.0.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        all.sort_unstable();
        all
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    /// All of them, for the wire.
    pub(super) fn map(&self) -> HeaderMap {
        self.0.clone()
    }

    /// Those that are no secret.
    pub(super) fn public(&self) -> Headers {
        let public = self.0.iter().filter(|(_, value)| !value.is_sensitive());
        Headers(public.map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecretRegistry;

    #[test]
    fn names_and_values_are_checked_and_secrets_told_apart() {
        let secrets = SecretRegistry::new();
        let key = |value: &str| Credential::secret(value, &secrets).0;
        let mut headers = Headers::default();
        assert_eq!(headers.secret("X-Key", &key("tok-123456")), Ok(()));
        assert_eq!(headers.plain("x-key", "a"), Err(HeaderError::Duplicate));
        assert_eq!(headers.plain("x key", "a"), Err(HeaderError::Name));
        assert_eq!(headers.secret("x-other", &key("a\r\nb: c")), Err(HeaderError::Value));
        assert_eq!(headers.plain("x-plain", "p"), Ok(()));
        assert!(headers.contains("X-KEY"));
        assert_eq!((headers.public().names(), headers.map().len()), (vec!["x-plain"], 2));
    }
}
