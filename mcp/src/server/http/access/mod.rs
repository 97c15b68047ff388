//! Authentication: tokens ([`tokens`]), what each allows, and rate limits on addresses that try wrong ones.

pub mod tokens;

use super::fairness::RecentRequests;
use super::guard::single_header;
use super::reload::ReloadSignal;
use super::settings::HttpLimits;
use crate::server::gate::{Gate, Tenant, TenantLimits};
use crate::tools::CallOwner;
use axum::http::{HeaderMap, header};
use ptc_runtime::asker::ClientIdentity;
use ptc_runtime::sync::{Locked, RwLocked};
use ptc_runtime::tools::ServerNames;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use subtle::ConstantTimeEq;
use tokens::TokenGrant;
use tokio::sync::watch;

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Minimal length of a token, in bytes.
pub const SHORTEST_TOKEN: usize = 32;

/// Most addresses with failed attempts that are remembered. Further ones are not blocked.
const MOST_ADDRESSES: usize = 10_000;

/// The hash of a token.
pub fn hash(token: &str) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// The clients that hold one token, or all clients of a server without tokens.
#[derive(Debug)]
pub(super) struct TokenHolder {
    /// Owner of their runs and sessions.
    pub(super) owner: CallOwner,
    /// Name of the token.
    pub(super) name: String,
    grant: Option<TokenGrant>,
    tenant_limits: TenantLimits,
    tenant: OnceLock<Arc<Tenant>>,
    pub(super) recent: RecentRequests,
    /// Rate limiter: calls that it may begin at once, and since when that is so.
    calls: Mutex<(f64, Instant)>,
    /// Set when work begun with the token has to end. Holders of the same token share it across edits of the
    /// file.
    revoked: Arc<watch::Sender<bool>>,
}

impl TokenHolder {
    fn new(grant: Option<TokenGrant>, limits: &HttpLimits) -> TokenHolder {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let own = grant.as_ref().and_then(|grant| grant.max_concurrent);
        let jobs = own.map_or(limits.jobs_per_owner, |own| u64::from(own.get()));
        let per_minute = grant.as_ref().and_then(|grant| grant.evals_per_minute);
        TokenHolder {
            owner: grant.as_ref().map_or_else(CallOwner::default, |grant| token_owner(&grant.hash)),
            name: grant.as_ref().map_or_else(String::new, |grant| grant.name.clone()),
            tenant_limits: TenantLimits { jobs: whole(jobs), queued: whole(limits.queued_per_owner) },
            tenant: OnceLock::new(),
            recent: RecentRequests::default(),
            calls: Mutex::new((per_minute.map_or(0.0, |most| f64::from(most.get())), Instant::now())),
            revoked: Arc::new(watch::Sender::new(false)),
            grant,
        }
    }

    /// Takes one of the calls that the token may begin a minute.
    ///
    /// # Errors
    /// The limit is reached: it, and the time until the next call.
    pub(super) fn take_call(&self) -> Result<(), (u32, Duration)> {
        let Some(most) = self.grant.as_ref().and_then(|grant| grant.evals_per_minute) else { return Ok(()) };
        let (most, now) = (most.get(), Instant::now());
        let a_second = f64::from(most) / 60.0;
        let mut calls = self.calls.locked();
        let available = (calls.0 + (now - calls.1).as_secs_f64() * a_second).min(f64::from(most));
        if available < 1.0 {
            *calls = (available, now);
            return Err((most, Duration::from_secs_f64((1.0 - available) / a_second)));
        }
        *calls = (available - 1.0, now);
        Ok(())
    }

    /// Their name for rules of the policy.
    pub(super) fn identity(&self) -> ClientIdentity {
        let token = self.grant.as_ref().map(|grant| grant.name.as_str().into());
        ClientIdentity { token, ..ClientIdentity::default() }
    }

    /// The servers that the token allows; `None`: all.
    pub(super) fn servers(&self) -> Option<&ServerNames> {
        self.grant.as_ref()?.servers.as_ref()
    }

    fn is_valid(&self) -> bool {
        self.time_left().is_none_or(|left| !left.is_zero())
    }

    /// How long the token is still valid; `None`: for ever.
    fn time_left(&self) -> Option<Duration> {
        let expires = u64::try_from(self.grant.as_ref()?.expires?.as_second()).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(Duration::from_secs(expires).saturating_sub(now))
    }

