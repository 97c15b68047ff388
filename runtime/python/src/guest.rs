//! A script as a run of the runtime. Its work is done elsewhere, so its turns are short: hand it out, wait, end.

use crate::engine::{Engine, Script};
use crate::functions::FunctionTable;
use crate::host::Host;
use crate::output;
use ptc_runtime::broker::ToolBroker;
use ptc_runtime::guest::{CallId, Errand, Guest, MakeGuest, Progress, Reply, Seat};
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

struct ScriptGuest {
    seat: Seat,
    run: Option<ScriptRun>,
    /// The script's process lives as long as this.
    under_way: Option<Errand>,
    end: Option<Box<Ending>>,
}

impl ScriptRun {
    /// This script as a guest.
    pub fn guest(self) -> MakeGuest {
        Box::new(move |seat| Ok(Box::new(ScriptGuest { seat, run: Some(self), under_way: None, end: None })))
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
                Ending { result: Ok(answer), prints: Vec::new(), fuel: None, peak_bytes: 0 }
            }
        }
    }
}

impl ScriptGuest {
    fn stopped(&self) -> Option<Failure> {
        Some(match self.seat.account.interrupted()? {
            InterruptKind::Cancelled => output::cancelled(),
            InterruptKind::Deadline => output::too_slow(self.seat.account.limits().timeout()),
        })
    }
}

impl Guest for ScriptGuest {
    fn advance(&mut self) -> Progress {
        if let Some(failure) = self.stopped() {
            self.under_way = None;
            return Progress::Finished(Box::new(Ending::failed(failure)));
        }
        if let Some(end) = self.end.take() {
            return Progress::Finished(end);
        }
        if let Some(run) = self.run.take() {
            let account = self.seat.account.clone();
            let work = async move { Reply::Ended(Box::new(run.end(account).await)) };
            self.under_way = Some(self.seat.port.hand_out(CallId(0), work));
        }
        Progress::Waiting
    }

    fn answer(&mut self, _: CallId, reply: Reply) {
        if let Reply::Ended(end) = reply {
            self.end = Some(end);
        }
    }

    fn live_bytes(&self) -> u64 {
        0
    }

    fn close(self: Box<Self>) {}
}
