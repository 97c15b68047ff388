//! The resources that all workers share: the I/O runtime and the memory account.

use super::commitment::Commitments;
use tokio::runtime::Handle;

/// The shared resources of the workers.
pub(crate) struct SharedResources {
    pub(crate) io: Handle,
    pub(crate) commitments: Commitments,
}
