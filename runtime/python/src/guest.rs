//! A script as a run of the runtime, whose work is done elsewhere.

use crate::engine::{Engine, Script};
use crate::functions::FunctionTable;
use crate::host::Host;
use crate::output;
use ptc_runtime::broker::ToolBroker;
use ptc_runtime::guest::{MakeGuest, outside};
use ptc_runtime::limits::Limits;
use ptc_runtime::outcome::{Ending, Failure, RenderedValue};
use ptc_runtime::run::account::RunAccount;
use ptc_runtime::tools::qualified_name;
use ptc_vm::InterruptKind;
use std::sync::Arc;

/// What a script is run with.
#[derive(Clone)]
pub struct ScriptRun {
    /// Who executes it.
    pub engine: Arc<dyn Engine>,
    /// Who calls tools for it.
    pub broker: Arc<ToolBroker>,
    /// What it can call.
    pub functions: Arc<FunctionTable>,
    /// The code, and what it may use.
    pub script: Script,
}

impl ScriptRun {
    /// This script as a guest.
    pub fn guest(self) -> MakeGuest {
        outside(interrupted, move |account| self.end(account))
    }

    async fn end(self, account: Arc<RunAccount>) -> Ending {
        let code = self.script.code.clone();
        // A script that lists or searches functions means all servers.
        let is_named = |server: &str| code.contains("tools(") || code.contains(&qualified_name(server, ""));
        self.broker.start(&account, is_named).await;
        let functions = self.functions.of(&self.broker.catalog().snapshot());
        let limit = self.script.output_bytes;
        let host = Arc::new(Host { broker: self.broker, account, functions });
        match self.engine.run(self.script, host).await {
            Err(failure) => Ending::failed(failure),
            Ok(printed) => {
                let text = output::printed(&printed.text, printed.cut, limit, &printed.notes);
                let answer = RenderedValue { truncated: printed.cut, ..RenderedValue::of(text) };
                Ending::of(Ok(answer))
            }
        }
    }
}

fn interrupted(kind: InterruptKind, limits: &Limits) -> Failure {
    match kind {
        InterruptKind::Cancelled => output::cancelled(),
        InterruptKind::Deadline => output::too_slow(limits.timeout()),
    }
}
