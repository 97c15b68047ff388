//! Holds what the compilation of a program depends on besides its text: the prelude (a preloaded library), the
//! application's tools, and the names of its session. It also checks whether the prelude finds what it needs. Caches of
//! programs use the fingerprint of this environment as the key.

use super::discovery::{Provider, language};
use super::prelude::{Attached, Prelude};
use crate::broker::ToolBroker;
use foldhash::quality::RandomState;
use ptc_base::sync::Locked;
use ptc_calls::host::GrantedTools;
use ptc_calls::run::outcome::Failure;
use ptc_compiler::tool_catalog::ToolCatalog;
use ptc_compiler::{CallArity, Externals, Namespace, SessionName};
use ptc_upstream::Upstream;
use ptc_vm::bytecode::Program;
use ptc_vm::{Fault, Isolate};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// A name that a session has defined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DefinedName {
    /// The name.
    pub(crate) name: Box<str>,
    /// The arities it accepts, if it holds a function.
    pub(crate) arity: Option<CallArity>,
}

/// Everything except the source text that decides how a program is compiled. The exception is the tools that
/// literal calls are checked against: they may change at any time, so the cache checks them for each program.
#[derive(Default)]
pub(crate) struct CompileEnvironment {
    prelude: Option<Arc<Prelude>>,
    /// Tools of the host; `None` if there are none.
    tools: Option<Arc<GrantedTools>>,
    session: Vec<DefinedName>,
    /// Which restricted view of the servers it belongs to.
    part: u64,
    pub(crate) fingerprint: Fingerprint,
    /// One more than the version of the catalog that was found to have what the prelude needs; 0 before the
    /// first check.
    checked: AtomicU64,
    /// The prelude as shown for one version of the catalog.
    seen: Mutex<Option<(u64, Arc<Prelude>)>>,
}

/// Equal for equal environments of this process. It is keyed, so collisions cannot be constructed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

impl CompileEnvironment {
    /// An environment with these namespaces, tools of the host and names of a session, for this restricted
    /// view of the servers.
    pub(crate) fn new(
        prelude: Option<Arc<Prelude>>,
        tools: Option<Arc<GrantedTools>>,
        session: Vec<DefinedName>,
        part: u64,
    ) -> CompileEnvironment {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let identity = prelude.as_ref().map(|prelude| prelude.source_hash());
        // The compiler knows only the names of tools.
        let granted = tools.as_ref().map(|tools| tools.names());
        let [high, low] =
            KEYS.each_ref().map(|key| u128::from(key.hash_one((&identity, &granted, &session, part))));
        let (fingerprint, checked) = (Fingerprint(high << 64 | low), AtomicU64::new(0));
        CompileEnvironment { prelude, tools, session, part, fingerprint, checked, seen: Mutex::default() }
    }

    /// The same environment with these names of a session.
    pub(crate) fn with_session(&self, session: Vec<DefinedName>) -> CompileEnvironment {
        CompileEnvironment::new(self.prelude.clone(), self.tools.clone(), session, self.part)
    }

    /// Tools of the host, if there are any.
    pub(crate) fn tools(&self) -> Option<&Arc<GrantedTools>> {
        self.tools.as_ref()
    }

