//! Builds the login record that is stored from newly issued OAuth tokens, after a new login or a renewal.

use super::Inner;
use crate::net::AddressClass;
use crate::oauth::account::LoginId;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::Client;
use crate::oauth::server::discovery::Discovered;
use crate::oauth::server::token::Tokens;
use crate::oauth::store::stored::{StoredLogin, now};

/// The login with new tokens. Without a new refresh token, the old one stays (RFC 6749, section 6).
pub(super) fn with_tokens(old: &StoredLogin, tokens: Tokens) -> StoredLogin {
    let obtained_at = now();
    StoredLogin {
        access: tokens.access,
        refresh: tokens.refresh.or_else(|| old.refresh.clone()),
        granted: tokens.scopes.or_else(|| old.granted.clone()),
        obtained_at,
        expires_at: tokens.expires_in.map(|seconds| obtained_at.saturating_add(seconds)),
        refreshed_at: Some(obtained_at),
        ..old.clone()
    }
}

impl Inner {
    /// The login with these tokens.
    pub(in crate::oauth) fn new_login(
        &self,
        discovered: &Discovered,
        client: Client,
        requested: Scopes,
        tokens: Tokens,
        id: LoginId,
    ) -> StoredLogin {
        let obtained_at = now();
        StoredLogin {
            server: self.server.to_string(),
            owner: self.options.owner.as_deref().map(str::to_owned),
            resource: discovered.resource.clone(),
            issuer: discovered.server.issuer.clone(),
            token_endpoint: discovered.server.token_endpoint.clone().unwrap_or_default(),
            revocation_endpoint: discovered.server.revocation_endpoint.clone(),
            named_by: self.seen().class.unwrap_or(AddressClass::Public),
            client,
            requested,
            granted: tokens.scopes,
            missing: Scopes::default(),
            access: tokens.access,
            refresh: tokens.refresh,
            obtained_at,
            expires_at: tokens.expires_in.map(|seconds| obtained_at.saturating_add(seconds)),
            refreshed_at: None,
            id,
        }
    }
}
