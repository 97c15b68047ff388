//! Bundles what all worker threads share: the handle of the async runtime for I/O, and the limit on the memory of all
//! programs together.

use super::commitment::Commitments;
use tokio::runtime::Handle;

/// The shared resources of the workers.
pub(crate) struct SharedResources {
    pub(crate) io: Handle,
    pub(crate) commitments: Commitments,
}
