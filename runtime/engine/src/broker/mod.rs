//! Carries out a program's tool calls: finds the tool, checks budget and policy, sends the request to the server,
//! counts the result against the memory limit, and adds the call to the ledger (list of calls). Arguments are JSON text
//! and answers are bytes: values of languages are not known here.
//!
//! A caller that has its arguments as JSON uses [`ToolBroker::call`]. One that encodes them under its own meter, only
//! once it holds a permit, takes the same steps one by one:
//!
//! ```text
//! reserve ──> Permit ──(encode)──> PreparedCall ──> CallResponse ──> settled
//!    └──> Pending ──┘  (a server starts, or too many arguments are in flight)
//! ```
//!
//! Each step owns the call's place in the ledger of the run: dropped before the last step, the call counts as
//! cancelled, and a request that was sent is taken back.
//!
//! # Layout
//! - `reserve`: from a name to the permit to encode; `load`: encoded arguments, and the decision of the policy; `held`:
//!   calls that are not cleared yet; `waited`: their waits for people and counts; `send`: from there to the answer;
//!   `direct`: calls of functions in this process; `time`: time limits of calls; `payload`: the parts of a result; `cache`: results for equal calls;
//!   `login`: asks the client to log in at a server; `recorded`: answers in the journal of a run; `journaled`: calls of
//!   scripts there; `header`: what a journal begins with

mod cache;
mod direct;
pub(crate) mod header;
mod held;
mod journaled;
mod load;
mod login;
mod payload;
mod recorded;
mod reserve;
mod send;
mod time;
mod waited;

pub(crate) use cache::ResultCache;
pub use cache::ResultCaching;
pub use journaled::JournaledScript;
pub(crate) use journaled::output_bytes;
use journaled::settle;
pub use payload::{CallPayload, PayloadValue, looks_like_json};
pub(crate) use payload::{Chosen, PayloadContent};
use ptc_base::digest::sha256;
use ptc_base::sync::RwLocked;
pub(crate) use reserve::CallHistory;
pub use reserve::{NoPermit, Pending, Permit};
pub(crate) use send::OWN_CAP;
pub use send::{CallResponse, PreparedCall};
use time::TimeLimit;

use ptc_base::secrets::SecretRegistry;
use ptc_base::spill::{LazySpillStore, SpillStore};
use ptc_calls::journal::{DurableRuns, Recorder};
use ptc_calls::policy::SharedPolicy;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::{ArgumentsHash, CallFault};
use ptc_calls::state::{LearnedShapes, ShapeMemory};
use ptc_calls::tools::{
    CallTarget, LookUp, Notation, SeenResults, ServerNames, SharedCatalog, UpstreamTool, WrongCall,
    check_arguments, is_small_tree,
};
use ptc_upstream::{ClientFeatures, Upstream, UpstreamFault, UpstreamState};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

/// The servers of a runtime, as callers of tools see them. Clones share all of it.
#[derive(Clone)]
pub struct ToolBroker {
    upstreams: Arc<RwLock<Arc<Upstreams>>>,
    /// Also restricts which servers these callers see.
    catalog: SharedCatalog,
    secrets: SecretRegistry,
    /// Results of tools without an output schema.
    pub(crate) seen: Arc<ShapeMemory>,
    /// The ledger records a hash of the arguments.
    hashes_arguments: Arc<AtomicBool>,
    /// Where large results are spilled.
    spills: LazySpillStore,
    /// Results for equal calls, if they are cached.
    pub(crate) cache: Option<Arc<ResultCache>>,
    /// What may be called.
    pub(crate) policy: SharedPolicy,
    /// The client of this process, which may be asked.
    pub(crate) client: ClientFeatures,
    /// Records runs.
    pub(crate) recorder: Option<Recorder>,
    /// Stores runs that outlive this process.
    pub(crate) durable: Option<DurableRuns>,
}

/// The configured servers by name.
pub(crate) type Upstreams = BTreeMap<Arc<str>, Arc<dyn Upstream>>;

/// Their names, sorted.
pub(crate) fn names(upstreams: &Upstreams) -> Vec<&str> {
    upstreams.keys().map(|name| &**name).collect()
}

/// A call with arguments in JSON.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Configured name of the upstream.
    pub server: String,
    /// Tool name as the upstream lists it.
    pub tool: String,
    /// JSON object text.
    pub arguments: String,
    /// The notation of messages about it.
    pub notation: Notation,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// A defect of the caller: no server was asked, and the call is not in the ledger.
    Wrong(WrongCall),
    /// The world did not answer; the call is in the ledger.
    World(WorldFault),
    /// The answer does not fit into the rest of the run's memory; the call is in the ledger.
    OverMemory {
        /// Bytes of its payload.
        bytes: u64,
    },
}

/// A failure that its caller gets as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFault {
    /// Which.
    pub reason: CallFault,
    /// One line, without secrets.
    pub message: String,
}

impl From<WrongCall> for CallError {
    fn from(wrong: WrongCall) -> CallError {
        CallError::Wrong(wrong)
    }
}

