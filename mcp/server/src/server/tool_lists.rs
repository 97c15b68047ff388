//! Keeps the server instructions, and the `tools/list` results for each era of MCP (with `initialize` or stateless),
//! ready to send, and rebuilds them when the tools change.

use crate::protocol::Era;
use crate::tools::{Facts, Registry};
use ptc_base::sync::RwLocked;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::{Arc, RwLock};

/// How long a client may cache a list that stays the same for the process lifetime.
const FIXED_TTL_MS: u64 = 3_600_000;
/// How long a client may cache a list that upstream servers can change.
const CHANGING_TTL_MS: u64 = 60_000;

/// Longest instructions, as far as the catalog decides.
const MAX_INSTRUCTIONS: usize = 2_040;

/// Results that are ready to send.
#[derive(Debug)]
pub(super) struct Lists {
    handshake: Box<RawValue>,
    stateless: Box<RawValue>,
    /// Text for `initialize` and `server/discover`.
    pub(super) instructions: String,
    /// Who may cache results that depend on the facts.
    pub(super) cache_scope: &'static str,
}

impl Lists {
    fn new(
        registry: &Registry,
        facts: &Facts,
        about: &str,
        ttl_ms: u64,
        meta: &RawValue,
    ) -> serde_json::Result<Lists> {
        let cache_scope = if facts.is_private { "private" } else { "public" };
        let tools = |era| registry.list(&Facts { era, ..facts.clone() });
        let handshake = List {
            result_type: None,
            tools: &tools(Era::Handshake)?,
            ttl_ms: None,
            cache_scope: None,
            meta: None,
        };
        let stateless = List {
            result_type: Some("complete"),
            tools: &tools(Era::Stateless)?,
            ttl_ms: Some(ttl_ms),
            cache_scope: Some(cache_scope),
            meta: Some(meta),
        };
        Ok(Lists {
            handshake: to_raw_value(&handshake)?,
            stateless: to_raw_value(&stateless)?,
            instructions: instructions(about, registry, facts),
            cache_scope,
        })
    }

    /// The result for this era.
    pub(super) fn for_era(&self, era: Era) -> &RawValue {
        match era {
            Era::Handshake => &self.handshake,
            Era::Stateless => &self.stateless,
        }
    }

    fn equals(&self, other: &Lists) -> bool {
        [Era::Handshake, Era::Stateless]
            .into_iter()
            .all(|era| self.for_era(era).get() == other.for_era(era).get())
    }
}

/// A result of `tools/list`. In the handshake era it has no member but the tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    tools: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

/// The text for a model that sees no tool yet: what the server does, and a line for each server that the description
/// of no tool has in full. Hosts cut it at about 2 KB.
fn instructions(about: &str, registry: &Registry, facts: &Facts) -> String {
    let room = MAX_INSTRUCTIONS.saturating_sub(about.len() + 1);
    let Some(lines) = facts.catalog.lines(room).filter(|_| !facts.catalog.is_empty()) else {
        return about.to_owned();
    };
    let descriptions = registry.descriptions(facts);
    let is_said = |line: &str| descriptions.iter().any(|text| text.lines().any(|said| said == line));
    if lines.lines().all(is_said) { about.to_owned() } else { format!("{about}\n{lines}") }
}

/// The current lists. They are written seldom, when facts change.
#[derive(Debug)]
pub(super) struct ToolLists {
    /// What the server does, which no fact changes.
    about: String,
    pub(super) ttl_ms: u64,
    lists: RwLock<Arc<Lists>>,
}

impl ToolLists {
    /// The lists of these facts. The instructions begin with `about`. `meta` is added to stateless results. `changes` means that the facts may
    /// change later.
    pub(super) fn new(
        registry: &Registry,
        facts: &Facts,
        about: String,
        changes: bool,
        meta: &RawValue,
    ) -> serde_json::Result<ToolLists> {
        let ttl_ms = if changes { CHANGING_TTL_MS } else { FIXED_TTL_MS };
        let lists = Arc::new(Lists::new(registry, facts, &about, ttl_ms, meta)?);
        Ok(ToolLists { about, ttl_ms, lists: RwLock::new(lists) })
    }

    pub(super) fn get(&self) -> Arc<Lists> {
        self.lists.read_locked().clone()
    }

    /// Rebuilds the lists and the instructions; false when the lists are the same as before.
    pub(super) fn replace(
        &self,
        registry: &Registry,
        facts: &Facts,
        meta: &RawValue,
    ) -> serde_json::Result<bool> {
        let new = Lists::new(registry, facts, &self.about, self.ttl_ms, meta)?;
        let is_same = new.equals(&self.get());
        *self.lists.write_locked() = Arc::new(new);
        Ok(!is_same)
    }
}