    /// Gives it to the compiler, with what is known of servers and their tools.
    pub(crate) fn externals<T>(
        &self,
        servers: &[&str],
        catalog: Option<&dyn ToolCatalog>,
        compile: impl FnOnce(&Externals<'_>) -> T,
    ) -> T {
        let namespaces: Vec<&Namespace> =
            self.prelude.iter().flat_map(|prelude| prelude.namespaces()).collect();
        let session: Vec<SessionName<'_>> =
            self.session.iter().map(|known| SessionName { name: &known.name, arity: known.arity }).collect();
        let of =
            |are_private| self.tools.as_ref().map(|tools| tools.names_of(are_private)).unwrap_or_default();
        let (tools, private_tools) = (of(false), of(true));
        compile(&Externals {
            namespaces: &namespaces,
            session: &session,
            tools: &tools,
            private_tools: &private_tools,
            servers,
            catalog,
        })
    }

    /// The prelude.
    pub(crate) fn prelude(&self) -> Option<&Arc<Prelude>> {
        self.prelude.as_ref()
    }

    /// The prelude as discovery shows it: known facts about the tools behind it override what it declares.
    pub(crate) fn seen(&self, broker: &ToolBroker) -> Option<Arc<Prelude>> {
        let prelude = self.prelude.as_ref()?;
        let catalog = broker.catalog().snapshot();
        let mut seen = self.seen.locked();
        if let Some((_, seen)) = seen.as_ref().filter(|(version, _)| *version == catalog.version()) {
            return Some(seen.clone());
        }
        let shown = prelude.seen_with(&catalog).map_or_else(|| prelude.clone(), Arc::new);
        *seen = Some((catalog.version(), shown.clone()));
        Some(shown)
    }

    /// Checks that everything the prelude needs is there, once for each version of the catalog.
    ///
    /// # Errors
    /// What is missing: no program may begin.
    pub(crate) fn check(&self, broker: &ToolBroker) -> Result<(), Failure> {
        let Some(prelude) = &self.prelude else { return Ok(()) };
        let catalog = broker.catalog().snapshot();
        let version = catalog.version().wrapping_add(1);
        if self.checked.load(Ordering::Relaxed) != version {
            let granted = self.tools.as_ref().map(|tools| tools.names()).unwrap_or_default();
            prelude.check(&catalog, &granted)?;
            self.checked.store(version, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Servers with unknown tools that the needed definitions call. They have to be started first.
    pub(crate) fn unproven(&self, needed: &[u32], broker: &ToolBroker) -> Vec<Arc<dyn Upstream>> {
        let Some(prelude) = &self.prelude else { return Vec::new() };
        let names = prelude.unproven(needed, &broker.catalog().snapshot());
        names.into_iter().filter_map(|name| broker.upstream(name)).collect()
    }

    /// Checks that the needed part of the prelude has what it needs, after the servers were asked to start.
    ///
    /// # Errors
    /// What is missing: the program may not begin.
    pub(crate) fn check_reached(&self, needed: &[u32], broker: &ToolBroker) -> Result<(), Failure> {
        self.check(broker)?;
        let Some(prelude) = &self.prelude else { return Ok(()) };
        let why = |server: &str| {
            let status = broker.upstream(server).map(|upstream| upstream.status());
            let told = status.map(|status| match status.error {
                Some(error) => error.to_string(),
                None => status.state.name().to_owned(),
            });
            told.unwrap_or_else(|| "it is not there any more".to_owned())
        };
        prelude.check_reached(needed, &broker.catalog().snapshot(), why)
    }

    /// The definitions of the prelude that a program needs.
    pub(crate) fn needed_by(&self, program: &Program) -> Box<[u32]> {
        self.prelude.as_ref().map(|prelude| prelude.needed_by(program)).unwrap_or_default()
    }

    /// Links what a program needs of the prelude into an isolate in which nothing is running, and then resets
    /// the budget: linking is not charged to the program.
    ///
    /// # Errors
    /// The budget does not suffice.
    pub(crate) fn attach(
        &self,
        isolate: &mut Isolate,
        needed: &[u32],
        attached: &mut Attached,
    ) -> Result<(), Box<Fault>> {
        let Some(prelude) = self.prelude.as_ref().filter(|_| !needed.is_empty()) else { return Ok(()) };
        let linked = prelude.link(isolate, needed, attached)?;
        if !linked.is_empty() {
            isolate.commit(u64::MAX)?;
            attached.add(linked);
        }
        Ok(())
    }

    /// Providers of names in the order in which they are asked; `seen`: its prelude
    /// ([`CompileEnvironment::seen`]).
    pub(crate) fn providers<'s>(&'s self, seen: Option<&'s Arc<Prelude>>) -> Vec<&'s dyn Provider> {
        let exports = seen.into_iter().map(|prelude| &**prelude as &dyn Provider);
        let tools = self.tools.as_ref().map(|tools| &**tools as &dyn Provider);
        exports.chain(tools).chain([language()]).collect()
    }
}
