//! Authenticates HTTP clients by tokens, of this server or of an OAuth issuer, and enforces what each token allows.
//! Tokens of this server are in [`tokens`], those of issuers in [`oauth`]. `holder`: what a token allows. `rate`: how
//! many calls a minute. `attempts`: how often an address may try wrong tokens.

mod attempts;
mod holder;
pub mod oauth;
mod rate;
pub mod tokens;

use super::guard::single_header;
use super::settings::HttpLimits;
use crate::server::detached::OwnerRights;
use crate::tools::CallOwner;
use attempts::Failures;
use axum::http::{HeaderMap, header};
pub(super) use holder::TokenHolder;
use oauth::{OAuthAccess, TokenRefusal};
use ptc_base::digest::sha256;
use ptc_base::files::{FollowedFiles, ReloadSignal};
use ptc_base::sync::RwLocked;
use ptc_calls::tools::ServerNames;
pub(super) use rate::{CallBucket, seconds};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokens::TokenGrant;

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Minimal length of a token, in bytes.
pub const SHORTEST_TOKEN: usize = 32;

/// The hash of a token.
pub fn hash(token: &str) -> TokenHash {
    sha256(token.as_bytes())
}

/// Why a request is not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccessDenied {
    /// It has no token.
    NoToken,
    /// Its token is unknown or expired.
    WrongToken,
    /// Its token is of an issuer, and is refused.
    Refused(TokenRefusal),
    /// Its address has sent too many wrong tokens; how long it stays blocked.
    TooMany(Duration),
}

/// Authenticates requests.
pub struct Access {
    /// `None`: all clients are one owner.
    tokens: Option<RwLock<Vec<KnownToken>>>,
    file: Option<TokenFile>,
    /// Accepts tokens of issuers.
    pub(super) oauth: Option<OAuthAccess>,
    anonymous: Arc<TokenHolder>,
    limits: HttpLimits,
    /// Off: wrong tokens are refused without a limit on attempts.
    counts_failures: bool,
    failures: Mutex<Failures>,
}

/// A file of tokens, and the tokens that are given on the command line or in the environment.
#[derive(Debug)]
pub struct TokenFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Tokens that are valid whatever the file contains.
    pub fixed: Vec<TokenGrant>,
}

#[derive(Clone, Debug)]
struct KnownToken {
    hash: TokenHash,
    holder: Arc<TokenHolder>,
}

impl Access {
    /// Lets in all clients that reach the server.
    pub fn open(limits: &HttpLimits) -> Access {
        Access::with(None, limits, false)
    }

    /// Lets in clients with one of these tokens. A file of tokens is reloaded when it changes.
    pub fn by_tokens(
        tokens: Vec<TokenGrant>,
        file: Option<TokenFile>,
        limits: &HttpLimits,
        counts_failures: bool,
    ) -> Access {
        let access = Access::with(Some(RwLock::default()), limits, counts_failures);
        access.replace(tokens);
        Access { file, ..access }
    }

    /// Lets in clients with tokens of issuers, too.
    #[must_use]
    pub fn with_issuers(self, oauth: OAuthAccess) -> Access {
        Access { oauth: Some(oauth), ..self }
    }

    /// True when clients have different tokens, or a file may name more of them at any time.
    pub fn has_many_holders(&self) -> bool {
        let tokens = self.tokens.as_ref().map_or(0, |tokens| tokens.read_locked().len());
        self.oauth.is_some() || self.file.is_some() || tokens > 1
    }

    /// The one holder, if there is no other and there cannot be one.
    pub(super) fn only_holder(&self) -> Option<Arc<TokenHolder>> {
        if self.oauth.is_some() || self.file.is_some() {
            return None;
        }
        match self.known(|tokens| match tokens {
            [one] => Some(one.holder.clone()),
            _ => None,
        }) {
            None => Some(self.anonymous.clone()),
            Some(only) => only.filter(|holder| holder.is_valid()),
        }
    }

    /// True when tokens of issuers are accepted.
    pub fn accepts_issuers(&self) -> bool {
        self.oauth.is_some()
    }

