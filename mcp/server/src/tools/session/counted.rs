//! Counts the stored sessions of an owner at all processes that share the store.
//!
//! The starts of an owner are one value, which is replaced only as it was read: of two processes that start a session in
//! the same moment, one counts the session of the other. A start that is not stored in the end counts for a moment more.

use super::fault::{SessionFault, SessionReason};
use super::stored::unavailable;
use super::table::{OWNER_IS_FULL, now};
use crate::tools::CallOwner;
use ptc_calls::journal::DurableRuns;
use std::collections::{BTreeMap, HashSet};

/// Keys begin so, before the owner.
const PREFIX: &str = "owner-sessions/";

/// How long a start counts that is not stored yet, in milliseconds: longer than any attempt to store it. It counts no longer
/// than its session lives.
const STARTING: i64 = 60_000;

fn key_of(owner: CallOwner) -> String {
    format!("{PREFIX}{:016x}", owner.0)
}

/// Notes that a session starts. `stored` has those of the owner that are stored and not over.
///
/// # Errors
/// The owner has as many sessions as it may have; the store cannot be used.
pub(super) async fn start(
    runs: &DurableRuns,
    (owner, id, expires): (CallOwner, &str, i64),
    stored: &HashSet<String>,
    most: usize,
) -> Result<(), SessionFault> {
    let present = now().as_millisecond();
    let key = key_of(owner);
    let started = runs.change(&key, |before| {
        let mut starts: BTreeMap<String, i64> =
            before.and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default();
        starts.retain(|id, until| stored.contains(id) || *until > present);
        for id in stored {
            starts.entry(id.clone()).or_insert(present);
        }
        if starts.len() >= most {
            return Err(SessionFault::new(SessionReason::TooMany, OWNER_IS_FULL));
        }
        starts.insert(id.to_owned(), expires.min(present.saturating_add(STARTING)));
        // Plain data.
        Ok((serde_json::to_vec(&starts).unwrap_or_default(), ()))
    });
    started.await.map_err(unavailable)?
}

/// Notes that a session has ended. If it fails, the session counts for a moment more.
pub(super) async fn end(runs: &DurableRuns, owner: CallOwner, id: &str) {
    struct NotCounted;
    let key = key_of(owner);
    let ended = runs.change(&key, |before| {
        let starts = before.and_then(|text| serde_json::from_slice::<BTreeMap<String, i64>>(text).ok());
        let mut starts = starts.filter(|starts| starts.contains_key(id)).ok_or(NotCounted)?;
        starts.remove(id);
        // Plain data.
        Ok::<_, NotCounted>((serde_json::to_vec(&starts).unwrap_or_default(), ()))
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a session counts for its owner for a moment more");
    }
}
