//! Negotiates the MCP version with a client, and tells messages of the versions with a handshake from those of the
//! stateless versions (2026-07-28 and later).
//!
//! The era (handshake or stateless) follows from the shape of each message, never from earlier ones. A message with a
//! protocol version in its `_meta` is stateless (2026-07-28); every other one belongs to the handshake era. So one
//! connection may carry both.

use super::message::RpcError;
use super::params::Params;

/// Key of the protocol version in a stateless request's `_meta`.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Key of the client's capabilities in a stateless request's `_meta`.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The extension for calls that outlive their request (2026-07-28).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Key of the task that a message belongs to (2025-11-25).
pub const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// A protocol version that we speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 2025-06-18.
    V2025June,
    /// 2025-11-25, the last one with a handshake.
    V2025November,
    /// 2026-07-28, stateless.
    V2026July,
}

impl Version {
    /// What `initialize` falls back to.
    pub const LATEST_WITH_HANDSHAKE: Version = Version::V2025November;
    /// All versions, the latest first.
    pub const ALL: &'static [Version] = &[Version::V2026July, Version::V2025November, Version::V2025June];
    /// The versions without a handshake.
    pub const STATELESS: &'static [Version] = &[Version::V2026July];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V2025June => "2025-06-18",
            Version::V2025November => "2025-11-25",
            Version::V2026July => "2026-07-28",
        }
    }

    /// The names of all versions, as the server offers them.
    pub fn names() -> Vec<&'static str> {
        Version::ALL.iter().map(|version| version.name()).collect()
    }

    /// The version of this name, if we speak it.
    pub fn named(name: &str) -> Option<Version> {
        Version::ALL.iter().copied().find(|version| version.name() == name)
    }

    /// True for the revision in which clients ask for tasks. A client that names no revision may be one of it.
    pub fn has_requested_tasks(version: Option<Version>) -> bool {
        matches!(version, None | Some(Version::V2025November))
    }

    /// Its era.
    pub fn era(self) -> Era {
        if Version::STATELESS.contains(&self) { Era::Stateless } else { Era::Handshake }
    }

    /// The version for the answer to `initialize`: the requested one if we know it and it has a handshake.
    pub fn negotiate(requested: Option<&str>) -> Version {
        requested
            .and_then(Version::named)
            .filter(|version| version.era() == Era::Handshake)
            .unwrap_or(Version::LATEST_WITH_HANDSHAKE)
    }
}

/// The two ways to speak MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first (2025-06-18, 2025-11-25). We do not insist on it.
    #[default]
    Handshake,
    /// Each request carries its version (2026-07-28).
    Stateless,
}

impl Era {
    /// The era of a request, from its `_meta`.
    pub fn from_params(params: &Params<'_>) -> Result<Era, RpcError> {
        let Some(meta) = &params.meta else { return Ok(Era::Handshake) };
        let Some(requested) = &meta.protocol_version else { return Ok(Era::Handshake) };
        if !Version::STATELESS.iter().any(|version| version.name() == &**requested) {
            return Err(RpcError::unsupported_version(requested));
        }
        match &meta.client_capabilities {
            None => Err(RpcError::invalid_params(&format!("_meta must have \"{META_CAPABILITIES}\""))),
            Some(capabilities) if !capabilities.get().starts_with('{') => {
                Err(RpcError::invalid_params(&format!("\"{META_CAPABILITIES}\" must be an object")))
            }
            Some(_) => Ok(Era::Stateless),
        }
    }
}
