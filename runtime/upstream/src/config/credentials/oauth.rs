//! Reads the OAuth login of a server from its configuration entry: `{"scheme": "oauth", …}` in `auth`, or the OAuth
//! blocks of other MCP hosts.

use super::emit::unknown_binding;
use crate::config::entry::EntryReader;
use crate::config::{ConfigError, Shape};
use ptc_base::oauth::{
    ConfiguredClient, Grant, IdentityProvider, LoginIdentity, OAuthSettings, Scopes, SigningKey,
};
use ptc_vm::fault::nearest;
use serde_json::{Map, Value};

/// The scheme in `auth`.
pub(in crate::config) const SCHEME: &str = "oauth";

/// Keys of the scheme, with their meanings.
#[rustfmt::skip]
pub(in crate::config) const KEYS: [(&str, &str); 7] = [
    ("grant", "How tokens are obtained: code (a browser), device, client_credentials, id_jag."),
    ("scopes", "Scopes to ask for, instead of those that the server names."),
    ("issuer", "The authorization server to use, of those that the server names. Needed for a client with a secret or a key."),
    ("client", "The client that is registered there: id, and secret or key (names of credentials), key_id."),
    ("redirect_port", "The port of the redirect address http://localhost:PORT/callback that the client is registered with."),
    ("identity", "Whose login it is: shared, the operator's for all callers; user, each caller's own."),
    ("idp", "For id_jag: the identity provider: issuer, client, id_token_file."),
];

/// Keys of a client, with their meanings.
const CLIENT_KEYS: [&str; 4] = ["id", "secret", "key", "key_id"];

/// Keys of an identity provider.
const PROVIDER_KEYS: [&str; 3] = ["issuer", "client", "id_token_file"];

/// The block of a host's entry about OAuth (Claude Code, Gemini CLI, opencode), and Cursor's.
const HOST_BLOCKS: [&str; 2] = ["oauth", "auth"];

/// Names of members of these blocks.
const HOST_ID: [&str; 3] = ["clientId", "client_id", "CLIENT_ID"];
const HOST_SECRET: [&str; 3] = ["clientSecret", "client_secret", "CLIENT_SECRET"];
const HOST_SCOPES: [&str; 2] = ["scopes", "scope"];
const HOST_ISSUER: [&str; 1] = ["issuer"];
const HOST_PORT: [&str; 2] = ["callbackPort", "redirectPort"];