    /// True when `other` may see everything that was begun with this token.
    fn is_covered_by(&self, other: &TokenHolder) -> bool {
        let holds_all = match (self.servers(), other.servers()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(old), Some(new)) => old.is_subset(new),
        };
        self.owner == other.owner && holds_all
    }

    /// Ends everything that was begun with the token.
    pub(super) fn revoke(&self) {
        self.revoked.send_replace(true);
    }

    /// True after [`TokenHolder::revoke`].
    pub(super) fn is_revoked(&self) -> bool {
        *self.revoked.borrow()
    }

    /// Waits for [`TokenHolder::revoke`].
    pub(super) async fn revoked(&self) {
        // We hold the sender, so this cannot fail.
        let _ = self.revoked.subscribe().wait_for(|revoked| *revoked).await;
    }

    /// Their tenant at the gate.
    pub(super) fn tenant(&self, gate: &Arc<Gate>) -> Arc<Tenant> {
        self.tenant.get_or_init(|| gate.tenant(self.tenant_limits)).clone()
    }
}

/// Why a request is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessDenied {
    /// It has no token.
    NoToken,
    /// Its token is unknown or expired.
    WrongToken,
    /// Its address has sent too many wrong tokens; how long it stays blocked.
    TooMany(Duration),
}

/// Authenticates requests.
#[derive(Debug)]
pub struct Access {
    /// `None`: all clients are one owner.
    tokens: Option<RwLock<Vec<KnownToken>>>,
    file: Option<TokenFile>,
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

#[derive(Debug, Default)]
struct Failures {
    addresses: HashMap<IpAddr, Attempts>,
}

#[derive(Debug)]
struct Attempts {
    begun: Instant,
    count: u64,
    refused_until: Option<Instant>,
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
        let read = || match tokens::read(path) {
            Ok(grants) => {
                tracing::info!(tokens = grants.len(), "tokens reloaded");
                replaced(self.replace(fixed.iter().cloned().chain(grants).collect()));
            }
            Err(wrong) => tracing::error!("the edited tokens are not used, those before stay: {wrong}"),
        };
        reloads.follow(std::slice::from_ref(path), read).await;
    }

    fn with(tokens: Option<RwLock<Vec<KnownToken>>>, limits: &HttpLimits, counts_failures: bool) -> Access {
        let anonymous = Arc::new(TokenHolder::new(None, limits));
        Access { tokens, file: None, anonymous, limits: *limits, counts_failures, failures: Mutex::default() }
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

    /// True when a token allows exactly these servers.
    pub(super) fn grants(&self, servers: &ServerNames) -> bool {
        let is_one =
            |tokens: &[KnownToken]| tokens.iter().any(|known| known.holder.servers() == Some(servers));
        self.known(is_one).unwrap_or(false)
    }

    /// Authenticates a request with these headers from this address.
    pub(super) fn admit(&self, from: IpAddr, headers: &HeaderMap) -> Result<Arc<TokenHolder>, AccessDenied> {
        let Some(tokens) = &self.tokens else { return Ok(self.anonymous.clone()) };
        let shown = match single_header(headers, &header::AUTHORIZATION) {
            Some(None) => return self.refused_or(from, AccessDenied::NoToken),
            Some(Some(text)) => bearer(text).map(hash),
            None => None,
        };
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
            None => {
                let refused = self.refused_or(from, AccessDenied::WrongToken);
                self.count(from);
                refused
            }
        }
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.locked()
    }

    fn refused_or<T>(&self, from: IpAddr, refused: AccessDenied) -> Result<T, AccessDenied> {
        let wait = if self.counts_failures { self.failures().refused(from) } else { None };
        Err(wait.map_or(refused, AccessDenied::TooMany))
    }

    /// Counts a wrong token from this address.
    fn count(&self, from: IpAddr) {
        if !self.counts_failures {
            return;
        }
        let now = Instant::now();
        let [window, block] =
            [self.limits.auth_window_ms, self.limits.auth_block_ms].map(Duration::from_millis);
        let mut failures = self.failures();
        if failures.addresses.len() >= MOST_ADDRESSES && !failures.addresses.contains_key(&from) {
            failures.addresses.retain(|_, attempts| attempts.matters(now, window));
            if failures.addresses.len() >= MOST_ADDRESSES {
                return;
            }
        }
        let attempts =
            failures.addresses.entry(from).or_insert(Attempts { begun: now, count: 0, refused_until: None });
        if !attempts.matters(now, window) {
            *attempts = Attempts { begun: now, count: 0, refused_until: None };
        }
        attempts.count += 1;
        if attempts.count >= self.limits.auth_failures && attempts.refused_until.is_none() {
            attempts.refused_until = Some(now + block);
            tracing::warn!(address = %from, "too many wrong tokens: refused for a while");
        }
    }
}

impl Attempts {
    fn matters(&self, now: Instant, window: Duration) -> bool {
        match self.refused_until {
            Some(until) => now < until,
            None => now < self.begun + window,
        }
    }
}

impl Failures {
    /// How long an address is still blocked.
    fn refused(&self, from: IpAddr) -> Option<Duration> {
        let until = self.addresses.get(&from)?.refused_until?;
        until.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Identifies the owner of a token by the token's hash.
fn token_owner(hash: &TokenHash) -> CallOwner {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    CallOwner(u64::from_be_bytes(first))
}
