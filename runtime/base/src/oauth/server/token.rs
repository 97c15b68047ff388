//! Requests tokens from the token endpoint of an OAuth authorization server, and parses the answers (RFC 6749, section
//! 5). Other endpoints that authenticate clients in the same way are asked here too.

use crate::net::StatusCode;
use crate::oauth::changes::LoginChange;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::{Client, described};
use crate::oauth::server::http::{Document, NamedHttp};
use crate::oauth::server::metadata::AuthorizationServer;
use crate::oauth::store::stored::StoredLogin;
use crate::oauth::{OAuthFault, Result};
use crate::secrets::{Credential, SecretRegistry};
use serde::Deserialize;
use serde_json::Value;

/// The answer with tokens.
#[derive(Deserialize)]
struct Answer {
    access_token: String,
    // The others are read as they come: an answer of a renewal that was not read would lose the login, since its server
    // has already replaced the refresh token.
    #[serde(default)]
    token_type: Value,
    #[serde(default)]
    refresh_token: Value,
    /// Seconds; some servers write a text.
    #[serde(default)]
    expires_in: Value,
    /// A text; some servers write a list.
    #[serde(default)]
    scope: Value,
    /// Of an exchange: what it is.
    #[serde(default)]
    issued_token_type: Value,
}

impl Answer {
    /// Seconds until the token ends. None for a time that is over: the server cannot mean that.
    fn seconds(&self) -> Option<u64> {
        let seconds = match &self.expires_in {
            Value::Number(seconds) => seconds.as_f64().map(|seconds| seconds.max(0.0) as u64),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds.min(LONGEST))
    }

    fn scopes(&self) -> Option<Scopes> {
        match &self.scope {
            Value::String(text) => Some(Scopes::parse(text)),
            Value::Array(all) => {
                let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                Some(Scopes::parse(&all.join(" ")))
            }
            _ => None,
        }
    }
}

/// Longest life of a token in seconds that is believed: ten years.
const LONGEST: u64 = 10 * 365 * 86_400;

/// New tokens.
pub(in crate::oauth) struct Tokens {
    pub(in crate::oauth) access: Credential,
    pub(in crate::oauth) refresh: Option<Credential>,
    /// Seconds.
    pub(in crate::oauth) expires_in: Option<u64>,
    pub(in crate::oauth) scopes: Option<Scopes>,
}

/// Why there are no tokens.
pub(in crate::oauth) enum TokenFault {
    /// The server refuses the grant for good: `invalid_grant`.
    InvalidGrant(String),
    /// The server refuses with another code.
    Refused {
        /// The code of the error.
        code: String,
        /// In words.
        words: String,
    },
    /// There is no answer.
    Fault(OAuthFault),
}

impl From<OAuthFault> for TokenFault {
    fn from(fault: OAuthFault) -> TokenFault {
        TokenFault::Fault(fault)
    }
}

impl From<TokenFault> for OAuthFault {
    fn from(fault: TokenFault) -> OAuthFault {
        match fault {
            TokenFault::InvalidGrant(words) | TokenFault::Refused { words, .. } => {
                OAuthFault::Unusable(words)
            }
            TokenFault::Fault(fault) => fault,
        }
    }
}

/// A token endpoint, or another one that authenticates clients in the same way, and the client that asks it.
#[derive(Clone, Copy)]
pub(in crate::oauth) struct TokenEndpoint<'a> {
    pub(in crate::oauth) http: &'a NamedHttp,
    pub(in crate::oauth) address: &'a str,
    pub(in crate::oauth) issuer: &'a str,
    pub(in crate::oauth) client: &'a Client,
    pub(in crate::oauth) secrets: &'a SecretRegistry,
}

