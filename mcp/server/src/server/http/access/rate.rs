//! Limits how many calls a minute a token may begin, counted at this process or at all nodes that share a database.
//!
//! A node takes some calls from the database at once, and asks again when it has used them, so a limit needs one look
//! at the database for each fiftieth of it. All nodes together exceed it by no more than that for each node. While the
//! database is away each node counts by itself.

use crate::server::http::nodes::Nodes;
use crate::tools::CallOwner;
use ptc_base::sync::Locked;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// The part of a limit that a node takes at once.
const PART: u32 = 50;

/// How long the database may take to answer. Beyond that a node counts by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bucket is full after this time, so a time that is further ahead is one of a clock that was set back.
const MINUTE: f64 = 60.0;

/// The calls that may begin, and since when that is so.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::server::http) struct CallBucket {
    available: f64,
    /// Seconds since 1970.
    at: f64,
}

impl CallBucket {
    /// A full one.
    pub(in crate::server::http) fn full(most: NonZeroU32, now: f64) -> CallBucket {
        CallBucket { available: most.get().into(), at: now }
    }

    /// Takes up to `wanted` calls, at least one.
    ///
    /// # Errors
    /// The time until the next call.
    pub(in crate::server::http) fn take(
        &mut self,
        most: NonZeroU32,
        now: f64,
        wanted: u32,
    ) -> Result<u32, Duration> {
        let most = f64::from(most.get());
        let a_second = most / MINUTE;
        if self.at > now + MINUTE {
            self.at = now;
        }
        // The clocks of nodes differ: time that one of them has counted does not count again.
        let available = (self.available + (now - self.at).max(0.0) * a_second).min(most);
        let at = self.at.max(now);
        if available < 1.0 {
            *self = CallBucket { available, at };
            return Err(Duration::from_secs_f64((1.0 - available) / a_second));
        }
        let taken = wanted.min(whole(available)).max(1);
        *self = CallBucket { available: available - f64::from(taken), at };
        Ok(taken)
    }

    /// True when nothing is lost by forgetting it.
    pub(in crate::server::http) fn is_full(&self, now: f64) -> bool {
        now > self.at + MINUTE
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(number: f64) -> u32 {
    number as u32
}

/// Seconds since 1970.
pub(in crate::server::http) fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The limit of one tenant.
#[derive(Debug)]
pub(super) struct CallRate {
    most: NonZeroU32,
    /// What this process counts by itself.
    own: Mutex<CallBucket>,
    /// Calls that were taken from the database and not used yet.
    taken: tokio::sync::Mutex<u32>,
}

impl CallRate {
    pub(super) fn new(most: NonZeroU32) -> CallRate {
        CallRate {
            most,
            own: Mutex::new(CallBucket::full(most, seconds())),
            taken: tokio::sync::Mutex::new(0),
        }
    }

    /// Takes one call of this owner.
    ///
    /// # Errors
    /// The limit is reached: it, and the time until the next call.
    pub(super) async fn take(&self, nodes: Option<&Nodes>, owner: CallOwner) -> Result<(), (u32, Duration)> {
        let refused = |wait| (self.most.get(), wait);
        if let Some(nodes) = nodes {
            let mut taken = self.taken.lock().await;
            if *taken > 0 {
                *taken -= 1;
                return Ok(());
            }
            match self.refill(nodes, owner).await {
                Some(Ok(more)) => {
                    *taken = more.saturating_sub(1);
                    return Ok(());
                }
                Some(Err(wait)) => return Err(refused(wait)),
                None => tracing::debug!("calls a minute are counted by this node alone"),
            }
        }
        self.own.locked().take(self.most, seconds(), 1).map(drop).map_err(refused)
    }

    /// Takes calls from the database. `None`: it is away. The calls of a tenant wait for this one after the other, so one of
    /// them finds out, and the others do not ask.
    async fn refill(&self, nodes: &Nodes, owner: CallOwner) -> Option<Result<u32, Duration>> {
        if nodes.is_database_away() {
            return None;
        }
        let wanted = (self.most.get() / PART).max(1);
        match timeout(PATIENCE, nodes.take_calls(owner, self.most, wanted)).await {
            Ok(taken) => taken.ok(),
            Err(_) => {
                nodes.set_database_away(true);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_within_a_minute_whatever_clocks_say() {
        let most = NonZeroU32::new(120).unwrap();
        let mut bucket = CallBucket::full(most, 1_000.0);
        assert_eq!(bucket.take(most, 1_000.0, 50), Ok(50));
        assert_eq!(bucket.take(most, 1_000.0, 100), Ok(70));
        assert_eq!(bucket.take(most, 1_000.0, 1), Err(Duration::from_millis(500)));
        // A node with a clock that is ahead, and then one that is not.
        assert_eq!(bucket.take(most, 1_001.0, 9), Ok(2));
        assert!(bucket.take(most, 1_000.5, 1).is_err() && bucket.take(most, 1_001.0, 1).is_err());
        assert_eq!(bucket.take(most, 1_001.5, 1), Ok(1));
        // A clock that was set back by a day.
        let mut old = CallBucket { available: 0.0, at: 90_000.0 };
        assert!(old.take(most, 1_000.0, 1).is_err());
        assert_eq!(old.take(most, 1_030.0, 100), Ok(60));
    }
}
