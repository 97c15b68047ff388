//! Stands in for an upstream server while a recorded run is replayed: lists the tools as they were recorded, and
//! refuses calls that reach it, because the replay answers calls from the recording.

use super::{CallLimits, CallResult, ServerRequest, Upstream, UpstreamFault, UpstreamState, UpstreamStatus};
use ptc_calls::tools::{SharedCatalog, ToolList};
use std::sync::Arc;

/// A server of a recording. The replay publishes its tool lists.
pub struct RecordedUpstream {
    name: Arc<str>,
    description: Option<String>,
    catalog: SharedCatalog,
    limits: CallLimits,
}

impl RecordedUpstream {
    /// A server whose tools are in this catalog.
    pub fn new(name: Arc<str>, description: Option<String>, catalog: SharedCatalog) -> RecordedUpstream {
        RecordedUpstream { name, description, catalog, limits: CallLimits::default() }
    }
}

#[async_trait::async_trait]
impl Upstream for RecordedUpstream {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    fn status(&self) -> UpstreamStatus {
        let state = if self.tools().is_some() { UpstreamState::Ready } else { UpstreamState::Idle };
        let (error, start_duration, starting, server_info, protocol) = Default::default();
        UpstreamStatus { state, error, start_duration, starting, server_info, protocol }
    }

    fn limits(&self) -> &CallLimits {
        &self.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.catalog.snapshot().server(&self.name)?.proven().cloned()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        Ok(())
    }

    async fn call(&self, _: ServerRequest) -> Result<CallResult, UpstreamFault> {
        Err(UpstreamFault::Unavailable("a replay calls nothing".to_owned()))
    }

    async fn stop(&self) {}
}