impl From<WorldFault> for CallError {
    fn from(fault: WorldFault) -> CallError {
        CallError::World(fault)
    }
}

impl ToolBroker {
    pub(crate) fn new(upstreams: Upstreams, catalog: SharedCatalog, secrets: SecretRegistry) -> ToolBroker {
        let upstreams = Arc::new(RwLock::new(Arc::new(upstreams)));
        let spills = LazySpillStore::new(secrets.clone());
        let seen = Arc::new(ShapeMemory::new(LearnedShapes::Run, None, secrets.clone()));
        ToolBroker {
            upstreams,
            catalog,
            secrets,
            seen,
            hashes_arguments: Arc::default(),
            spills,
            cache: None,
            policy: SharedPolicy::default(),
            client: ClientFeatures::default(),
            recorder: None,
            durable: None,
        }
    }

    /// A broker with the same secrets and without servers.
    pub(crate) fn without_servers(&self) -> ToolBroker {
        let empty = ToolBroker::new(Upstreams::new(), SharedCatalog::new([]), self.secrets.clone());
        let (policy, client) = (self.policy.clone(), self.client.clone());
        ToolBroker { policy, client, recorder: self.recorder.clone(), ..empty }
    }

    /// Records runs, if they are recorded.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Where runs are stored that outlive this process.
    pub fn durable(&self) -> Option<&DurableRuns> {
        self.durable.as_ref()
    }

    /// What may be called.
    pub fn policy(&self) -> &SharedPolicy {
        &self.policy
    }

    /// The broker of a restricted view: its callers see these servers only.
    pub(crate) fn restricted_to(&self, servers: ServerNames) -> ToolBroker {
        ToolBroker { catalog: self.catalog.restricted_to(servers), ..self.clone() }
    }

    /// What is known about a tool at this moment.
    pub fn look_up(&self, server: &str, tool: &str) -> LookUp {
        match (self.catalog.snapshot().look_up(server, tool), self.upstream(server)) {
            (_, None) => LookUp::NoServer,
            // Only a healthy upstream's list proves that a tool does not exist.
            (LookUp::NoTool(_), Some(upstream)) if upstream.status().state != UpstreamState::Ready => {
                LookUp::NotLoaded
            }
            (found, Some(_)) => found,
        }
    }

    /// Why the tools of a configured server cannot be called at this moment; `None`: they can, or there is no such server.
    pub fn trouble(&self, server: &str) -> Option<String> {
        let status = self.upstream(server)?.status();
        let is_ready = status.state == UpstreamState::Ready;
        (!is_ready).then(|| self.secrets.scrub(&status.trouble()).into_owned())
    }

    /// Calls a tool for a run: starts its server if need be, checks the arguments, and waits for the answer, all
    /// within the time of the call. Dropping the future cancels the call.
    ///
    /// # Errors
    /// See [`CallError`]. What the tool itself calls an error is a payload (see [`CallPayload::failure`]).
    pub async fn call(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        call: ToolCall,
    ) -> Result<CallPayload, CallError> {
        self.call_spilling(account, call, None).await
    }

    /// [`ToolBroker::call`] with a store for a result that is too large for memory
    /// ([`CallPayload::spilled`]).
    ///
    /// # Errors
    /// As for [`ToolBroker::call`].
    pub async fn call_spilling(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        call: ToolCall,
        store: Option<SpillStore>,
    ) -> Result<CallPayload, CallError> {
        self.call_loaded(account, call, |_| store).await
    }

    /// [`ToolBroker::call`] that spills a large result if the caller wants it or the configuration of the server says so.
    ///
    /// # Errors
    /// As for [`ToolBroker::call`].
    pub async fn call_keeping(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        call: ToolCall,
        is_wanted: bool,
    ) -> Result<CallPayload, CallError> {
        self.call_loaded(account, call, |permit| permit.spill_store(is_wanted)).await
    }

    /// Asks a server for something that is no tool: a list, a resource, a prompt. It counts as a call. `arguments` is
    /// JSON object text; only a prompt has some.
    ///
    /// # Errors
    /// As for [`ToolBroker::call`].
    pub async fn request(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        server: &str,
        target: CallTarget,
        arguments: String,
        notation: Notation,
    ) -> Result<CallPayload, CallError> {
        let journaled = self.journaled_call(account, (server, &target), &arguments);
        let prepared =
            async { Ok(self.permit(account, server, target, notation).await?.load(arguments, None)?) };
        settle(journaled, prepared).await
    }

    /// Reserves a call and waits for its permit.
    async fn permit(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        server: &str,
        target: CallTarget,
        notation: Notation,
    ) -> Result<Permit, CallError> {
        let permit = match self.reserve(account, server, target, notation) {
            Ok(permit) => permit,
            Err(NoPermit::Yet(pending)) => pending.permit().await?,
            Err(NoPermit::Refused(error)) => return Err(error),
        };
        Ok(permit.in_time()?)
    }

