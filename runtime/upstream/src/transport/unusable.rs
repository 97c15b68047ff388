//! Stands in for the transport of a server with an unusable configuration entry: refuses to connect, and reports why.

use super::{ConnectContext, Connection, Location, Transport};
use crate::UpstreamFault;
use serde_json::{Value, json};
use std::sync::Arc;

/// An entry that cannot be used, and the reason.
pub(crate) struct UnusableEntry(pub(crate) String);

#[async_trait::async_trait]
impl Transport for UnusableEntry {
    async fn connect(&self, _: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        Err(UpstreamFault::Unavailable(self.0.clone()))
    }

    fn describe(&self) -> String {
        self.0.clone()
    }

    fn descriptor(&self) -> Value {
        json!({ "type": "unusable" })
    }

    fn locate(&self) -> Location {
        Location { kind: "entry", place: None }
    }

    fn why_unusable(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn remedy(&self, _: &str) -> String {
        "correct the entry".to_owned()
    }
}
