//! Defines the stored form of one OAuth login: its client, its tokens and their expiry, from which it also decides when
//! a renewal is due.

use crate::net::AddressClass;
use crate::oauth::account::LoginId;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::{Client, ClientMethod, ClientOrigin};
use crate::secrets::{Credential, SecretRegistry};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time before its end that a token is renewed.
const EARLIEST_RENEWAL: u64 = 60;

/// The login at one server. It holds secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub(in crate::oauth) struct StoredLogin {
    /// The account.
    pub(in crate::oauth) id: LoginId,
    /// The address of the server.
    pub(in crate::oauth) server: String,
    /// The caller whose login it is; `None`: the operator.
    pub(in crate::oauth) owner: Option<String>,
    /// The value of `resource` in requests.
    pub(in crate::oauth) resource: String,
    /// The issuer of the tokens, for whom alone the client is good.
    pub(in crate::oauth) issuer: String,
    /// Where tokens come from.
    pub(in crate::oauth) token_endpoint: String,
    /// Where they are revoked.
    pub(in crate::oauth) revocation_endpoint: Option<String>,
    /// The class of the server that named these endpoints.
    pub(in crate::oauth) named_by: AddressClass,
    /// The client; a configured one without its secret.
    pub(in crate::oauth) client: Client,
    /// Scopes that were asked for at the last login.
    pub(in crate::oauth) requested: Scopes,
    /// Scopes that were granted, if the server says so.
    pub(in crate::oauth) granted: Option<Scopes>,
    /// Scopes that a call needed and the token did not have; the next login asks for them too.
    pub(in crate::oauth) missing: Scopes,
    /// The token for requests.
    pub(in crate::oauth) access: Credential,
    /// The token for a new one.
    pub(in crate::oauth) refresh: Option<Credential>,
    /// When the access token was issued, by the clock of this machine (seconds since 1970).
    pub(in crate::oauth) obtained_at: u64,
    /// When it ends; `None` where the server does not say.
    pub(in crate::oauth) expires_at: Option<u64>,
    /// When it was last renewed without a person.
    pub(in crate::oauth) refreshed_at: Option<u64>,
}

/// The shortest rest of its life with which a token is used instead of waiting for a new one: the request has to arrive.
const GOOD: u64 = 5;

/// Now, in seconds since 1970.
pub(in crate::oauth) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// What may be said about a stored login: no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginFacts {
    /// The address of the server.
    pub server: String,
    /// The caller whose login it is; `None`: the operator.
    pub owner: Option<String>,
    /// Who issued the tokens.
    pub issuer: String,
    /// The scopes of the login, as far as the server says.
    pub scopes: String,
    /// Scopes that calls have missed; the next login asks for them.
    pub missing: String,
    /// Seconds to the end of the access token, negative when it has passed; `None` where the server does not say.
    pub expires_in: Option<i64>,
    /// It can be renewed without a person.
    pub is_renewable: bool,
    /// When it was last renewed (seconds since 1970).
    pub refreshed_at: Option<u64>,
}

impl StoredLogin {
    /// What may be said about it.
    pub(in crate::oauth) fn facts(&self) -> LoginFacts {
        let seconds = |end: u64| {
            i64::try_from(end).unwrap_or(i64::MAX).saturating_sub(i64::try_from(now()).unwrap_or(0))
        };
        LoginFacts {
            server: self.server.clone(),
            owner: self.owner.clone(),
            issuer: self.issuer.clone(),
            scopes: self.granted.as_ref().unwrap_or(&self.requested).to_string(),
            missing: self.missing.to_string(),
            expires_in: self.expires_at.map(seconds),
            is_renewable: self.refresh.is_some(),
            refreshed_at: self.refreshed_at,
        }
    }

    /// True when the access token should be renewed before it is used. A clock that was set back makes the time of the
    /// end meaningless: the server decides then.
    pub(in crate::oauth) fn is_due(&self, now: u64) -> bool {
        let Some(end) = self.expires_at else { return false };
        let life = end.saturating_sub(self.obtained_at);
        now >= self.obtained_at && now >= end.saturating_sub(EARLIEST_RENEWAL.min(life / 2))
    }

    /// True while the access token is certainly accepted, if it is not revoked.
    pub(in crate::oauth) fn is_good(&self, now: u64) -> bool {
        now >= self.obtained_at && self.expires_at.is_none_or(|end| now.saturating_add(GOOD) <= end)
    }

    /// True if it is the login of this caller at this server.
    pub(in crate::oauth) fn is_of(&self, server: &str, owner: Option<&str>) -> bool {
        self.server == server && self.owner.as_deref() == owner
    }

    /// True when both hold the same access token.
    pub(in crate::oauth) fn has_access_of(&self, other: &StoredLogin) -> bool {
        self.access.expose() == other.access.expose()
    }

    /// The refresh token as text.
    pub(in crate::oauth) fn refresh_text(&self) -> Option<&str> {
        self.refresh.as_ref().map(Credential::expose)
    }

