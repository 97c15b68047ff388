//! Shares each client's limit of calls a minute among all nodes (ptc servers with one database), by a token bucket in
//! that database.

use super::Nodes;
use crate::server::http::access::{CallBucket, seconds};
use crate::tools::CallOwner;
use ptc_base::store::StoreError;
use std::num::NonZeroU32;
use std::time::Duration;

/// Keys begin so, before the owner.
const PREFIX: &str = "rate/";

impl Nodes {
    /// Takes up to `wanted` of the calls that an owner may begin, at least one. The inner error is the time until the next
    /// call.
    ///
    /// # Errors
    /// The database cannot be used.
    pub(in crate::server::http) async fn take_calls(
        &self,
        owner: CallOwner,
        most: NonZeroU32,
        wanted: u32,
    ) -> Result<Result<u32, Duration>, StoreError> {
        let take = |before: Option<&[u8]>| {
            let now = seconds();
            let stored = before.and_then(|text| serde_json::from_slice(text).ok());
            let mut bucket: CallBucket = stored.unwrap_or_else(|| CallBucket::full(most, now));
            let taken = bucket.take(most, now, wanted)?;
            // Plain data.
            Ok((serde_json::to_vec(&bucket).unwrap_or_default(), taken))
        };
        self.runs.change(&format!("{PREFIX}{:016x}", owner.0), take).await
    }

    /// Removes what is stored of owners that have all their calls again.
    pub(in crate::server::http) async fn sweep_rates(&self) {
        for (key, text) in self.runs.notes(PREFIX).await.unwrap_or_default() {
            let bucket = serde_json::from_slice::<CallBucket>(&text);
            if bucket.map_or(true, |bucket| bucket.is_full(seconds())) {
                // It is tried again by the next node that starts.
                let _ = self.runs.note(&key, None).await;
            }
        }
    }
}
