//! Reads the settings of a tool call (version, log level, trace, client features) from its request or its connection,
//! as the MCP version of the client requires.

use super::{Ticket, log_level};
use crate::observe::OpenRecord;
use crate::protocol::log_level::LogLevel;
use crate::protocol::notify::ProgressToken;
use crate::protocol::params::{Meta, Params};
use crate::protocol::{Era, Id, Raw, RpcError, Version};
use crate::server::connection_state::{ConnectionState, offered};
use crate::server::detached::Detach;
use crate::server::input_required::{CallKey, ResumedCall, inputs};
use crate::tools::Tool;
use ptc_calls::trace::TraceContext;
use ptc_upstream::Offered;
use std::time::Duration;

/// A request for a call of a tool, and the state of its connection.
pub(super) struct RequestedCall<'r> {
    pub(super) id: &'r Id<'r>,
    pub(super) params: &'r Params<'r>,
    pub(super) era: Era,
    pub(super) connection: &'r ConnectionState,
}

impl<'r> RequestedCall<'r> {
    /// Name of the tool.
    pub(super) fn tool(&self) -> &'r str {
        self.params.name.as_deref().unwrap_or_default()
    }

    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        let level = self.params.meta.as_ref().and_then(|meta| meta.log_level.as_deref());
        match self.era {
            Era::Handshake => Ok(self.connection.log),
            Era::Stateless => level.map(log_level).transpose(),
        }
    }

    pub(super) fn version(&self) -> Option<Version> {
        match self.era {
            Era::Handshake => self.connection.version,
            Era::Stateless => Version::STATELESS.last().copied(),
        }
    }

    /// The trace in the request itself comes from the client. A header may come from any proxy in between.
    pub(super) fn trace(&self) -> Option<TraceContext> {
        self.params.meta.as_ref().and_then(Meta::trace).or_else(|| self.connection.trace.clone())
    }

    pub(super) fn progress(&self) -> Option<ProgressToken> {
        self.params.meta.as_ref()?.progress_token.and_then(ProgressToken::from_raw)
    }

    /// The features that the client declares for upstream requests.
    pub(super) fn offered(&self) -> Offered {
        match self.era {
            Era::Handshake => self.connection.offered.unwrap_or_default(),
            Era::Stateless => offered(self.params.declared_capabilities().map(Raw::get).unwrap_or_default()),
        }
    }

    pub(super) fn key(&self) -> CallKey {
        CallKey::new(self.tool(), self.params.arguments.map(Raw::get))
    }

    /// The state of a parked run that this request goes on with. A tool that keeps state reads it itself.
    pub(super) fn request_state(&self, tool: Option<&dyn Tool>) -> Option<Raw<'r>> {
        let is_resumable = self.era == Era::Stateless && tool.is_some_and(|tool| !tool.keeps_state());
        self.params.request_state.filter(|state| is_resumable && state.get() != "null")
    }

    /// The parked run that this request goes on with.
    pub(super) fn resumed(
        &self,
        state: Raw<'_>,
        ticket: Ticket,
        detach: Option<Detach>,
    ) -> Result<Box<ResumedCall>, RpcError> {
        let (state, responses) = inputs(state, self.params)?;
        let (progress, offered, key) = (self.progress(), self.offered(), self.key());
        let detach = detach.map(|detach| match detach {
            Detach::Later(handle, after) => (handle, after),
            Detach::AtOnce(handle) => (handle, Duration::ZERO),
        });
        Ok(Box::new(ResumedCall { ticket, progress, offered, key, state, responses, detach }))
    }

    pub(super) fn ticket(&self, record: Option<OpenRecord>) -> Ticket {
        Ticket { id: self.id.clone().into_owned(), era: self.era, record }
    }
}
