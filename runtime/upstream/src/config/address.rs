//! Validates the addresses of remote servers: which may be used, and whether secrets may be sent there.

use super::ConfigError;
use super::entry::EntryReader;
use super::transport::HOST_ADDRESSES;
use ptc_base::net::{Url, is_loopback};
use ptc_base::secrets::names;
use serde_json::{Map, Value};

impl EntryReader<'_> {
    /// The address under a key, if present. `has_auth`: secrets are sent to it.
    pub(super) fn address(
        &self,
        entry: &Map<String, Value>,
        key: &str,
        has_auth: bool,
    ) -> Result<Option<Url>, ConfigError> {
        let http_is_allowed = self.boolean(entry, "allow_insecure_http")? == Some(true);
        let auth_is_allowed = self.boolean(entry, "allow_insecure_auth")? == Some(true);
        let Some(text) = self.string(entry, key)? else { return Ok(None) };
        for secret in names::in_text(text) {
            self.protect(&[key], &format!("the secret in {key}"), &secret);
        }
        let wrong = |what: String| Err(self.about(&[key], &what));
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(why) => {
                return wrong(format!("has malformed {key} \"{text}\": {why}; write https://host/path"));
            }
        };
        match url.scheme() {
            "https" => {}
            // Nothing on the way can read it.
            "http" if is_loopback(&url) => {}
            "http" if !http_is_allowed => {
                return wrong(format!(
                    "{key} \"{text}\" uses http:// without allow_insecure_http; use https://, or \
                    set \"allow_insecure_http\": true"
                ));
            }
            "http" if has_auth && !auth_is_allowed => {
                return wrong(format!(
                    "{key} \"{text}\" uses http:// with auth but allow_insecure_auth is not true; \
                    use https://, or set it if the way there is safe"
                ));
            }
            "http" => {}
            scheme => return wrong(format!("{key} has unsupported URL scheme {scheme}; use https://")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(format!(
                "{key} holds a user or password; add it to credentials, and use auth with scheme basic"
            ));
        }
        if url.fragment().is_some() {
            return wrong(format!(
                "has malformed {key}: it has a fragment (#…), which is never sent; leave it out"
            ));
        }
        Ok(Some(url))
    }

    /// The `url` of a host's entry. Hosts accept http:// as well; a warning says so if it leads to another machine.
    pub(super) fn host_address(
        &self,
        entry: &Map<String, Value>,
        has_auth: bool,
    ) -> Result<Option<Url>, ConfigError> {
        let keys = HOST_ADDRESSES.map(|(key, _)| key);
        let Some(key) = keys.into_iter().find(|key| entry.contains_key(*key)) else { return Ok(None) };
        let Some(text) = self.string(entry, key)? else { return Ok(None) };
        let text = self.filled(&[key], text)?;
        for secret in names::in_text(&text) {
            self.protect(&[key], "the secret in url", &secret);
        }
        let wrong = |what: &str| Err(self.about(&[key], what));
        let url = match Url::parse(&text) {
            Ok(url) => url,
            Err(why) => return wrong(&format!("has malformed url: {why}; write https://host/path")),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return wrong(&format!("url has unsupported URL scheme {}; use https://", url.scheme()));
        }
        let is_near = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() == "http" && !is_near {
            let what = match has_auth {
                true => "url sends a secret over http://, where everybody on the way reads it; use https://",
                false => {
                    "url uses http:// to another machine, so others on the way can read and change calls; use https://"
                }
            };
            self.unprotected.borrow_mut().push(self.about(&[key], what));
        }
        Ok(Some(url))
    }
}
