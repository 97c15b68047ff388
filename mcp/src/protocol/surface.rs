//! What the server offers: one tool list, written once for each era and replaced as a whole when it changes.

use crate::tool::caps::Profile;
use ptc_runtime::limits::Limits;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};

/// How long a client may cache a list that stays the same for the process lifetime.
const FIXED_TTL_MS: u64 = 3_600_000;
/// How long a client may cache a list that upstream servers can change.
const CHANGING_TTL_MS: u64 = 60_000;

/// What the server offers.
#[derive(Clone, Debug)]
pub struct Surface {
    /// Entries of `tools/list`.
    pub tools: Vec<Value>,
    /// The entries may change while the server runs; clients are told when they do.
    pub changes: bool,
    /// Text for `initialize` and `server/discover`.
    pub instructions: String,
    /// Response profile.
    pub profile: Profile,
    /// Limits of each program.
    pub limits: Limits,
}

/// `tools/list` of both eras, ready to send.
#[derive(Debug)]
pub(super) struct ToolLists {
    pub(super) handshake: Box<RawValue>,
    pub(super) stateless: Box<RawValue>,
}

impl ToolLists {
    fn new(tools: &[Value], ttl_ms: u64, meta: &RawValue) -> serde_json::Result<ToolLists> {
        let stateless = json!({
            "resultType": "complete", "tools": tools, "ttlMs": ttl_ms, "cacheScope": "public", "_meta": meta,
        });
        Ok(ToolLists {
            handshake: to_raw_value(&json!({ "tools": tools }))?,
            stateless: to_raw_value(&stateless)?,
        })
    }
}

/// The current lists. Written seldom, by whoever follows the upstream servers.
#[derive(Debug)]
pub(super) struct CurrentTools {
    ttl_ms: u64,
    lists: RwLock<Arc<ToolLists>>,
}

impl CurrentTools {
    pub(super) fn new(surface: &Surface, meta: &RawValue) -> serde_json::Result<CurrentTools> {
        let ttl_ms = if surface.changes { CHANGING_TTL_MS } else { FIXED_TTL_MS };
        let lists = Arc::new(ToolLists::new(&surface.tools, ttl_ms, meta)?);
        Ok(CurrentTools { ttl_ms, lists: RwLock::new(lists) })
    }

    pub(super) fn ttl_ms(&self) -> u64 {
        self.ttl_ms
    }

    pub(super) fn get(&self) -> Arc<ToolLists> {
        self.lists.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the list; false when it is the same as before.
    pub(super) fn replace(&self, tools: &[Value], meta: &RawValue) -> serde_json::Result<bool> {
        let new = ToolLists::new(tools, self.ttl_ms, meta)?;
        if new.handshake.get() == self.get().handshake.get() {
            return Ok(false);
        }
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(true)
    }
}
