//! What every worker shares: the upstreams, the I/O runtime, the secrets, the program cache, the memory
//! account.

use crate::exec::commitment::Commitments;
use crate::guest::lisp::program_cache::ProgramCache;
use crate::secrets::SecretRegistry;
use crate::tools::SharedCatalog;
use crate::upstream::{Guardian, Upstream};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The shared part of a runtime.
pub(crate) struct Engine {
    pub(crate) upstreams: BTreeMap<Arc<str>, Arc<dyn Upstream>>,
    pub(crate) catalog: SharedCatalog,
    pub(crate) guardian: Arc<Guardian>,
    pub(crate) io: Handle,
    pub(crate) secrets: SecretRegistry,
    pub(crate) cache: ProgramCache,
    pub(crate) commitments: Commitments,
}

impl Engine {
    /// Names of the configured servers, sorted.
    pub(crate) fn server_names(&self) -> Vec<&str> {
        self.upstreams.keys().map(|name| &**name).collect()
    }
}
