//! Runs a Python script under the limits and accounting of the runtime, in a namespace (variables and functions) of its
//! own, or in one that several scripts use one after another.
//!
//! The engine does the work in another process.

use crate::engine::{Engine, Namespace, Script, ScriptOutput};
use crate::functions::FunctionTable;
use crate::host::Host;
use crate::output;
use crate::received::{Output, ReceivedOutput};
use crate::retained::RetainedResults;
use ptc_base::spill::OwnedSpills;
use ptc_base::sync::Locked;
use ptc_calls::asker::CallOrigin;
use ptc_calls::journal::RunJournal;
use ptc_calls::limits::Limits;
use ptc_calls::outcome::{Failure, Outcome, RenderedValue};
use ptc_calls::run::account::{RunAccount, session_number};
use ptc_calls::tools::qualified_name;
use ptc_engine::broker::{JournaledScript, ToolBroker};
use ptc_engine::guest::AsyncRun;
use ptc_vm::InterruptKind;
use std::sync::{Arc, Mutex, Weak};

/// Everything that a script's run needs.
pub struct ScriptRun {
    /// The engine that executes it.
    pub engine: Arc<dyn Engine>,
    /// The broker that calls tools for it.
    pub broker: Arc<ToolBroker>,
    /// The functions that it can call.
    pub functions: Arc<FunctionTable>,
    /// The code and its limits.
    pub script: Script,
    /// Its name in diagnostics.
    pub source_name: Arc<str>,
    /// The journal that it is replayed from.
    pub replayed: Option<Arc<RunJournal>>,
    /// The permit to use a shared namespace; `None` for a namespace of its own.
    pub permit: Option<NamespacePermit>,
}

/// A namespace that scripts use one after the other. The first script starts it. It is over when a script is
/// interrupted in it or its process ends. Results that are retained for its scripts go with it. For policies it is a
/// session: what its scripts were answered stays in it, and limits count their calls together.
pub struct SharedNamespace {
    number: u64,
    state: Mutex<NamespaceState>,
}

impl Default for SharedNamespace {
    fn default() -> SharedNamespace {
        SharedNamespace { number: session_number(), state: Mutex::default() }
    }
}

#[derive(Default)]
enum NamespaceState {
    #[default]
    New,
    Idle(Box<dyn Namespace>, OwnedSpills),
    Busy,
    Over,
}

/// Why a script gets no permit for a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// Another script is running in it.
    Busy,
    /// The namespace is over.
    Over,
}

impl SharedNamespace {
    /// Takes the permit, if it is free.
    ///
    /// # Errors
    /// Another script has it, or the namespace is over.
    pub fn permit(self: &Arc<SharedNamespace>) -> Result<NamespacePermit, NoPermit> {
        let mut state = self.state.locked();
        let before = match std::mem::replace(&mut *state, NamespaceState::Busy) {
            NamespaceState::Busy => return Err(NoPermit::Busy),
            NamespaceState::Over => {
                *state = NamespaceState::Over;
                return Err(NoPermit::Over);
            }
            before => before,
        };
        Ok(NamespacePermit { namespace: self.clone(), left: before })
    }

    /// Ends the namespace. A running script goes on to its end.
    pub fn end(&self) {
        let mut state = self.state.locked();
        if !matches!(*state, NamespaceState::Busy) {
            *state = NamespaceState::Over;
        }
    }

    /// Whether a script is running in it.
    pub fn is_busy(&self) -> bool {
        matches!(*self.state.locked(), NamespaceState::Busy)
    }

    /// Whether the namespace has ended.
    pub fn is_over(&self) -> bool {
        matches!(*self.state.locked(), NamespaceState::Over)
    }
}

/// The permit of one script to use a namespace. Dropping it sets the namespace's state to `left`.
pub struct NamespacePermit {
    namespace: Arc<SharedNamespace>,
    left: NamespaceState,
}

impl NamespacePermit {
    /// Says in the account of a script that it belongs to the namespace.
    fn introduce(&self, account: &RunAccount) {
        let session: Weak<SharedNamespace> = Arc::downgrade(&self.namespace);
        account.set_session(session, self.namespace.number);
    }