impl EntryReader<'_> {
    /// The login of an entry; `None` where its headers say who asks, or it wants none.
    pub(in crate::config) fn login(
        &self,
        entry: &Map<String, Value>,
        has_authorization: bool,
    ) -> Result<Option<OAuthSettings>, ConfigError> {
        let emitters = entry.get("auth").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut own = emitters.iter().filter(|emitter| emitter["scheme"] == SCHEME);
        match (own.next(), own.next()) {
            (Some(_), Some(_)) => Err(self.about(&["auth"], "auth has two oauth schemes; keep one of them")),
            (Some(_), None) if has_authorization => {
                let what = "auth sets the header Authorization, which oauth sets too; keep one of them";
                Err(self.about(&["auth"], what))
            }
            (Some(emitter), None) => self.own_login(emitter).map(Some),
            (None, _) if has_authorization => Ok(None),
            (None, _) if self.shape == Shape::Upstreams => Ok(Some(OAuthSettings::default())),
            (None, _) => self.host_login(entry),
        }
    }

    fn own_login(&self, emitter: &Value) -> Result<OAuthSettings, ConfigError> {
        let fields = self.object(emitter, "oauth", &KEYS.map(|(key, _)| key))?;
        let grant = self.named(fields, "grant", Grant::ALL.map(|grant| (grant, grant.name())), |name| {
            format!("oauth has no grant {name}")
        })?;
        let grant = grant.unwrap_or(Grant::Code);
        let unknown = |name: String| format!("oauth identity {name} is not known");
        let identity = self.named(fields, "identity", LoginIdentity::NAMES, unknown)?;
        let identity = identity.unwrap_or(LoginIdentity::Unsaid);
        let client = fields.get("client").map(|client| self.client(client, "oauth client")).transpose()?;
        let identity_provider = fields.get("idp").map(|provider| self.provider(provider)).transpose()?;
        let wants = |is_there: bool, what: &str| match is_there {
            true => Ok(()),
            false => Err(self.about(&["auth"], &format!("oauth with this grant needs {what}"))),
        };
        let authenticates =
            client.as_ref().is_some_and(|client| client.secret.is_some() || client.key.is_some());
        match grant {
            Grant::ClientCredentials | Grant::IdJag if identity == LoginIdentity::User => {
                wants(false, "identity shared or none: it asks no caller")?;
            }
            Grant::ClientCredentials => wants(authenticates, "client with a secret or a key")?,
            Grant::IdJag => {
                wants(authenticates, "client with a secret or a key")?;
                wants(identity_provider.is_some(), "idp")?;
            }
            Grant::Code | Grant::Device => {}
        }
        Ok(OAuthSettings {
            is_explicit: true,
            grant,
            identity,
            scopes: fields.get("scopes").map(|scopes| self.scopes(&["auth"], scopes)).transpose()?,
            issuer: self.text_of(fields, "oauth", "issuer")?.map(str::to_owned),
            client,
            redirect_port: self.port(&["auth"], fields.get("redirect_port"))?,
            identity_provider,
        })
    }

    fn client(&self, value: &Value, what: &str) -> Result<ConfiguredClient, ConfigError> {
        let fields = self.object(value, what, &CLIENT_KEYS)?;
        let id = self.text_of(fields, what, "id")?;
        let id = id.ok_or_else(|| self.about(&["auth"], &format!("{what} has no id")))?;
        let credential = |key: &str| -> Result<_, ConfigError> {
            let Some(name) = self.text_of(fields, what, key)? else { return Ok(None) };
            let binding = self.credentials.get(name);
            let missing = || self.about(&["auth"], &unknown_binding(name, self.credentials));
            Ok(Some(binding.ok_or_else(missing)?.value.clone()))
        };
        let key_id = self.text_of(fields, what, "key_id")?.map(str::to_owned);
        let key = credential("key")?.map(|pem| SigningKey::from_pem(&pem, key_id)).transpose();
        let key =
            key.map_err(|why| self.about(&["auth"], &format!("{what}: the credential of key {why}")))?;
        Ok(ConfiguredClient { id: id.to_owned(), secret: credential("secret")?, key })
    }

    fn provider(&self, value: &Value) -> Result<IdentityProvider, ConfigError> {
        const WHAT: &str = "oauth idp";
        let fields = self.object(value, WHAT, &PROVIDER_KEYS)?;
        let text = |key: &str| {
            let found = self.text_of(fields, WHAT, key)?;
            found.ok_or_else(|| self.about(&["auth"], &format!("{WHAT} has no {key}")))
        };
        let client = fields.get("client").unwrap_or(&Value::Null);
        Ok(IdentityProvider {
            issuer: text("issuer")?.to_owned(),
            client: self.client(client, "oauth idp client")?,
            id_token_file: self.document.beside(text("id_token_file")?),
        })
    }

    /// An object with these keys alone.
    fn object<'v>(
        &self,
        value: &'v Value,
        what: &str,
        known: &[&str],
    ) -> Result<&'v Map<String, Value>, ConfigError> {
        let Value::Object(fields) = value else {
            return Err(self.about(&["auth"], &format!("{what} must be an object")));
        };
        let is_known = |key: &str| known.contains(&key) || key == "scheme" && what == SCHEME;
        match fields.keys().find(|key| !is_known(key)) {
            None => Ok(fields),
            Some(odd) => {
                let hint = match nearest(odd, known.iter().copied()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are {}", known.join(", ")),
                };
                Err(self.about(&["auth"], &format!("{what} takes no \"{odd}\"; {hint}")))
            }
        }
    }

    fn text_of<'v>(
        &self,
        fields: &'v Map<String, Value>,
        what: &str,
        key: &str,
    ) -> Result<Option<&'v str>, ConfigError> {
        match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => {
                Err(self.about(&["auth"], &format!("{what}: {key} must be a string that is not empty")))
            }
        }
    }

    /// The value of a key that has one of these names.
    fn named<T: Copy, const N: usize>(
        &self,
        fields: &Map<String, Value>,
        key: &str,
        names: [(T, &str); N],
        unknown: impl Fn(String) -> String,
    ) -> Result<Option<T>, ConfigError> {
        let Some(name) = self.text_of(fields, "oauth", key)? else { return Ok(None) };
        let known = names.iter().find(|(_, known)| *known == name).map(|(value, _)| Some(*value));
        known.ok_or_else(|| {
            let there = names.map(|(_, name)| name).join(", ");
            self.about(&["auth"], &format!("{}; there are {there}", unknown(format!("\"{name}\""))))
        })
    }

    fn scopes(&self, path: &[&str], value: &Value) -> Result<Scopes, ConfigError> {
        let wrong = || self.about(path, "scopes must be a list of texts");
        match value {
            Value::String(text) => Ok(Scopes::parse(text)),
            Value::Array(items) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<Scopes>>().ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    fn port(&self, path: &[&str], value: Option<&Value>) -> Result<Option<u16>, ConfigError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.map(Some).ok_or_else(|| self.about(path, "the port of the redirect address must be 1 to 65535"))
    }

    /// The login as a host's block describes it. Members that mean nothing here are ignored, as other keys of hosts are.
    fn host_login(&self, entry: &Map<String, Value>) -> Result<Option<OAuthSettings>, ConfigError> {
        let found = HOST_BLOCKS.into_iter().find_map(|key| match entry.get(key) {
            Some(value @ (Value::Object(_) | Value::Bool(_))) => Some((key, value)),
            _ => None,
        });
        let Some((key, block)) = found else { return Ok(Some(OAuthSettings::default())) };
        if *block == Value::Bool(false) || block["enabled"] == Value::Bool(false) {
            return Ok(None);
        }
        let find = |names: &[&str]| names.iter().map(|name| &block[*name]).find(|value| !value.is_null());
        let text = |names: &[&str]| match find(names) {
            None => Ok(None),
            Some(Value::String(text)) => self.filled(&[key], text).map(Some),
            Some(_) => Err(self.about(&[key], &format!("{}.{} must be a string", key, names[0]))),
        };
        let secret = text(&HOST_SECRET)?.filter(|secret| !secret.is_empty());
        let secret = secret.map(|secret| self.protect(&[key], "the client secret", &secret));
        let id = text(&HOST_ID)?.filter(|id| !id.is_empty());
        Ok(Some(OAuthSettings {
            is_explicit: block.is_object(),
            issuer: text(&HOST_ISSUER)?.filter(|issuer| !issuer.is_empty()),
            scopes: find(&HOST_SCOPES).map(|scopes| self.scopes(&[key], scopes)).transpose()?,
            client: id.map(|id| ConfiguredClient { id, secret, key: None }),
            redirect_port: self.port(&[key], find(&HOST_PORT))?,
            ..OAuthSettings::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grant_has_a_name_in_the_help() {
        let help = KEYS[0].1;
        assert!(Grant::ALL.iter().all(|grant| help.contains(grant.name())), "{help}");
    }
}
