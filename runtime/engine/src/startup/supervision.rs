//! Creates a supervisor for each configured upstream (MCP server or OpenAPI service): an object that starts, watches
//! and calls the server, with options from the configuration and the runtime.

use super::{RuntimeConfig, StartError, StartPolicy};
use ptc_base::oauth::LoginOptions;
use ptc_calls::policy::PinReview;
use ptc_calls::state::{ListMemory, ShapeMemory, StateStore};
use ptc_calls::tools::{SharedCatalog, SnapshotMode, ToolList};
use ptc_upstream::config::{ServerEntry, Startup};
use ptc_upstream::{FailedStart, Guardian, OwnedUpstreams, SupervisedUpstream, SupervisorOptions, Upstream};
use std::sync::Arc;

/// How the servers of one runtime are run, including those that are configured later.
pub(crate) struct Supervision {
    pub(crate) config: RuntimeConfig,
    pub(crate) guardian: Arc<Guardian>,
    /// What is remembered between runs.
    pub(crate) state: Option<Arc<StateStore>>,
    /// The shapes of results.
    pub(crate) shapes: Arc<ShapeMemory>,
}

impl Supervision {
    pub(crate) fn new(config: RuntimeConfig) -> Supervision {
        let guardian = if config.adopts_orphans { Guardian::adopting() } else { Guardian::default() };
        let state = config.state_folder.clone().map(|folder| Arc::new(StateStore::new(folder)));
        let shapes = ShapeMemory::new(config.learned_shapes, state.clone(), config.secrets.clone());
        Supervision { config, guardian: Arc::new(guardian), state, shapes: Arc::new(shapes) }
    }

    /// A server that publishes its tools in `catalog`; and its policy, if it is to start immediately.
    pub(crate) fn supervise(
        &self,
        entry: ServerEntry,
        catalog: &SharedCatalog,
    ) -> (Arc<dyn Upstream>, Option<Startup>) {
        let config = &self.config;
        let policy = match config.startup {
            Some(policy) if !entry.startup_is_explicit => policy,
            _ => entry.startup,
        };
        let at_once = match &config.start {
            StartPolicy::All => true,
            StartPolicy::Named(names) => names.contains(&*entry.name),
            StartPolicy::Lazy => false,
        };
        let tools = entry.tools.read_only(config.read_only);
        let identity = entry.transport.identity();
        self.shapes.add_server(&entry.name, &identity);
        let memory = self.state.as_ref().map(|state| ListMemory::new(state, &entry.name, &identity));
        if let Some(listed) = memory.as_ref().and_then(ListMemory::last) {
            catalog.remember(
                &entry.name,
                ToolList::new(config.pins.reviewed(&entry.name, tools.admitted(&entry.name, listed))),
            );
        }
        let of_callers = config.logins.serves_many && entry.transport.has_login_of_callers();
        let options = SupervisorOptions {
            name: entry.name,
            description: entry.description,
            transport: entry.transport,
            handshake_timeout: entry.handshake_timeout,
            start_permits: config.start_permits.clone(),
            failed_start: match (at_once, policy, config.try_again) {
                (true, Startup::Strict, _) => FailedStart::Reported,
                (true, Startup::Lenient, _) if config.reports_starts => FailedStart::Reported,
                (true, Startup::Lenient, Some(pause)) => FailedStart::TriedAgain(pause),
                (true, Startup::Lenient, None) | (false, ..) => FailedStart::NextCall,
            },
            unresponsive_timeout: entry.unresponsive_timeout,
            guardian: self.guardian.clone(),
            mode: match config.snapshot {
                Some(mode) => mode,
                None if policy == Startup::Strict && config.start == StartPolicy::All => SnapshotMode::Frozen,
                None => SnapshotMode::Live,
            },
            list_ttl: config.list_ttl,
            policy: tools,
            pins: config.pins.clone(),
            limits: entry.limits,
            catalog: catalog.clone(),
            memory,
            secrets: config.secrets.clone(),
            client: config.client.clone(),
            logins: config.logins.clone(),
        };
        if of_callers {
            let (base, options) = (SupervisedUpstream::new(options.clone()), options);
            let make = move |owner| {
                let logins = LoginOptions { owner: Some(owner), ..options.logins.clone() };
                SupervisedUpstream::new(SupervisorOptions { logins, memory: None, ..options.clone() })
            };
            return (Arc::new(OwnedUpstreams::new(base, Box::new(make))), at_once.then_some(policy));
        }
        let upstream = Arc::new(SupervisedUpstream::new(options));
        (upstream, at_once.then_some(policy))
    }
}

/// Refuses invalid sets of servers: this very program, or two of one name.
pub(crate) fn check(servers: &[ServerEntry]) -> Result<(), StartError> {
    let mut names = std::collections::HashSet::new();
    for entry in servers {
        let server = entry.name.to_string();
        if !names.insert(&entry.name) {
            return Err(StartError::DuplicateServer { server });
        }
        if entry.is_forbidden_self() {
            return Err(StartError::SelfAsUpstream { server });
        }
    }
    Ok(())
}