    /// Runs the script; `host` is called with the results retained so far. If the future is dropped before
    /// its end, the namespace is over.
    async fn run(
        &mut self,
        engine: &dyn Engine,
        script: &Script,
        host: impl FnOnce(OwnedSpills) -> Arc<Host>,
    ) -> Result<ScriptOutput, Failure> {
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
            self.left = NamespaceState::Idle(namespace, host.retained.take());
        }
        result
    }
}

impl Drop for NamespacePermit {
    fn drop(&mut self) {
        *self.namespace.state.locked() = std::mem::replace(&mut self.left, NamespaceState::Over);
    }
}

impl ScriptRun {
    /// The run of this script. It waits for the engine's process, so it needs no worker.
    pub fn into_run(self) -> AsyncRun {
        let received = Arc::new(ReceivedOutput::new(self.script.output_bytes));
        let until_then = received.clone();
        let interrupted = move |kind, limits: &Limits| failed(interrupted(kind, limits), &until_then);
        AsyncRun::new(interrupted, move |account| self.end(account, received))
    }

    async fn end(self, account: Arc<RunAccount>, received: Arc<ReceivedOutput>) -> Outcome {
        account.set_origin(CallOrigin::Script);
        if let Some(permit) = &self.permit {
            permit.introduce(&account);
        }
        account.drop_call_margin();
        let code = self.script.code.clone();
        // A script that lists or searches functions needs all servers.
        let is_named = |server: &str| code.contains("tools(") || code.contains(&qualified_name(server, ""));
        self.broker.start(&account, is_named).await;
        // What the scripts of a namespace have left for the next one is in no journal.
        if self.permit.is_none() {
            let (source_name, output_bytes) = (&*self.source_name, self.script.output_bytes);
            let script = JournaledScript { program: &code, source_name, output_bytes };
            self.broker.begin_journal(&account, script, self.replayed.clone());
        }
        let functions = self.functions.for_catalog(&self.broker.catalog().snapshot());
        let limit = self.script.output_bytes;
        let broker = self.broker;
        let asked = broker.clone();
        let host = |spills| {
            let retained = RetainedResults::new(spills, account.limits().fuel);
            Arc::new(Host { broker, account, functions, retained, received: received.clone() })
        };
        let result = async {
            match self.permit {
                None => self.engine.run(self.script, host(OwnedSpills::default())).await,
                Some(mut permit) => permit.run(&*self.engine, &self.script, host).await,
            }
        };
        let result = match self.replayed {
            None => result.await,
            Some(journal) => tokio::select! {
                result = result => result,
                recorded = journal.stuck() => Err(output::interrupted_as_recorded(recorded)),
            },
        };
        match result {
            Err(failure) => failed(about_server(failure, &asked), &received),
            Ok(printed) => {
                let text = output::printed(&printed.text, printed.cut, limit, &printed.notes);
                let answer = RenderedValue { truncated: printed.cut, ..RenderedValue::from_text(text) };
                Outcome { stderr: stderr(&received), ..Outcome::with_result(Ok(answer)) }
            }
        }
    }
}

/// Adds to a failure that the name belongs to a server with unknown tools.
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
    // What engines suggest instead is a tool of another server.
    const UNDEFINED: &str = "is not defined";
    let end = failure.message.rfind(UNDEFINED).map_or(failure.message.len(), |start| start + UNDEFINED.len());
    let undefined = failure.message.get(..end).unwrap_or_default();
    let message = format!("{undefined}. The server '{server}' is configured, but cannot be used: {why}");
    Failure { message, ..failure }
}

/// The ending of a failed script, with its output.
fn failed(failure: Failure, received: &ReceivedOutput) -> Outcome {
    let prints = received.lines(Output::Stdout);
    Outcome { prints, stderr: stderr(received), ..Outcome::failed(failure) }
}

/// The script's standard error, which goes to the server's log.
fn stderr(received: &ReceivedOutput) -> Vec<String> {
    received.lines(Output::Stderr)
}

fn interrupted(kind: InterruptKind, limits: &Limits) -> Failure {
    match kind {
        InterruptKind::Cancelled => output::cancelled(),
        InterruptKind::Deadline => output::too_slow(limits.timeout()),
    }
}
