//! Reads the configuration entry of a remote MCP server: address, headers, TLS, proxy, login.

use crate::config::entry::EntryReader;
use crate::config::{ConfigError, Shape};
use crate::{HttpProtocol, HttpSpec};
use ptc_base::net::{ClientCertificate, ClientOptions, HeaderError, Headers, TlsOptions, Url};
use ptc_base::secrets::{Credential, names};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// The key of a host's headers, which may hold secrets.
const HOST_HEADERS: &str = "headers";

impl EntryReader<'_> {
    pub(super) fn http(
        &self,
        entry: &Map<String, Value>,
        protocol: HttpProtocol,
    ) -> Result<HttpSpec, ConfigError> {
        let (mut headers, mut has_auth) = self.headers(entry)?;
        has_auth |= self.host_headers(entry, &mut headers)?;
        let url = match self.shape {
            Shape::Upstreams => self.address(entry, "url", has_auth)?,
            Shape::McpServers | Shape::Servers | Shape::Listed => self.host_address(entry, has_auth)?,
        };
        let url = url.ok_or_else(|| self.about(&[], "requires url"))?;
        let login = self.login(entry, headers.contains("authorization"))?;
        Ok(HttpSpec { url, protocol, headers, client: self.client_options(entry)?, login })
    }

    /// How connections to a remote server are made.
    pub(in crate::config) fn client_options(
        &self,
        entry: &Map<String, Value>,
    ) -> Result<ClientOptions, ConfigError> {
        let certificate = self.file(entry, "client_certificate")?;
        let key = self.file(entry, "client_key")?;
        let client_certificate = match (certificate, key) {
            (None, None) => None,
            // The certificate file may hold the key as well.
            (Some(certificate), key) => {
                Some(ClientCertificate { key: key.unwrap_or_else(|| certificate.clone()), certificate })
            }
            (None, Some(_)) => return Err(self.about(&["client_key"], "client_key needs client_certificate")),
        };
        Ok(ClientOptions {
            tls: TlsOptions { ca_file: self.file(entry, "ca_file")?, client_certificate },
            proxy: self.proxy(entry)?,
            connect_timeout: self.positive(entry, "connect_timeout_ms")?.map(Duration::from_millis),
            idle_timeout: self.positive(entry, "idle_timeout_ms")?.map(Duration::from_millis),
        })
    }

    /// A file; a relative path starts at the folder of the configuration file.
    fn file(&self, entry: &Map<String, Value>, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(text) = self.string(entry, key)? else { return Ok(None) };
        let text = self.host_text(key, text)?;
        Ok(Some(self.document.beside(text)))
    }

    fn proxy(&self, entry: &Map<String, Value>) -> Result<Option<Url>, ConfigError> {
        const KEY: &str = "proxy";
        let Some(text) = self.string(entry, KEY)? else { return Ok(None) };
        let url = Url::parse(text).ok().filter(|url| url.scheme() == "http" && url.has_host());
        let Some(url) = url else {
            return Err(self.about(&[KEY], "has malformed proxy: write http://host:port"));
        };
        if !url.username().is_empty() || url.password().is_some() {
            self.protect(&[KEY], "the password in proxy", url.password().unwrap_or_default());
            return Err(self.about(&[KEY], "proxy holds a user or password; only http://host:port is taken"));
        }
        Ok(Some(url))
    }

    /// The `headers` of a host's entry; true if one of them is a secret.
    fn host_headers(&self, entry: &Map<String, Value>, headers: &mut Headers) -> Result<bool, ConfigError> {
        let given = match entry.get(HOST_HEADERS) {
            None | Some(Value::Null) => return Ok(false),
            Some(_) if self.shape == Shape::Upstreams => {
                let what = "headers is the hosts' key; use static_headers, and auth for secrets";
                return Err(self.about(&[HOST_HEADERS], what));
            }
            Some(Value::Object(given)) => given,
            Some(_) => {
                return Err(self.about(&[HOST_HEADERS], "headers must be an object of names and texts"));
            }
        };
        let mut any_secret = false;
        for (name, value) in given {
            let path = [HOST_HEADERS, name];
            let wrong = |what: String| self.about(&path, &format!("header \"{name}\" {what}"));
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null => continue,
                Value::Array(_) | Value::Object(_) => {
                    return Err(wrong("must be a string".to_owned()));
                }
            };
            let filled = self.filled(&path, &text)?;
            // A variable that was filled in is already registered; the scheme before it is no secret.
            let is_secret = filled != text || names::is_secret(name);
            let is_literal = filled == text || names::defaults(&text).next().is_some();
            if is_literal && names::is_secret(name) {
                let value = filled.split_once(' ').map_or(filled.as_str(), |(_, value)| value.trim());
                self.protect(&path, &format!("the header {name}"), value);
            }
            let added = match is_secret {
                true => headers.secret(name, &Credential::composed(filled)),
                false => headers.plain(name, &filled),
            };
            added.map_err(|why| match why {
                HeaderError::Duplicate => wrong("is given twice; keep one of them".to_owned()),
                why => wrong(why.to_string()),
            })?;
            any_secret |= is_secret;
        }
        Ok(any_secret)
    }
}
