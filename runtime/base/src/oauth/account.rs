//! Identifies the user account that the OAuth tokens of a login belong to, so that a session opened at a server for one
//! account is never used with the tokens of another.

use crate::digest::sha256_hex;
use crate::oauth::{Result, random};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::sync::Arc;

/// Identifies the account of a login. Renewals keep it; another login by a person has another one, because nothing says
/// whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginId(Arc<str>);

impl LoginId {
    /// For a login by a person.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn random() -> Result<LoginId> {
        Ok(LoginId(random::unregistered()?.expose().into()))
    }

    /// For tokens of the client itself. The key of a login names the client.
    pub(super) fn client() -> LoginId {
        LoginId("client_credentials".into())
    }

    /// For tokens of the person whom an ID token names: its issuer and subject (OpenID Connect Core, section 2), or the
    /// whole token where it cannot be read.
    pub(super) fn of_id_token(token: &str) -> LoginId {
        let claims = || -> Option<String> {
            let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
            let claims: Value = serde_json::from_slice(&claims).ok()?;
            Some(json!([claims["iss"].as_str()?, claims["sub"].as_str()?]).to_string())
        };
        let subject = claims().unwrap_or_else(|| token.to_owned());
        LoginId(format!("id_jag {}", sha256_hex(subject.as_bytes())).into())
    }

    /// As it was stored; empty in files of earlier versions.
    pub(super) fn stored(id: &str) -> LoginId {
        LoginId(id.into())
    }

    /// Its text in the store.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn a_person_is_the_same_in_each_of_their_id_tokens() {
        let of = |claims: Value| LoginId::of_id_token(&token(&claims));
        let first = of(json!({ "iss": "https://idp", "sub": "ann", "iat": 1 }));
        assert_eq!(first, of(json!({ "iss": "https://idp", "sub": "ann", "iat": 2 })));
        assert_ne!(first, of(json!({ "iss": "https://idp", "sub": "bob", "iat": 1 })));
        assert_ne!(first, of(json!({ "iss": "https://other", "sub": "ann", "iat": 1 })));
        for unreadable in ["", "opaque", "a.b.c", &token(&json!({ "sub": "ann" }))] {
            assert_eq!(LoginId::of_id_token(unreadable), LoginId::of_id_token(unreadable));
            assert_ne!(LoginId::of_id_token(unreadable), first);
        }
        assert_ne!(LoginId::random().ok(), LoginId::random().ok());
    }
}
