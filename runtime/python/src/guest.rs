//! A script as a run of the runtime, whose work is done elsewhere; namespaces that several of them share.

use crate::engine::{Engine, Namespace, Printed, Script};
use crate::functions::FunctionTable;
use crate::heard::{Heard, Output};
use crate::host::Host;
use crate::kept::KeptResults;
use crate::output;
use ptc_runtime::broker::ToolBroker;
use ptc_runtime::guest::{MakeGuest, outside};
use ptc_runtime::limits::Limits;
use ptc_runtime::outcome::{Ending, Failure, RenderedValue};
use ptc_runtime::run::account::RunAccount;
use ptc_runtime::spill::OwnedSpills;
use ptc_runtime::tools::qualified_name;
use ptc_vm::InterruptKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a script is run with.
pub struct ScriptRun {
    /// Who executes it.
    pub engine: Arc<dyn Engine>,
    /// Who calls tools for it.
    pub broker: Arc<ToolBroker>,
    /// What it can call.
    pub functions: Arc<FunctionTable>,
    /// The code, and what it may use.
    pub script: Script,
    /// Its turn in a namespace that is kept; `None`: one of its own.
    pub turn: Option<NamespaceTurn>,
}

/// A namespace that scripts share, one after the other. It begins with the first of them, and is over when a script is
/// cut off in it or its process ends. Results that are kept for them go with it.
#[derive(Default)]
pub struct KeptNamespace(Mutex<NamespaceState>);

#[derive(Default)]
enum NamespaceState {
    #[default]
    New,
    Idle(Box<dyn Namespace>, OwnedSpills),
    Busy,
    Over,
}

/// Why a script gets no turn in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// Another one is under way.
    Busy,
    /// It is over.
    Over,
}

impl KeptNamespace {
    fn state(&self) -> MutexGuard<'_, NamespaceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn in it, if nobody has one.
    ///
    /// # Errors
    /// Somebody has, or it is over.
    pub fn turn(self: &Arc<KeptNamespace>) -> Result<NamespaceTurn, NoTurn> {
        let mut state = self.state();
        let before = match std::mem::replace(&mut *state, NamespaceState::Busy) {
            NamespaceState::Busy => return Err(NoTurn::Busy),
            NamespaceState::Over => {
                *state = NamespaceState::Over;
                return Err(NoTurn::Over);
            }
            before => before,
        };
        Ok(NamespaceTurn { kept: self.clone(), left: before })
    }

    /// Ends it; a script under way in it goes on to its end.
    pub fn end(&self) {
        let mut state = self.state();
        if !matches!(*state, NamespaceState::Busy) {
            *state = NamespaceState::Over;
        }
    }

    /// A script is under way in it.
    pub fn is_busy(&self) -> bool {
        matches!(*self.state(), NamespaceState::Busy)
    }

    /// It can have no more scripts.
    pub fn is_over(&self) -> bool {
        matches!(*self.state(), NamespaceState::Over)
    }
}

/// The turn of one script in a namespace. Dropping it leaves what `left` says.
pub struct NamespaceTurn {
    kept: Arc<KeptNamespace>,
    left: NamespaceState,
}

impl NamespaceTurn {
    /// Runs the script; `host` is given what was kept before. A future that is dropped before its end leaves the namespace
    /// over.
    async fn run(
        &mut self,
        engine: &dyn Engine,
        script: &Script,
        host: impl FnOnce(OwnedSpills) -> Arc<Host>,
    ) -> Result<Printed, Failure> {
        let before = std::mem::replace(&mut self.left, NamespaceState::Over);
        let (namespace, spills) = match before {
            NamespaceState::Idle(namespace, spills) => (Some(namespace), spills),
            _ => (None, OwnedSpills::default()),
        };
        let host = host(spills);
        let mut namespace = match namespace {
            Some(namespace) => namespace,
            None => engine.namespace(&host).await?,
        };
        let result = namespace.run(script, &host).await;
        if namespace.is_alive() {
            self.left = NamespaceState::Idle(namespace, host.kept.take());
        }
        result
    }
}

impl Drop for NamespaceTurn {
    fn drop(&mut self) {
        *self.kept.state() = std::mem::replace(&mut self.left, NamespaceState::Over);
    }
}

impl ScriptRun {
    /// This script as a guest.
    pub fn guest(self) -> MakeGuest {
        let heard = Arc::new(Heard::new(self.script.output_bytes));
        let until_then = heard.clone();
        let interrupted = move |kind, limits: &Limits| failed(interrupted(kind, limits), &until_then);
        outside(interrupted, move |account| self.end(account, heard))
    }

    async fn end(self, account: Arc<RunAccount>, heard: Arc<Heard>) -> Ending {
        account.be_patient();
        let code = self.script.code.clone();
        // A script that lists or searches functions means all servers.
        let is_named = |server: &str| code.contains("tools(") || code.contains(&qualified_name(server, ""));
        self.broker.start(&account, is_named).await;
        let functions = self.functions.of(&self.broker.catalog().snapshot());
        let limit = self.script.output_bytes;
        let broker = self.broker;
        let asked = broker.clone();
        let host = |spills| {
            let kept = KeptResults::new(spills, account.limits().fuel);
            Arc::new(Host { broker, account, functions, kept, heard: heard.clone() })
        };
        let result = match self.turn {
            None => self.engine.run(self.script, host(OwnedSpills::default())).await,
            Some(mut turn) => turn.run(&*self.engine, &self.script, host).await,
        };
        match result {
            Err(failure) => failed(about_server(failure, &asked), &heard),
            Ok(printed) => {
                let text = output::printed(&printed.text, printed.cut, limit, &printed.notes);
                let answer = RenderedValue { truncated: printed.cut, ..RenderedValue::of(text) };
                Ending { stderr: stderr(&heard), ..Ending::of(Ok(answer)) }
            }
        }
    }
}

/// The failure of a script that names a function of a configured server whose tools are not known says so.
fn about_server(failure: Failure, broker: &ToolBroker) -> Failure {
    let last = failure.message.lines().next_back().unwrap_or_default();
    let name = last.strip_prefix("NameError: name '").and_then(|rest| rest.split('\'').next());
    let catalog = broker.catalog().snapshot();
    let is_meant = |name: &str, server: &str| name.starts_with(&qualified_name(server, ""));
    let down = name.and_then(|name| {
        let mut absent = catalog.servers().filter(|server| server.tools.is_none());
        absent.find(|server| is_meant(name, &server.name))
    });
    let Some(server) = down.map(|server| server.name.clone()) else { return failure };
    let why = broker.trouble(&server).unwrap_or_else(|| "its tools are not listed yet".to_owned());
    let message =
        format!("{}. The server '{server}' is configured, but cannot be used: {why}", failure.message);
    Failure { message, ..failure }
}

/// The end of a script that failed, with what it had written.
fn failed(failure: Failure, heard: &Heard) -> Ending {
    let prints = heard.lines(Output::Stdout);
    Ending { prints, stderr: stderr(heard), ..Ending::failed(failure) }
}

/// What a script wrote to its standard error, which is for the log of the server.
fn stderr(heard: &Heard) -> Vec<String> {
    heard.lines(Output::Stderr)
}

fn interrupted(kind: InterruptKind, limits: &Limits) -> Failure {
    match kind {
        InterruptKind::Cancelled => output::cancelled(),
        InterruptKind::Deadline => output::too_slow(limits.timeout()),
    }
}