    /// What an owner may still do. Whether an issuer still gives tokens to an owner, and for which servers, is not known
    /// here.
    pub fn rights(&self, owner: CallOwner) -> OwnerRights {
        if owner.is_of_issuer() {
            let has_issuers = !self.asks_for_tokens() || self.oauth.is_some();
            return if has_issuers { OwnerRights::All } else { OwnerRights::Gone };
        }
        match self.holder(owner) {
            None => OwnerRights::Gone,
            Some(holder) => holder.servers().cloned().map_or(OwnerRights::All, OwnerRights::Servers),
        }
    }

    /// True when clients need a token.
    pub fn asks_for_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Replaces the valid tokens. Unchanged tokens go on as before. Returns holders of tokens that are no
    /// longer valid, or for fewer servers.
    fn replace(&self, grants: Vec<TokenGrant>) -> Vec<Arc<TokenHolder>> {
        let Some(tokens) = &self.tokens else { return Vec::new() };
        let mut tokens = tokens.write_locked();
        let known = |grant: TokenGrant| {
            let old = tokens.iter().find(|known| known.holder.grant.as_ref() == Some(&grant));
            let hash = grant.hash;
            let holder = match old {
                Some(known) => known.holder.clone(),
                None => {
                    let mut holder = TokenHolder::new(Some(grant), &self.limits);
                    let mut old = tokens.iter().map(|known| &known.holder);
                    if let Some(old) = old.find(|old| old.is_covered_by(&holder) && !old.is_revoked()) {
                        holder.revoked = old.revoked.clone();
                    }
                    Arc::new(holder)
                }
            };
            KnownToken { hash, holder }
        };
        let new: Vec<KnownToken> = grants.into_iter().map(known).collect();
        let old = std::mem::replace(&mut *tokens, new);
        let goes_on = |old: &TokenHolder| tokens.iter().any(|known| old.is_covered_by(&known.holder));
        old.into_iter().map(|known| known.holder).filter(|holder| !goes_on(holder)).collect()
    }

    /// Expired tokens with work that has not been ended, and the shortest time for which the others are still
    /// valid.
    pub(super) fn expired(&self) -> (Vec<Arc<TokenHolder>>, Option<Duration>) {
        let look = |tokens: &[KnownToken]| {
            let all = tokens.iter().map(|known| &known.holder).filter(|holder| !holder.is_revoked());
            let (good, over): (Vec<_>, Vec<_>) = all.partition(|holder| holder.is_valid());
            (
                over.into_iter().cloned().collect(),
                good.into_iter().filter_map(|holder| holder.time_left()).min(),
            )
        };
        self.known(look).unwrap_or_default()
    }

    /// Reloads the file of tokens, if there is one, and passes on the holders of invalid ones. Never ends.
    pub(super) async fn follow(&self, reloads: ReloadSignal, replaced: impl Fn(Vec<Arc<TokenHolder>>)) {
        let Some(TokenFile { path, fixed }) = &self.file else { return std::future::pending().await };
        let read = |_: &[PathBuf]| match tokens::read(path) {
            Ok(grants) => {
                tracing::info!(tokens = grants.len(), "tokens reloaded");
                replaced(self.replace(fixed.iter().cloned().chain(grants).collect()));
            }
            Err(wrong) => tracing::error!("the edited tokens are not used, those before stay: {wrong}"),
        };
        FollowedFiles::read(vec![path.clone()]).follow(reloads, read).await;
    }

    fn with(tokens: Option<RwLock<Vec<KnownToken>>>, limits: &HttpLimits, counts_failures: bool) -> Access {
        let anonymous = Arc::new(TokenHolder::new(None, limits));
        let oauth = None;
        Access {
            tokens,
            file: None,
            oauth,
            anonymous,
            limits: *limits,
            counts_failures,
            failures: Mutex::default(),
        }
    }

    fn known<T>(&self, look: impl FnOnce(&[KnownToken]) -> T) -> Option<T> {
        Some(look(&self.tokens.as_ref()?.read_locked()))
    }

