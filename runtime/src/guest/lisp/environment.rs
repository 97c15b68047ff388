//! What a program is compiled with and runs in, beside its text: namespaces that a host attaches, and names that earlier
//! programs of its session have defined. The fingerprint stands for all of it wherever programs are kept by their text.

use super::discovery::{Provider, language};
use super::prelude::Prelude;
use crate::host::GrantedTools;
use foldhash::quality::RandomState;
use ptc_compiler::tool_catalog::ToolCatalog;
use ptc_compiler::{CallArity, Externals, Namespace, SessionName};
use ptc_vm::{Fault, Isolate};
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

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
    preludes: Vec<Arc<Prelude>>,
    /// `None` for none.
    tools: Option<Arc<GrantedTools>>,
    session: Vec<DefinedName>,
    fingerprint: Fingerprint,
}

/// Equal for equal environments of this process, and for no others that anybody can find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

impl CompileEnvironment {
    /// Namespaces that programs can call into, tools of the host, and names of their session.
    pub(crate) fn new(
        preludes: Vec<Arc<Prelude>>,
        tools: Option<Arc<GrantedTools>>,
        session: Vec<DefinedName>,
    ) -> CompileEnvironment {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let identities: Vec<_> = preludes.iter().map(|prelude| prelude.identity()).collect();
        // Of a tool the compiler knows its name alone.
        let granted = tools.as_ref().map(|tools| tools.names());
        let [high, low] =
            KEYS.each_ref().map(|key| u128::from(key.hash_one((&identities, &granted, &session))));
        CompileEnvironment { preludes, tools, session, fingerprint: Fingerprint(high << 64 | low) }
    }

    /// The same namespaces and tools, and these names of a session.
    pub(crate) fn with_session(&self, session: Vec<DefinedName>) -> CompileEnvironment {
        CompileEnvironment::new(self.preludes.clone(), self.tools.clone(), session)
    }

    /// Tools of the host, if there are any.
    pub(crate) fn tools(&self) -> Option<&Arc<GrantedTools>> {
        self.tools.as_ref()
    }

    /// Namespaces that programs can call into.
    pub(crate) fn preludes(&self) -> &[Arc<Prelude>] {
        &self.preludes
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
        let namespaces: Vec<&Namespace> = self.preludes.iter().map(|prelude| prelude.namespace()).collect();
        let session: Vec<SessionName<'_>> =
            self.session.iter().map(|known| SessionName { name: &known.name, arity: known.arity }).collect();
        let tools = self.tools.as_ref().map(|tools| tools.names()).unwrap_or_default();
        compile(&Externals {
            namespaces: &namespaces,
            session: &session,
            tools: &tools,
            servers,
            catalog,
            ..Externals::default()
        })
    }

    /// Attaches the namespaces to a new isolate, and begins its next run with the same budget.
    ///
    /// # Errors
    /// What the budget does not allow for.
    pub(crate) fn attach(&self, isolate: &mut Isolate) -> Result<(), Box<Fault>> {
        if self.preludes.is_empty() {
            return Ok(());
        }
        for prelude in &self.preludes {
            prelude.attach(isolate)?;
        }
        isolate.commit(u64::MAX)
    }

    /// Who knows names, in the order in which they are asked.
    pub(crate) fn providers(&self) -> Vec<&dyn Provider> {
        let exports = self.preludes.iter().map(|prelude| &**prelude as &dyn Provider);
        let tools = self.tools.as_ref().map(|tools| &**tools as &dyn Provider);
        exports.chain(tools).chain([language()]).collect()
    }
}
