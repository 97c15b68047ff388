//! What a program is compiled with and runs in, beside its text: namespaces that a host attaches, and names that earlier
//! programs of its session have defined. The fingerprint stands for all of it wherever programs are kept by their text.

use super::discovery::{Provider, language};
use super::prelude::{Attached, Prelude};
use crate::broker::ToolBroker;
use crate::host::GrantedTools;
use crate::run::outcome::Failure;
use crate::upstream::Upstream;
use foldhash::quality::RandomState;
use ptc_compiler::tool_catalog::ToolCatalog;
use ptc_compiler::{CallArity, Externals, Namespace, SessionName};
use ptc_vm::bytecode::Program;
use ptc_vm::{Fault, Isolate};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A name that a session has defined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DefinedName {
    /// The name.
    pub(crate) name: Box<str>,
    /// How many arguments it accepts, when it holds a function.
    pub(crate) arity: Option<CallArity>,
}

/// Everything beside the text that decides what it is compiled to, save the tools that literal calls are checked against:
/// those change at any time, and the cache looks at them for each program.
#[derive(Default)]
pub(crate) struct CompileEnvironment {
    prelude: Option<Arc<Prelude>>,
    /// `None` for none.
    tools: Option<Arc<GrantedTools>>,
    session: Vec<DefinedName>,
    /// Which part of the servers it is for.
    part: u64,
    fingerprint: Fingerprint,
    /// The version of the catalog that has what the prelude needs, and 1; 0 before that was looked at.
    checked: AtomicU64,
    /// The prelude as it is shown with one version of the catalog.
    seen: Mutex<Option<(u64, Arc<Prelude>)>>,
}

/// Equal for equal environments of this process, and for no others that anybody can find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

impl CompileEnvironment {
    /// Namespaces that programs can call into, tools of the host, and names of their session, where there is this part of the
    /// servers.
    pub(crate) fn new(
        prelude: Option<Arc<Prelude>>,
        tools: Option<Arc<GrantedTools>>,
        session: Vec<DefinedName>,
        part: u64,
    ) -> CompileEnvironment {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let identity = prelude.as_ref().map(|prelude| prelude.source_hash());
        // Of a tool the compiler knows its name alone.
        let granted = tools.as_ref().map(|tools| tools.names());
        let [high, low] =
            KEYS.each_ref().map(|key| u128::from(key.hash_one((&identity, &granted, &session, part))));
        let (fingerprint, checked) = (Fingerprint(high << 64 | low), AtomicU64::new(0));
        CompileEnvironment { prelude, tools, session, part, fingerprint, checked, seen: Mutex::default() }
    }

    /// The same namespaces and tools, and these names of a session.
    pub(crate) fn with_session(&self, session: Vec<DefinedName>) -> CompileEnvironment {
        CompileEnvironment::new(self.prelude.clone(), self.tools.clone(), session, self.part)
    }

    /// Tools of the host, if there are any.
    pub(crate) fn tools(&self) -> Option<&Arc<GrantedTools>> {
        self.tools.as_ref()
    }

    /// What it is known by.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Shows it to the compiler, beside what is known of servers and their tools.
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

    /// The prelude as it is shown: what the tools behind it are known to do counts more than what it says.
    pub(crate) fn seen(&self, broker: &ToolBroker) -> Option<Arc<Prelude>> {
        let prelude = self.prelude.as_ref()?;
        let catalog = broker.catalog().snapshot();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, seen)) = seen.as_ref().filter(|(version, _)| *version == catalog.version()) {
            return Some(seen.clone());
        }
        let shown = prelude.seen_with(&catalog).map_or_else(|| prelude.clone(), Arc::new);
        *seen = Some((catalog.version(), shown.clone()));
        Some(shown)
    }

    /// What the prelude needs is there. Looked at once for each state of the catalog.
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

    /// Servers that a program has to know the tools of before it begins, since definitions that it needs call them.
    pub(crate) fn unproven(&self, needed: &[u32], broker: &ToolBroker) -> Vec<Arc<dyn Upstream>> {
        let Some(prelude) = &self.prelude else { return Vec::new() };
        let names = prelude.unproven(needed, &broker.catalog().snapshot());
        names.into_iter().filter_map(|name| broker.upstream(name)).collect()
    }

    /// What a program needs of the prelude is there, now that the servers were asked to start.
    ///
    /// # Errors
    /// What is missing: the program may not begin.
    pub(crate) fn check_reached(&self, needed: &[u32], broker: &ToolBroker) -> Result<(), Failure> {
        self.check(broker)?;
        let Some(prelude) = &self.prelude else { return Ok(()) };
        let why = |server: &str| {
            let status = broker.upstream(server).map(|upstream| upstream.status());
            let told = status.map(|status| status.error.unwrap_or_else(|| status.state.name().to_owned()));
            told.unwrap_or_else(|| "it is not there any more".to_owned())
        };
        prelude.check_reached(needed, &broker.catalog().snapshot(), why)
    }

    /// The definitions of the prelude that a program needs.
    pub(crate) fn needed_by(&self, program: &Program) -> Box<[u32]> {
        self.prelude.as_ref().map(|prelude| prelude.needed_by(program)).unwrap_or_default()
    }

    /// Links what a program needs of the prelude into an isolate in which nothing else is under way, and begins its next
    /// run with the same budget: what it takes is nobody's work.
    ///
    /// # Errors
    /// What the budget does not allow for.
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

    /// Who knows names, in the order in which they are asked; `seen`: its prelude ([`CompileEnvironment::seen`]).
    pub(crate) fn providers<'s>(&'s self, seen: Option<&'s Arc<Prelude>>) -> Vec<&'s dyn Provider> {
        let exports = seen.into_iter().map(|prelude| &**prelude as &dyn Provider);
        let tools = self.tools.as_ref().map(|tools| &**tools as &dyn Provider);
        exports.chain(tools).chain([language()]).collect()
    }
}
