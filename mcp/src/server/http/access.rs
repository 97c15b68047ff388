//! Who gets in: tokens, what each may, and addresses that try wrong ones.

use super::guard::only;
use super::settings::HttpLimits;
use crate::server::gate::{Gate, Party, Share};
use crate::tools::CallOwner;
use axum::http::{HeaderMap, header};
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Bytes that a token has at least.
pub const SHORTEST_TOKEN: usize = 32;

/// Addresses whose wrong tokens are remembered; beyond that nobody more is refused.
const MOST_ADDRESSES: usize = 10_000;

/// The hash of a token.
pub fn hash(token: &str) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Who has a token, or everybody where none is asked for.
#[derive(Debug)]
pub(super) struct TokenHolder {
    /// What belongs to them.
    pub(super) owner: CallOwner,
    share: Share,
    party: OnceLock<Arc<Party>>,
}

impl TokenHolder {
    fn new(owner: CallOwner, limits: &HttpLimits) -> Arc<TokenHolder> {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let share = Share { jobs: whole(limits.jobs_per_owner), queued: whole(limits.queued_per_owner) };
        Arc::new(TokenHolder { owner, share, party: OnceLock::new() })
    }

    /// Their place at the gate.
    pub(super) fn party(&self, gate: &Arc<Gate>) -> Arc<Party> {
        self.party.get_or_init(|| gate.party(self.share)).clone()
    }
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// They show no token.
    NoToken,
    /// It is none of ours, or good no longer.
    WrongToken,
    /// There were too many wrong ones from there; when it is worth trying again.
    TooMany(Duration),
}

/// Who gets in.
#[derive(Debug)]
pub struct Access {
    /// `None`: everybody is one and the same.
    tokens: Option<RwLock<Vec<KnownToken>>>,
    everybody: Arc<TokenHolder>,
    limits: HttpLimits,
    /// Off: wrong tokens are refused one by one.
    counts_failures: bool,
    failures: Mutex<Failures>,
}

#[derive(Clone, Debug)]
struct KnownToken {
    hash: TokenHash,
    holder: Arc<TokenHolder>,
}

#[derive(Debug, Default)]
struct Failures {
    addresses: HashMap<IpAddr, Attempts>,
    /// Tokens that were shown where they are known, before there were too many wrong ones.
    known: HashMap<IpAddr, Vec<TokenHash>>,
}

#[derive(Debug)]
struct Attempts {
    begun: Instant,
    count: u64,
    refused_until: Option<Instant>,
}

impl Access {
    /// For everybody who reaches the server.
    pub fn open(limits: &HttpLimits) -> Access {
        Access::with(None, limits, false)
    }

    /// For who has one of these tokens.
    pub fn by_tokens(tokens: &[TokenHash], limits: &HttpLimits, counts_failures: bool) -> Access {
        let known =
            |hash: &TokenHash| KnownToken { hash: *hash, holder: TokenHolder::new(owner_of(hash), limits) };
        Access::with(Some(RwLock::new(tokens.iter().map(known).collect())), limits, counts_failures)
    }

    fn with(tokens: Option<RwLock<Vec<KnownToken>>>, limits: &HttpLimits, counts_failures: bool) -> Access {
        let everybody = TokenHolder::new(CallOwner::default(), limits);
        Access { tokens, everybody, limits: *limits, counts_failures, failures: Mutex::default() }
    }

    /// Who asks from there, with these headers.
    pub(super) fn admit(&self, from: IpAddr, headers: &HeaderMap) -> Result<Arc<TokenHolder>, Refused> {
        let Some(tokens) = &self.tokens else { return Ok(self.everybody.clone()) };
        let shown = match only(headers, &header::AUTHORIZATION) {
            Some(None) => return self.refused_or(from, Refused::NoToken),
            Some(Some(text)) => bearer(text).map(hash),
            None => None,
        };
        let found = shown.and_then(|shown| {
            let tokens = tokens.read().unwrap_or_else(PoisonError::into_inner);
            // All are looked at, whatever the first ones are.
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
        match found {
            Some(KnownToken { hash, holder }) => self.is_welcome(from, hash).map(|()| holder),
            None => {
                let refused = self.refused_or(from, Refused::WrongToken);
                self.count(from);
                refused
            }
        }
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A right token from an address that is refused was guessed, unless it was known there before.
    fn is_welcome(&self, from: IpAddr, hash: TokenHash) -> Result<(), Refused> {
        if !self.counts_failures {
            return Ok(());
        }
        let mut failures = self.failures();
        if failures.known.get(&from).is_some_and(|known| known.contains(&hash)) {
            return Ok(());
        }
        if let Some(wait) = failures.refused(from) {
            return Err(Refused::TooMany(wait));
        }
        if failures.known.len() < MOST_ADDRESSES || failures.known.contains_key(&from) {
            failures.known.entry(from).or_default().push(hash);
        }
        Ok(())
    }

    fn refused_or<T>(&self, from: IpAddr, refused: Refused) -> Result<T, Refused> {
        let wait = if self.counts_failures { self.failures().refused(from) } else { None };
        Err(wait.map_or(refused, Refused::TooMany))
    }

    /// A wrong token from there.
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
    /// How long an address is refused from now on.
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

/// What a token owns goes by its hash.
fn owner_of(hash: &TokenHash) -> CallOwner {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    CallOwner(u64::from_be_bytes(first))
}