    /// The holder with this owner, if its token is valid. Without tokens it is the one holder of all clients.
    pub(super) fn holder(&self, owner: CallOwner) -> Option<Arc<TokenHolder>> {
        let theirs = |tokens: &[KnownToken]| {
            let mut holders = tokens.iter().map(|known| &known.holder);
            holders.find(|holder| holder.owner == owner && holder.is_valid()).cloned()
        };
        self.known(theirs).unwrap_or_else(|| Some(self.anonymous.clone()))
    }

    /// A holder with this owner, by a token of this server or of an issuer.
    pub(super) fn holder_of(&self, owner: CallOwner) -> Option<Arc<TokenHolder>> {
        self.holder(owner).or_else(|| self.oauth.as_ref()?.holder_of(owner))
    }

    /// True when a token allows exactly these servers.
    pub(super) fn grants(&self, servers: &ServerNames) -> bool {
        let is_one =
            |tokens: &[KnownToken]| tokens.iter().any(|known| known.holder.servers() == Some(servers));
        self.known(is_one).unwrap_or(false)
            || self.oauth.as_ref().is_some_and(|oauth| oauth.has_given(servers))
    }

    /// Authenticates a request with these headers from this address.
    pub(super) async fn admit(
        &self,
        from: IpAddr,
        headers: &HeaderMap,
    ) -> Result<Arc<TokenHolder>, AccessDenied> {
        let Some(tokens) = &self.tokens else { return Ok(self.anonymous.clone()) };
        let token = match single_header(headers, &header::AUTHORIZATION) {
            Some(None) => return self.refused_or(from, AccessDenied::NoToken),
            Some(Some(text)) => bearer(text),
            None => None,
        };
        let shown = token.map(hash);
        let found = shown.and_then(|shown| {
            let tokens = tokens.read_locked();
            // Compare with all tokens, so that the time does not depend on which one matches.
            let places = tokens.iter().enumerate();
            let place =
                places.fold(
                    None,
                    |found, (at, known)| {
                        if bool::from(known.hash.ct_eq(&shown)) { Some(at) } else { found }
                    },
                );
            place.map(|at| tokens[at].clone())
        });
        match found.filter(|known: &KnownToken| known.holder.is_valid()) {
            // A blocked address is let in with a valid token, too. A token cannot be guessed, and other clients
            // may share that address.
            Some(KnownToken { holder, .. }) => Ok(holder),
            None => self.admit_issued(from, token.zip(shown)).await,
        }
    }

    /// Authenticates a request whose token is none of this server.
    async fn admit_issued(
        &self,
        from: IpAddr,
        token: Option<(&str, TokenHash)>,
    ) -> Result<Arc<TokenHolder>, AccessDenied> {
        let refusal = match (&self.oauth, token) {
            (Some(oauth), Some((token, hash))) if oauth::is_signed(token) => {
                match oauth.admit(token, hash).await {
                    Ok(holder) => return Ok(holder),
                    Err(refusal) => refusal,
                }
            }
            _ => {
                let refused = self.refused_or(from, AccessDenied::WrongToken);
                self.count(from);
                return refused;
            }
        };
        // A client whose token has expired, or lacks a scope, is no stranger, and has to see the challenge.
        if !refusal.is_suspicious() {
            return Err(AccessDenied::Refused(refusal));
        }
        let refused = self.refused_or(from, AccessDenied::Refused(refusal));
        self.count(from);
        refused
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_gone_with_its_token() {
        let limits = HttpLimits::default();
        let [one, other] = ["a", "b"].map(|token| CallOwner::of_token(&hash(token)));
        let issued = CallOwner::of_issuer(&hash("a"));
        let known = TokenGrant::unlimited("a", hash("a"));
        let access = Access::by_tokens(vec![known], None, &limits, false);
        let is_gone = |access: &Access, owner| access.rights(owner) == OwnerRights::Gone;
        assert!(!is_gone(&access, one) && is_gone(&access, other));
        // There is no issuer any more.
        assert!(issued.is_of_issuer() && !one.is_of_issuer() && is_gone(&access, issued));
        let open = Access::open(&limits);
        assert!(!is_gone(&open, other) && !is_gone(&open, issued));
    }
}
