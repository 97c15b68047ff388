//! The two eras of MCP as a client speaks them: one handshake for a connection, or `_meta` in each request.

use crate::tools::CallTarget;
use crate::upstream::transport::RequestEra;
use serde_json::json;
use std::sync::Arc;

/// The stateless revision that we ask for.
pub(super) const STATELESS: &str = "2026-07-28";

/// The last revision with a handshake, which we ask for in `initialize`; any answer is accepted.
pub(super) const HANDSHAKE: &str = "2025-11-25";

/// How a connection talks, found out when it is opened.
#[derive(Clone, Debug)]
pub(super) enum Dialect {
    /// `initialize` was answered with this version.
    Handshake {
        /// Version the server chose.
        version: Arc<str>,
    },
    /// Each request carries its version.
    Stateless {
        /// `"_meta":{…}`.
        meta: Arc<str>,
    },
}

impl Dialect {
    /// The stateless era. No capability is declared: an answer that asks for more input would have to be answered by
    /// whoever the program runs for, in the middle of the program.
    pub(super) fn stateless() -> Dialect {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Dialect::Stateless { meta: format!("\"_meta\":{meta}").into() }
    }

    /// The revision spoken.
    pub(super) fn version(&self) -> &str {
        match self {
            Dialect::Handshake { version } => version,
            Dialect::Stateless { .. } => STATELESS,
        }
    }

    /// What a transport is told beside the text of a request.
    pub(super) fn era(&self) -> RequestEra<'_> {
        match self {
            Dialect::Handshake { version } => RequestEra::Handshake(version),
            Dialect::Stateless { .. } => RequestEra::Stateless(STATELESS),
        }
    }

    /// The params object of a request with these members (JSON text without the braces).
    pub(super) fn params(&self, members: &str) -> String {
        match self {
            Dialect::Handshake { .. } => format!("{{{members}}}"),
            Dialect::Stateless { meta } if members.is_empty() => format!("{{{meta}}}"),
            Dialect::Stateless { meta } => format!("{{{members},{meta}}}"),
        }
    }

    /// What stands before and behind the arguments in the params object of a call. A resource has none.
    pub(super) fn call(&self, target: &CallTarget) -> (String, String) {
        let subject = serde_json::Value::from(target.subject());
        let head = match target {
            CallTarget::Resource(_) => format!("{{\"uri\":{subject}"),
            _ => format!("{{\"name\":{subject},\"arguments\":"),
        };
        let tail = match self {
            Dialect::Handshake { .. } => "}".to_owned(),
            Dialect::Stateless { meta } => format!(",{meta}}}"),
        };
        (head, tail)
    }

    /// The cheapest request that any server of this era answers.
    pub(super) fn liveness_method(&self) -> &'static str {
        match self {
            Dialect::Handshake { .. } => "ping",
            Dialect::Stateless { .. } => "server/discover",
        }
    }
}

/// How we introduce ourselves.
pub(super) fn client_info() -> serde_json::Value {
    json!({"name": "ptc", "version": env!("CARGO_PKG_VERSION")})
}
