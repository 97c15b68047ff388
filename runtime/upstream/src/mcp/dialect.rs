//! Builds request parameters for both generations of the MCP protocol: the one with a handshake per connection, and the
//! one with `_meta` in each request.

use super::task::EXTENSION;
use crate::client_features::capabilities;
use crate::progress::ProgressToken;
use crate::request::Era;
use ptc_calls::run::client::Offered;
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::CallTarget;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

/// The stateless revision that is requested.
pub(super) const STATELESS: &str = "2026-07-28";

/// The last revision with a handshake, requested by `initialize`.
pub(super) const HANDSHAKE: &str = "2025-11-25";

/// The revisions with a handshake that are spoken, the latest first. A server may answer with any of them.
pub(super) const HANDSHAKES: [&str; 5] = [HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// The era of a connection, found out when it is opened.
#[derive(Clone, Debug)]
pub(super) enum Dialect {
    /// `initialize` was answered with this version.
    Handshake {
        /// Version the server chose.
        version: Arc<str>,
    },
    /// Each request carries its protocol version.
    Stateless {
        /// `"_meta":{…}`.
        meta: Arc<str>,
    },
}

impl Dialect {
    /// The stateless era. No capability is declared: the client of the run would have to answer a request for
    /// input in the middle of the program.
    pub(super) fn stateless() -> Dialect {
        Dialect::declaring(&json!({}))
    }

    /// The stateless era with a server that makes tasks of calls: these may ask for what the client offers.
    pub(super) fn with_tasks(offered: Offered) -> Dialect {
        let mut capabilities: serde_json::Value =
            serde_json::from_str(capabilities(offered)).unwrap_or_default();
        capabilities["extensions"] = json!({ EXTENSION: {} });
        Dialect::declaring(&capabilities)
    }

    fn declaring(capabilities: &serde_json::Value) -> Dialect {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        Dialect::Stateless { meta: format!("\"_meta\":{meta}").into() }
    }

    /// The negotiated revision.
    pub(super) fn version(&self) -> &str {
        match self {
            Dialect::Handshake { version } => version,
            Dialect::Stateless { .. } => STATELESS,
        }
    }

    /// What a transport with headers writes into them.
    pub(super) fn era(&self) -> Era {
        match self {
            Dialect::Handshake { version } => Era::Handshake(version.clone()),
            Dialect::Stateless { .. } => Era::Stateless(STATELESS),
        }
    }

    /// The params object of a request; `members` is JSON text without the braces.
    pub(super) fn params(&self, members: &str) -> String {
        self.params_within(members, None)
    }

    /// [`Dialect::params`] with a trace.
    pub(super) fn params_within(&self, members: &str, trace: Option<&TraceContext>) -> String {
        let meta = self.meta(trace, None);
        let comma = if members.is_empty() || meta.is_empty() { "" } else { "," };
        format!("{{{members}{comma}{meta}}}")
    }

    /// `"_meta":{…}` with a trace and a progress token; empty where there is nothing to send.
    fn meta(&self, trace: Option<&TraceContext>, token: Option<ProgressToken>) -> Cow<'_, str> {
        let meta = match self {
            Dialect::Handshake { .. } => "",
            Dialect::Stateless { meta } => meta,
        };
        // MCP uses the names of the HTTP headers, without a prefix.
        let trace = trace.into_iter().flat_map(TraceContext::parts);
        let trace = trace.map(|(name, text)| format!("\"{name}\":{}", json!(text)));
        let token = token.map(|token| format!("\"progressToken\":{token}"));
        let members = trace.chain(token).collect::<Vec<_>>().join(",");
        if members.is_empty() {
            return meta.into();
        }
        match meta.strip_suffix('}') {
            Some(meta) => format!("{meta},{members}}}").into(),
            None => format!("\"_meta\":{{{members}}}").into(),
        }
    }

    /// The texts before and after the arguments in the params object of a call. A resource has no arguments.
    pub(super) fn call(
        &self,
        target: &CallTarget,
        trace: Option<&TraceContext>,
        token: Option<ProgressToken>,
    ) -> (String, String) {
        let subject = serde_json::Value::from(target.subject().unwrap_or_default());
        let head = match target {
            CallTarget::Resource(_) => format!("{{\"uri\":{subject}"),
            _ => format!("{{\"name\":{subject},\"arguments\":"),
        };
        let tail = match self.meta(trace, token) {
            none if none.is_empty() => "}".to_owned(),
            meta => format!(",{meta}}}"),
        };
        (head, tail)
    }

    /// The cheapest request that every server of this era answers.
    pub(super) fn liveness_method(&self) -> &'static str {
        match self {
            Dialect::Handshake { .. } => "ping",
            Dialect::Stateless { .. } => "server/discover",
        }
    }
}

/// The client's name and version.
pub(super) fn client_info() -> serde_json::Value {
    json!({"name": "ptc", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_trace_stands_beside_what_is_always_said() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceContext::read(parent, Some("a=\"\\"));
        let read = |text: String| serde_json::from_str::<Value>(&text).expect("JSON");
        let (stateless, handshake) = (Dialect::stateless(), Dialect::Handshake { version: HANDSHAKE.into() });
        let target = CallTarget::Tool("t".into());
        for dialect in [stateless, handshake] {
            for trace in [None, trace.as_ref()] {
                let (head, tail) = dialect.call(&target, trace, None);
                let call = read(format!("{head}{{}}{tail}"));
                let own = read(dialect.params_within("\"cursor\":\"c\"", trace));
                let bare = read(dialect.params_within("", trace));
                assert!(
                    own["_meta"] == call["_meta"] && bare["_meta"] == call["_meta"],
                    "{call} {own} {bare}"
                );
                let meta = &call["_meta"];
                assert_eq!(meta["traceparent"].as_str(), trace.map(TraceContext::parent));
                assert_eq!(meta["tracestate"].as_str(), trace.and_then(TraceContext::state));
                let version = meta["io.modelcontextprotocol/protocolVersion"].as_str();
                assert_eq!(version.is_some(), matches!(dialect, Dialect::Stateless { .. }));
            }
        }
    }
}
