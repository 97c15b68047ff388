//! Gives each client of a shared ptc process a server connection of its own, for servers at which each client has its
//! own login.
//!
//! Sessions of a server belong to an account, so callers do not share them. The list of tools is one for all: the one
//! that was loaded last, by the connection of any caller.

use super::{
    CallLimits, CallResult, CallingClient, ServerRequest, SupervisedUpstream, Upstream, UpstreamFault,
    UpstreamState, UpstreamStatus,
};
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::tools::ToolList;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Limit of callers with a connection. The one that was used least recently goes.
const MOST_OWNERS: usize = 256;

/// Makes the connection of the caller with this name.
pub(crate) type MakeOwned = dyn Fn(Arc<str>) -> SupervisedUpstream + Send + Sync;

/// See the module's text.
pub struct OwnedUpstreams {
    /// Has the name and limits, and answers callers without a token: there is no login for them.
    base: SupervisedUpstream,
    make: Box<MakeOwned>,
    owned: Mutex<HashMap<Arc<str>, Owned>>,
    /// Where connections live. Workers ask for them, and have no I/O runtime of their own.
    io: Handle,
}

struct Owned {
    upstream: Arc<SupervisedUpstream>,
    used: Instant,
}

impl OwnedUpstreams {
    /// On the current tokio runtime.
    pub fn new(base: SupervisedUpstream, make: Box<MakeOwned>) -> OwnedUpstreams {
        OwnedUpstreams { base, make, owned: Mutex::default(), io: Handle::current() }
    }

    fn all(&self) -> Vec<Arc<SupervisedUpstream>> {
        self.owned.locked().values().map(|owned| owned.upstream.clone()).collect()
    }
}

#[async_trait::async_trait]
impl Upstream for OwnedUpstreams {
    fn name(&self) -> &Arc<str> {
        self.base.name()
    }

    fn description(&self) -> Option<&str> {
        self.base.description()
    }

    fn status(&self) -> UpstreamStatus {
        let mut all = self.all().into_iter().map(|upstream| upstream.status());
        all.find(|status| status.state == UpstreamState::Ready).unwrap_or_else(|| self.base.status())
    }

    fn limits(&self) -> &CallLimits {
        self.base.limits()
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.base.tools()
    }

    fn for_caller(&self, caller: Option<&CallingClient>) -> Option<Arc<dyn Upstream>> {
        let name = caller?.identity.token.clone()?;
        let mut owned = self.owned.locked();
        if let Some(known) = owned.get_mut(&name) {
            known.used = Instant::now();
            return Some(known.upstream.clone());
        }
        let _entered = self.io.enter();
        if owned.len() >= MOST_OWNERS
            && let Some(oldest) =
                owned.iter().min_by_key(|(_, owned)| owned.used).map(|(name, _)| name.clone())
            && let Some(gone) = owned.remove(&oldest)
        {
            tasks::spawn(TaskOwner::Connection, async move { gone.upstream.stop().await });
        }
        let upstream = Arc::new((self.make)(name.clone()));
        owned.insert(name, Owned { upstream: upstream.clone(), used: Instant::now() });
        Some(upstream)
    }

    /// Nothing: each caller's connection is started by its own call.
    async fn start(&self) -> Result<(), UpstreamFault> {
        Ok(())
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        match self.for_caller(request.client.as_ref()) {
            Some(upstream) => upstream.call(request).await,
            None => self.base.call(request).await,
        }
    }

    async fn stop(&self) {
        let all = self.all();
        futures_util::future::join_all(all.iter().map(|upstream| upstream.stop())).await;
        self.base.stop().await;
    }
}
