//! A connected server that takes calls, whatever its protocol.

use super::mcp::{McpSession, Probe};
use super::openapi::OpenApiSession;
use super::transport::{Line, PeerEvents};
use super::{CallRequest, CallResult, UpstreamFault};
use crate::secrets::SecretRegistry;
use crate::tools::Listed;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The session of a connected server.
pub(super) enum ServerSession {
    /// A server of MCP.
    Mcp(McpSession),
    /// A plain JSON service.
    OpenApi(OpenApiSession),
}

impl ServerSession {
    /// Prepares a connected server for calls, and lists its tools. `patience` limits each request; the caller
    /// limits all of them together.
    pub(super) async fn open(
        line: Line,
        events: Arc<PeerEvents>,
        secrets: &SecretRegistry,
        probe: Probe,
        patience: Duration,
    ) -> Result<(ServerSession, Listed), UpstreamFault> {
        match line {
            Line::Mcp(peer) => {
                let (session, tools) = McpSession::open(peer, events, secrets, probe, patience).await?;
                Ok((ServerSession::Mcp(session), tools))
            }
            Line::OpenApi(service) => {
                let (session, tools) = OpenApiSession::open(service, secrets).await?;
                Ok((ServerSession::OpenApi(session), tools))
            }
        }
    }

    /// The session if it is MCP; its tools may change while it runs.
    pub(super) fn mcp(&self) -> Option<&McpSession> {
        match self {
            ServerSession::Mcp(session) => Some(session),
            ServerSession::OpenApi(_) => None,
        }
    }

    /// `name version` as the server reports them.
    pub(super) fn server_info(&self) -> &str {
        match self {
            ServerSession::Mcp(session) => session.server_info(),
            ServerSession::OpenApi(session) => session.server_info(),
        }
    }

    /// Protocol or specification version.
    pub(super) fn version(&self) -> &str {
        match self {
            ServerSession::Mcp(session) => session.version(),
            ServerSession::OpenApi(session) => session.version(),
        }
    }

    /// Sends a call; the time of the call began at `begun`.
    pub(super) async fn call(
        &self,
        request: CallRequest,
        begun: Instant,
    ) -> Result<CallResult, UpstreamFault> {
        match self {
            ServerSession::Mcp(session) => session.call(request, begun).await,
            ServerSession::OpenApi(session) => session.call(request, begun).await,
        }
    }

    /// True when the server shows within `patience` that it works.
    pub(super) async fn is_alive(&self, patience: Duration) -> bool {
        match self {
            ServerSession::Mcp(session) => session.is_alive(patience).await,
            ServerSession::OpenApi(session) => session.is_alive(patience).await,
        }
    }
}