    /// The file's content.
    pub(in crate::oauth) fn to_json(&self) -> String {
        let text = |secret: &Option<Credential>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let client = &self.client;
        let is_configured = client.origin == ClientOrigin::Configured;
        json!({
            "version": 1, "id": self.id.text(),
            "server": self.server, "owner": self.owner, "resource": self.resource, "issuer": self.issuer,
            "token_endpoint": self.token_endpoint, "revocation_endpoint": self.revocation_endpoint,
            "named_by": self.named_by,
            "client": {
                "id": client.id, "method": client.method.name(), "origin": client.origin.name(),
                "secret": text(&client.secret).filter(|_| !is_configured), "redirect_uri": client.redirect_uri,
            },
            "requested": self.requested.to_string(),
            "granted": self.granted.as_ref().map(Scopes::to_string),
            "missing": self.missing.to_string(),
            "access_token": self.access.expose(), "refresh_token": text(&self.refresh),
            "obtained_at": self.obtained_at, "expires_at": self.expires_at, "refreshed_at": self.refreshed_at,
        })
        .to_string()
    }

    /// Reads the file's content; each secret in it is registered. `None` for something else.
    pub(in crate::oauth) fn from_json(text: &str, secrets: &SecretRegistry) -> Option<StoredLogin> {
        let json: Value = serde_json::from_str(text).ok()?;
        if json["version"] != 1 {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let secret = |value: &Value| Some(Credential::token(value.as_str()?, secrets));
        let scopes = |value: &Value| value.as_str().map(Scopes::parse);
        let client = &json["client"];
        Some(StoredLogin {
            // Absent in files of earlier versions.
            id: LoginId::stored(json["id"].as_str().unwrap_or_default()),
            server: text(&json["server"])?,
            owner: text(&json["owner"]),
            resource: text(&json["resource"])?,
            issuer: text(&json["issuer"])?,
            token_endpoint: text(&json["token_endpoint"])?,
            revocation_endpoint: text(&json["revocation_endpoint"]),
            named_by: serde_json::from_value(json["named_by"].clone()).ok()?,
            client: Client {
                id: text(&client["id"])?,
                secret: secret(&client["secret"]),
                key: None,
                method: ClientMethod::parse(client["method"].as_str()?)?,
                origin: ClientOrigin::parse(client["origin"].as_str()?)?,
                redirect_uri: text(&client["redirect_uri"]),
            },
            requested: scopes(&json["requested"]).unwrap_or_default(),
            granted: scopes(&json["granted"]),
            missing: scopes(&json["missing"]).unwrap_or_default(),
            access: secret(&json["access_token"])?,
            refresh: secret(&json["refresh_token"]),
            obtained_at: json["obtained_at"].as_u64()?,
            expires_at: json["expires_at"].as_u64(),
            refreshed_at: json["refreshed_at"].as_u64(),
        })
    }
}

#[cfg(test)]
pub(in crate::oauth) mod tests {
    use super::*;

    pub(in crate::oauth) fn login() -> StoredLogin {
        StoredLogin {
            id: LoginId::stored("login-1"),
            server: "https://h/mcp".into(),
            owner: None,
            resource: "https://h/mcp".into(),
            issuer: "https://as".into(),
            token_endpoint: "https://as/token".into(),
            revocation_endpoint: None,
            named_by: AddressClass::Public,
            client: Client {
                id: "c-1".into(),
                secret: Some(Credential::composed("client-secret-0001")),
                key: None,
                method: ClientMethod::Basic,
                origin: ClientOrigin::Registered,
                redirect_uri: Some("http://127.0.0.1:1/callback".into()),
            },
            requested: Scopes::parse("a b"),
            granted: None,
            missing: Scopes::default(),
            access: Credential::composed("access-token-0001"),
            refresh: Some(Credential::composed("refresh-token-0001")),
            obtained_at: 1_000,
            expires_at: Some(1_100),
            refreshed_at: None,
        }
    }

    #[test]
    fn a_login_comes_back_as_it_was_and_its_secrets_are_known() {
        let secrets = SecretRegistry::new();
        let text = login().to_json();
        let back = StoredLogin::from_json(&text, &secrets).unwrap();
        assert_eq!(back.to_json(), text);
        for secret in ["access-token-0001", "refresh-token-0001", "client-secret-0001"] {
            assert_eq!(secrets.scrub(secret), "[REDACTED]");
        }
        for broken in ["", "{}", "[1]", &text[..40], &text.replace("\"version\":1", "\"version\":2")] {
            assert!(StoredLogin::from_json(broken, &secrets).is_none(), "{broken}");
        }
        let configured = Client { origin: ClientOrigin::Configured, ..login().client };
        let text = StoredLogin { client: configured, ..login() }.to_json();
        assert!(!text.contains("client-secret-0001"), "the secret of the configuration stays there");
    }

    #[test]
    fn tokens_are_renewed_before_their_end_whatever_the_clock_does() {
        let due =
            |obtained_at, expires_at, now| StoredLogin { obtained_at, expires_at, ..login() }.is_due(now);
        // A minute before the end, or half of a shorter life.
        assert!(!due(1_000, Some(4_600), 4_539) && due(1_000, Some(4_600), 4_540));
        assert!(!due(1_000, Some(1_020), 1_009) && due(1_000, Some(1_020), 1_010));
        assert!(!due(1_000, None, u64::MAX), "without an end the server says when");
        assert!(!due(1_000, Some(1_020), 10), "the clock was set back");
        let good = |expires_at, now| StoredLogin { expires_at, ..login() }.is_good(now);
        assert!(
            good(Some(1_100), 1_095) && !good(Some(1_100), 1_096) && good(None, 9_999) && !good(None, 10)
        );
        assert!(due(1_000, Some(900), 1_000), "an end before the beginning");
        assert!(due(0, Some(0), 0));
    }
}
