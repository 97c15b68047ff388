//! Caches verified OAuth access tokens with what their holders may do, so that a token need not be verified for every
//! request. When the settings change, the cache forgets and returns the holders that lose their token or may do
//! something else now, for the server to end their work.
//!
//! A token is accepted without a check of its signature for [`IssuerKeys::FRESH`] at most. Its holder is remembered for
//! longer: as long as there is room, and as long as work that was begun with the token holds it.

use super::settings::OAuthSettings;
use crate::server::http::access::{TokenHash, TokenHolder};
use crate::tools::CallOwner;
use ptc_base::jwt::{Claims, IssuerKeys};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most verified tokens that are remembered.
pub(super) const MOST_TOKENS: usize = 4_096;

/// By how much the clocks of issuers may differ.
const SKEW: Duration = Duration::from_secs(60);

/// Verified tokens and the holders of work.
#[derive(Default)]
pub(super) struct TokenMemory {
    verified: HashMap<TokenHash, VerifiedToken>,
    /// One holder for each token, as long as anything holds it. Each holds what the current file allows.
    live: HashMap<TokenHash, LiveHolder>,
    /// The number of holders at which those that have ended are removed.
    sweep_at: usize,
}

struct VerifiedToken {
    holder: Arc<TokenHolder>,
    /// When the token is verified again.
    until: SystemTime,
}

struct LiveHolder {
    holder: Weak<TokenHolder>,
    issuer: String,
    claims: Arc<Claims>,
}

impl TokenMemory {
    /// The holder of a token that need not be verified at this time.
    pub(super) fn verified(&self, hash: &TokenHash, now: SystemTime) -> Option<Arc<TokenHolder>> {
        self.verified.get(hash).filter(|known| now < known.until).map(|known| known.holder.clone())
    }

    /// A holder of a valid token of this owner.
    pub(super) fn holder_of(&self, owner: CallOwner) -> Option<Arc<TokenHolder>> {
        let mut holders = self.live.values().filter_map(|live| live.holder.upgrade());
        holders.find(|holder| holder.owner == owner && holder.is_valid() && !holder.is_revoked())
    }

    /// Remembers a token that was verified at this time. Its holder is the one that it already has, or a new one.
    pub(super) fn remember(
        &mut self,
        hash: TokenHash,
        issuer: &str,
        claims: Claims,
        now: SystemTime,
        new: impl FnOnce(&Claims) -> Arc<TokenHolder>,
    ) -> Arc<TokenHolder> {
        let until = verified_until(claims.expires, now);
        let holder = match self.live.get(&hash).and_then(|live| live.holder.upgrade()) {
            Some(holder) => holder,
            None => {
                let holder = new(&claims);
                self.sweep();
                let live = LiveHolder {
                    holder: Arc::downgrade(&holder),
                    issuer: issuer.to_owned(),
                    claims: Arc::new(claims),
                };
                self.live.insert(hash, live);
                holder
            }
        };
        self.make_room(now);
        self.verified.insert(hash, VerifiedToken { holder: holder.clone(), until });
        holder
    }

    /// Forgets the holders whose tokens are refused under these settings, or allow something else, and returns them. The
    /// other tokens are verified again when they are shown.
    pub(super) fn replace(&mut self, settings: &OAuthSettings) -> Vec<Arc<TokenHolder>> {
        let mut gone = Vec::new();
        self.live.retain(|_, live| {
            let Some(holder) = live.holder.upgrade() else { return false };
            let stays = settings
                .accepted(&live.issuer, &live.claims)
                .is_some_and(|allowed| allowed.is_that_of(holder.grant.as_ref()));
            if !stays {
                gone.push(holder);
            }
            stays
        });
        self.verified.retain(|hash, _| self.live.contains_key(hash));
        self.verified.values_mut().for_each(|known| known.until = UNIX_EPOCH);
        gone
    }

    fn make_room(&mut self, now: SystemTime) {
        if self.verified.len() < MOST_TOKENS {
            return;
        }
        self.verified.retain(|_, known| now < known.until);
        // Tokens that end first are forgotten first: they are verified again when they are shown again.
        if self.verified.len() >= MOST_TOKENS {
            let mut ends: Vec<SystemTime> = self.verified.values().map(|known| known.until).collect();
            ends.sort_unstable();
            let limit = ends[MOST_TOKENS / 8];
            self.verified.retain(|_, known| known.until > limit);
        }
    }

    /// Removes holders that have ended. The threshold follows their number, so a token costs constant time on average.
    fn sweep(&mut self) {
        if self.live.len() >= self.sweep_at.max(2 * MOST_TOKENS) {
            self.live.retain(|_, live| live.holder.strong_count() > 0);
            self.sweep_at = 2 * self.live.len();
        }
    }
}

/// Until when a token that was verified at this time is accepted without its keys.
fn verified_until(expires: SystemTime, now: SystemTime) -> SystemTime {
    let fresh = now.checked_add(IssuerKeys::FRESH).unwrap_or(now);
    // The end of a token that never ends is beyond what the clock can show.
    expires.checked_add(SKEW).map_or(fresh, |end| end.min(fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_verified_again_before_its_end() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(verified_until(after(10), now), after(10) + SKEW);
        assert_eq!(verified_until(after(1_000_000), now), now + IssuerKeys::FRESH);
        let far = UNIX_EPOCH + Duration::from_secs(i64::MAX as u64);
        assert_eq!(verified_until(far, now), now + IssuerKeys::FRESH);
    }
}