impl<'a> TokenEndpoint<'a> {
    /// The one of this authorization server.
    pub(in crate::oauth) fn of_server(
        http: &'a NamedHttp,
        server: &'a AuthorizationServer,
        client: &'a Client,
        secrets: &'a SecretRegistry,
    ) -> Result<TokenEndpoint<'a>> {
        Ok(TokenEndpoint { http, address: server.token_endpoint()?, issuer: &server.issuer, client, secrets })
    }

    /// The one that renews this login.
    pub(in crate::oauth) fn of_login(
        http: &'a NamedHttp,
        login: &'a StoredLogin,
        secrets: &'a SecretRegistry,
    ) -> TokenEndpoint<'a> {
        let StoredLogin { token_endpoint, issuer, client, .. } = login;
        TokenEndpoint { http, address: token_endpoint, issuer, client, secrets }
    }

    /// Asks for tokens. The new ones are registered secrets when this returns.
    pub(in crate::oauth) async fn tokens(
        &self,
        _change: &LoginChange,
        fields: &[(&str, &str)],
    ) -> Result<Tokens, TokenFault> {
        let answer = self.answered(fields).await?;
        let access = Credential::token(answer.access_token.as_str(), self.secrets);
        let refresh = answer.refresh_token.as_str().filter(|token| !token.is_empty());
        let refresh = refresh.map(|token| Credential::token(token, self.secrets));
        if answer.token_type.as_str().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            let text = "the token endpoint answered with a token that is no Bearer token";
            return Err(OAuthFault::unusable(text).into());
        }
        Ok(Tokens { access, refresh, expires_in: answer.seconds(), scopes: answer.scopes() })
    }

    /// Exchanges a token for another one (RFC 8693), which is no access token: the token and its kind.
    pub(in crate::oauth) async fn exchange(
        &self,
        fields: &[(&str, &str)],
    ) -> Result<(Credential, Option<String>), TokenFault> {
        let answer = self.answered(fields).await?;
        let kind = answer.issued_token_type.as_str().map(str::to_owned);
        Ok((Credential::token(answer.access_token, self.secrets), kind))
    }

    async fn answered(&self, fields: &[(&str, &str)]) -> Result<Answer, TokenFault> {
        let document = self.post(fields).await?;
        let unusable = || OAuthFault::unusable("the token endpoint answered without an access_token");
        Ok(document.json::<Answer>().ok_or_else(unusable)?)
    }

    /// Posts a form as this client.
    pub(in crate::oauth) async fn post(&self, fields: &[(&str, &str)]) -> Result<Document, TokenFault> {
        let address = self.http.address(self.address, "the token endpoint")?;
        let own = self.client.authenticate(self.issuer, self.secrets)?;
        let more = own.fields.iter().map(|(name, value)| (*name, value.expose()));
        let fields: Vec<(&str, &str)> = fields.iter().copied().chain(more).collect();
        let document = self.http.post_form(&address, &fields, own.header.as_ref()).await?;
        if !document.status.is_success() {
            return Err(refusal(document.status, &document.json().unwrap_or_default()));
        }
        Ok(document)
    }
}

fn refusal(status: StatusCode, said: &Value) -> TokenFault {
    let words = format!("the token endpoint refuses: http {status}{}", described(said));
    match said["error"].as_str() {
        Some("invalid_grant") => TokenFault::InvalidGrant(words),
        Some("temporarily_unavailable" | "server_error") => OAuthFault::Unavailable(words).into(),
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            OAuthFault::Unavailable(words).into()
        }
        code => TokenFault::Refused { code: code.unwrap_or_default().to_owned(), words },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn odd_members_do_not_lose_an_answer() {
        let read = |more: Value| {
            let mut answer = json!({ "access_token": "a" });
            answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Answer>(answer).unwrap()
        };
        assert_eq!(read(json!({ "scope": ["a", "b"] })).scopes().unwrap().to_string(), "a b");
        assert_eq!(read(json!({ "scope": 5, "token_type": 5, "refresh_token": 7 })).scopes(), None);
        for (given, seconds) in [
            (json!(3600), Some(3600)),
            (json!("60"), Some(60)),
            (json!(0), None),
            (json!(-5), None),
            (json!(600.5), Some(600)),
            (json!(1e300), Some(LONGEST)),
            (json!(null), None),
        ] {
            assert_eq!(read(json!({ "expires_in": given })).seconds(), seconds, "{given}");
        }
    }
}