    async fn call_loaded(
        self: &Arc<ToolBroker>,
        account: &Arc<RunAccount>,
        call: ToolCall,
        store: impl FnOnce(&Permit) -> Option<SpillStore>,
    ) -> Result<CallPayload, CallError> {
        let ToolCall { server, tool, arguments, notation } = call;
        let target = CallTarget::Tool(tool.into());
        let journaled = self.journaled_call(account, (&server, &target), &arguments);
        let prepared = async {
            let permit = self.permit(account, &server, target, notation).await?;
            match check_arguments(&server, permit.tool(), &arguments, notation) {
                Ok(notes) => notes.into_iter().for_each(|note| account.note(note)),
                Err(wrong) => {
                    permit.withdraw();
                    return Err(wrong.into());
                }
            }
            let store = store(&permit);
            Ok(permit.load(arguments, store)?)
        };
        settle(journaled, prepared).await
    }

    /// Starts the servers with `wanted` names that are not ready (see `start_all`).
    pub fn start(
        &self,
        account: &Arc<RunAccount>,
        wanted: impl Fn(&str) -> bool,
    ) -> impl Future<Output = ()> + Send + 'static {
        let upstreams = self.upstreams();
        let upstreams = upstreams.iter().filter(|(name, _)| wanted(name)).map(|(_, upstream)| upstream);
        let missing = upstreams.filter(|upstream| upstream.status().state != UpstreamState::Ready);
        start_all(account, missing.cloned().collect())
    }

    /// Records a hash of the arguments in the ledger from now on. Equal arguments have equal hashes, in any notation. Of
    /// arguments with a large tree the text is hashed.
    pub fn hash_arguments(&self) {
        self.hashes_arguments.store(true, Ordering::Relaxed);
    }

    fn hash_of(&self, arguments: &str) -> Option<ArgumentsHash> {
        if !self.hashes_arguments.load(Ordering::Relaxed) {
            return None;
        }
        let text = match is_small_tree(arguments) {
            true => {
                let mut arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
                arguments.sort_all_objects();
                Cow::Owned(arguments.to_string())
            }
            false => Cow::Borrowed(arguments),
        };
        Some(sha256(text.as_bytes()))
    }

    /// The tools of all servers.
    pub fn catalog(&self) -> &SharedCatalog {
        &self.catalog
    }

    /// What is known about the results of a tool without an output schema.
    pub(crate) fn seen_results(&self, server: &str, tool: &UpstreamTool) -> Option<SeenResults> {
        self.seen.seen(server, tool)
    }

    /// Where large results are spilled.
    pub fn spills(&self) -> &LazySpillStore {
        &self.spills
    }

    /// What must not leave the process.
    pub fn secrets(&self) -> &SecretRegistry {
        &self.secrets
    }

    /// Every configured server, in name order. They run while this is held.
    pub(crate) fn upstreams(&self) -> Arc<Upstreams> {
        let all = self.upstreams.read_locked().clone();
        match self.catalog.view() {
            0 => all,
            _ => {
                let admitted = all.iter().filter(|(name, _)| self.catalog.admits(name));
                Arc::new(admitted.map(|(name, upstream)| (name.clone(), upstream.clone())).collect())
            }
        }
    }

    /// The server of this name.
    pub(crate) fn upstream(&self, name: &str) -> Option<Arc<dyn Upstream>> {
        let upstreams = self.upstreams.read_locked();
        upstreams.get(name).filter(|_| self.catalog.admits(name)).cloned()
    }

    /// Replaces the servers. A removed one ends after its last call in flight.
    pub(crate) fn replace_upstreams(&self, upstreams: Upstreams) {
        *self.upstreams.write_locked() = Arc::new(upstreams);
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// A fault for the caller, without secrets.
    fn world_fault(&self, reason: CallFault, message: &str) -> WorldFault {
        WorldFault { reason, message: self.secrets.scrub(message).into_owned() }
    }

    /// The fault of an upstream, for the caller. A timeout names the limit of the whole call: the part that failed had
    /// less.
    fn upstream_fault(&self, fault: &UpstreamFault, limit: TimeLimit) -> WorldFault {
        let message = match fault {
            UpstreamFault::Timeout(_) => limit.to_string(),
            fault => fault.to_string(),
        };
        self.world_fault(fault.reason(), &message)
    }
}

/// Starts the servers whose tools a run needs, all at once. The catalog shows whether they started. The run's clock
/// stands still meanwhile.
pub(crate) fn start_all(
    account: &Arc<RunAccount>,
    upstreams: Vec<Arc<dyn Upstream>>,
) -> impl Future<Output = ()> + Send + 'static {
    let patience = account.limits().upstream_start_timeout();
    let own = |upstream: Arc<dyn Upstream>| upstream.for_caller(account.client()).unwrap_or(upstream);
    let upstreams: Vec<_> = upstreams.into_iter().map(own).collect();
    let wait = (!upstreams.is_empty()).then(|| account.wait_for_start());
    async move {
        let _wait = wait;
        let starts = futures_util::future::join_all(upstreams.iter().map(|upstream| upstream.start()));
        let _ = tokio::time::timeout(patience, starts).await;
    }
}

#[cfg(test)]
mod tests;
