//! Accepts access tokens that issuers have signed (OAuth 2.1 resource server): verifies them, decides by rules what
//! they allow, and caches verified tokens for a bounded time.
//!
//! # Layout
//!
//! - `settings`: the file of `--http-oauth`. `rules`: what a token allows.
//! - `memory`: verified tokens and their holders.
//! - [`challenge`]: the metadata of this resource (RFC 9728), and challenges.
//!
//! The owner of runs, sessions and records is issuer and subject, so it stays the same when a client renews its token.
//! A token is never passed on: upstreams get the credentials of the configuration.

pub mod challenge;
mod memory;
mod rules;
mod settings;

use super::holder::{SharedTenant, TokenHolder};
use super::tokens::TokenGrant;
use super::{TokenHash, hash};
use crate::server::http::settings::HttpLimits;
use crate::tools::CallOwner;
use challenge::Challenges;
use jiff::Timestamp;
use memory::{MOST_TOKENS, TokenMemory};
use ptc_base::files::{FollowedFiles, ReloadSignal};
use ptc_base::jwt::{ClaimRules, Claims, TokenFault, UnverifiedToken};
use ptc_base::net::HttpClient;
use ptc_base::oauth::Scopes;
use ptc_base::sync::{Locked, RwLocked};
use ptc_calls::tools::ServerNames;
use ptc_calls::tools::visible::visible_line;
use rules::Allowed;
use settings::{Issuer, OAuthSettings};
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// Characters of a subject in a name.
const LONGEST_NAME: usize = 200;

/// Why a token of an issuer is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server::http) enum TokenRefusal {
    /// It is not valid.
    Invalid(TokenFault),
    /// The keys of its issuer are not available.
    Unavailable,
    /// It is valid, and lacks these scopes.
    Insufficient(Scopes),
}

impl TokenRefusal {
    /// Whether it may be an attempt to get in without a login.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            TokenRefusal::Invalid(fault) => !matches!(fault, TokenFault::Expired | TokenFault::NotYet),
            TokenRefusal::Unavailable | TokenRefusal::Insufficient(_) => false,
        }
    }
}

/// Accepts tokens of the issuers in a file.
pub struct OAuthAccess {
    path: PathBuf,
    client: HttpClient,
    limits: HttpLimits,
    settings: RwLock<Arc<OAuthSettings>>,
    memory: RwLock<TokenMemory>,
    /// What the tokens of one owner with the same limits share.
    tenants: Mutex<HashMap<TenantKey, Weak<SharedTenant>>>,
    /// Each set of servers that a token has allowed.
    given: Mutex<HashSet<ServerNames>>,
}

type TenantKey = (CallOwner, Option<NonZeroU32>, Option<NonZeroU32>);

/// Whether a token has the form of one that an issuer has signed.
pub(super) fn is_signed(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl OAuthAccess {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it, in a line.
    pub fn read(path: &Path, limits: &HttpLimits) -> Result<OAuthAccess, String> {
        let client = HttpClient::new(&Default::default()).map_err(|error| error.to_string())?;
        let settings = OAuthSettings::read(path, &client)?;
        Ok(OAuthAccess {
            path: path.to_owned(),
            client,
            limits: *limits,
            settings: RwLock::new(Arc::new(settings)),
            memory: RwLock::default(),
            tenants: Mutex::default(),
            given: Mutex::default(),
        })
    }

    fn settings(&self) -> Arc<OAuthSettings> {
        self.settings.read_locked().clone()
    }

    /// What a client is told that has no valid token.
    pub(in crate::server::http) fn challenges(&self) -> Challenges {
        Challenges::new(&self.settings())
    }

    /// True when a token has allowed exactly these servers.
    pub(super) fn has_given(&self, servers: &ServerNames) -> bool {
        self.given.locked().contains(servers)
    }

    /// A holder of a valid token of this owner that has been here.
    pub(super) fn holder_of(&self, owner: CallOwner) -> Option<Arc<TokenHolder>> {
        self.memory.read_locked().holder_of(owner)
    }

    /// Authenticates a token; `hash` is its digest.
    pub(super) async fn admit(&self, token: &str, hash: TokenHash) -> Result<Arc<TokenHolder>, TokenRefusal> {
        loop {
            if let Some(holder) = self.memory.read_locked().verified(&hash, SystemTime::now()) {
                return Ok(holder);
            }
            let settings = self.settings();
            let token = UnverifiedToken::parse(token).map_err(TokenRefusal::Invalid)?;
            let issuer = token.issuer().and_then(|name| settings.issuer(name));
            let issuer = issuer.ok_or(TokenRefusal::Invalid(TokenFault::Issuer))?;
            let claims = verified(token, issuer, &settings).await?;
            let allowed = settings.allowed(&issuer.name, &claims).map_err(TokenRefusal::Insufficient)?;
            let mut memory = self.memory.write_locked();
            // If the file was edited meanwhile, the new one decides.
            if Arc::ptr_eq(&settings, &self.settings.read_locked()) {
                let new = |claims: &Claims| self.holder(hash, &issuer.name, claims, allowed);
                return Ok(memory.remember(hash, &issuer.name, claims, SystemTime::now(), new));
            }
        }
    }

    fn holder(&self, hash: TokenHash, issuer: &str, claims: &Claims, allowed: Allowed) -> Arc<TokenHolder> {
        let Allowed { servers, evals_per_minute, max_concurrent } = allowed;
        if let Some(servers) = &servers {
            self.given.locked().insert(servers.clone());
        }
        let owner = owner(issuer, &claims.subject);
        let grant = TokenGrant {
            name: name(issuer, &claims.subject),
            hash,
            expires: Some(timestamp(claims.expires)),
            max_concurrent,
            evals_per_minute,
            servers,
        };
        let shared = self.tenant((owner, max_concurrent, evals_per_minute), &grant);
        Arc::new(TokenHolder::of_issuer(grant, owner, claims.scopes(), shared))
    }

    fn tenant(&self, key: TenantKey, grant: &TokenGrant) -> Arc<SharedTenant> {
        let mut tenants = self.tenants.locked();
        if let Some(shared) = tenants.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        if tenants.len() >= 2 * MOST_TOKENS {
            tenants.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::new(SharedTenant::new(Some(grant), &self.limits));
        tenants.insert(key, Arc::downgrade(&shared));
        shared
    }

    /// Reloads the file when it changes, and passes on the holders of tokens that allow something else now. Never ends.
    pub(in crate::server::http) async fn follow(
        &self,
        reloads: ReloadSignal,
        replaced: impl Fn(Vec<Arc<TokenHolder>>),
    ) {
        let read = |_: &[PathBuf]| match OAuthSettings::read(&self.path, &self.client) {
            Ok(settings) if settings.is_same(&self.settings()) => {}
            Ok(settings) => {
                tracing::info!(file = %self.path.display(), "issuers and grants reloaded");
                replaced(self.replace(settings));
            }
            Err(wrong) => {
                tracing::error!("the edited issuers and grants are not used, those before stay: {wrong}")
            }
        };
        FollowedFiles::read(vec![self.path.clone()]).follow(reloads, read).await;
    }

    /// Returns the holders of tokens that allow something else now.
    fn replace(&self, mut settings: OAuthSettings) -> Vec<Arc<TokenHolder>> {
        let mut memory = self.memory.write_locked();
        let mut current = self.settings.write_locked();
        settings.take_over_keys(&current);
        *current = Arc::new(settings);
        memory.replace(&current)
    }
}

/// The claims of a token, once its issuer's keys have verified it.
async fn verified(
    token: UnverifiedToken<'_>,
    issuer: &Issuer,
    settings: &OAuthSettings,
) -> Result<Claims, TokenRefusal> {
    let keys = issuer.keys.for_token(&token).await.map_err(|fault| {
        // Anyone can cause this. Failures of the issuer itself are warnings where its keys are fetched.
        tracing::debug!(issuer = issuer.name, %fault, "a token could not be verified");
        TokenRefusal::Unavailable
    })?;
    let rules = ClaimRules { issuer: &issuer.name, audience: &settings.resource };
    Claims::verify(token, &keys, &issuer.algorithms, &rules).map_err(TokenRefusal::Invalid)
}

/// The owner of everything that a subject of an issuer begins.
fn owner(issuer: &str, subject: &str) -> CallOwner {
    // The length keeps two pairs with the same text apart.
    CallOwner::of_issuer(&hash(&format!("{}:{issuer}|{subject}", issuer.len())))
}

/// The name for logs and for rules of the policy. No token of the file of tokens can have it.
fn name(issuer: &str, subject: &str) -> String {
    let subject: String = visible_line(subject).chars().take(LONGEST_NAME).collect();
    format!("{issuer}#{subject}")
}

fn timestamp(time: SystemTime) -> Timestamp {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn owners_are_pairs_of_issuer_and_subject() {
        assert_eq!(owner("https://a", "b"), owner("https://a", "b"));
        assert_ne!(owner("https://a", "b"), owner("https://a|b", ""));
        assert_ne!(owner("https://a", "|b"), owner("https://a|", "b"));
        assert_eq!(name("https://a", "u\n\u{1b}x"), "https://a#u\\u000a\\u001bx");
        assert!(is_signed("a.b.c") && !is_signed("a.b") && !is_signed("a.b.c.d"));
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 52);
        assert_eq!(timestamp(far), Timestamp::MAX);
    }
}
