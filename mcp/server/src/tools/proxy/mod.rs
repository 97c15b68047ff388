//! The tool `proxy-dispatch`: one tool in front of the tools of all servers, for clients that write no
//! programs.
//!
//! Its document defines name, actions and fields.
//!
//! # Layout
//!
//! - `fields`: the fields of a call as one table, and its schema.
//! - `connection`: the servers with aliases and ids. `listing`: `list` and `search`. `call`: `call`.
//! - `storage`: large results, and files of arguments. `retained`: results retained for clients. `read_result`:
//!   `readresult`.
//! - `toon`: results in TOON notation.
//! - `answer`: answers, which pass through a run.
//!
//! Each call is a run of its own, with the same budgets, ledger, policies, checks, deadlines and redaction as
//! programs.

mod answer;
mod call;
mod connection;
mod fields;
mod listing;
mod read_result;
mod retained;
mod storage;
mod toon;

pub use storage::{ProxyStorage, SpillRules};

use super::job::{Cancel, Job, follow};
use super::{
    Begun, CallContext, Definition, Facts, Responder, SessionTag, Tool, ToolAnnotations, ToolAnswer,
};
use crate::answer::{CallSummary, RefusalReason};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use answer::ProxyAnswer;
use fields::{CallFields, ProxyAction};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::asker::CallOrigin;
use ptc_calls::limits::Limits;
use ptc_calls::run::account::RunAccount;
use ptc_engine::Runtime;
use ptc_engine::guest::{AsyncRun, interrupted};
use retained::Caller;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Name of the tool.
pub const NAME: &str = "proxy-dispatch";

const DESCRIPTION: &str = "Lists, searches and calls the tools of all configured MCP servers (connections). Start with \
    {\"action\":\"search\",\"query\":\"words\"} or {\"action\":\"list\"}, then \
    {\"action\":\"call\",\"tool\":\"name\",\"arguments\":{…}}. A large result is kept in a file: look into it with \
    {\"action\":\"readresult\",\"resultFile\":…}, op stat first, or pass it on as argumentsFile.";

/// Most connections that the description names.
const NAMED: usize = 20;

/// Time of a run beyond that of its upstream call, which has a limit of its own.
const BEYOND_MS: u64 = 5_000;

/// Interval of the removal of expired results.
const SWEEP: Duration = Duration::from_secs(30);

/// The tool.
pub struct ProxyDispatch {
    runtime: Arc<Runtime>,
    limits: Limits,
    storage: Arc<ProxyStorage>,
}

impl ProxyDispatch {
    /// Makes the tool for the servers of this runtime. Each call has the limits of a program and the time of
    /// one upstream call. Must be called within a tokio runtime.
    pub fn new(runtime: Arc<Runtime>, limits: Limits, storage: ProxyStorage) -> ProxyDispatch {
        let timeout_ms = limits.timeout_ms.max(limits.upstream_call_timeout_ms.saturating_add(BEYOND_MS));
        let storage = Arc::new(storage);
        tasks::spawn(TaskOwner::Connection, sweep(Arc::downgrade(&storage)));
        ProxyDispatch { runtime, limits: Limits { timeout_ms, ..limits }, storage }
    }
}

/// Removes expired results as long as the tool exists.
async fn sweep(storage: Weak<ProxyStorage>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match storage.upgrade() {
            Some(storage) => storage.results.sweep(),
            None => return,
        }
    }
}

impl Tool for ProxyDispatch {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let mut description = DESCRIPTION.to_owned();
        let servers = &facts.catalog.servers;
        for (at, server) in servers.iter().take(NAMED).enumerate() {
            let before = if at == 0 { " Connections: " } else { ", " };
            let _ = write!(description, "{before}c{} = {}", at + 1, server.name);
        }
        if servers.len() > NAMED {
            let _ = write!(description, ", … and {} more", servers.len() - NAMED);
        }
        Definition {
            title: "Call tools of other servers".into(),
            description,
            input_schema: fields::schema(),
            annotations: ToolAnnotations::of_calls(facts.read_only),
            output_schema: None,
        }
    }

    fn session_ended(&self, session: SessionTag) {
        self.storage.results.end(session);
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let given = match CallFields::read(params.arguments.map_or("{}", Raw::get)) {
            Ok(given) => given,
            Err(message) => {
                let answer = ProxyAnswer::error(RefusalReason::ArgsError.name(), message);
                let summary = CallSummary::failed(RefusalReason::ArgsError.name());
                return reply.with(&ToolAnswer { summary, ..answer.into_answer() });
            }
        };
        let (runtime, limits, profile) = (self.runtime.clone(), self.limits, call.profile);
        let (storage, caller, trace) = (self.storage.clone(), Caller::from_call(call), call.trace.clone());
        // Arguments of a file are in memory until they are sent. Results are counted by the runtime.
        let memory_bytes = if given.raw("argumentsFile").is_some() { limits.max_context_bytes } else { 0 };
        Begun::Run(Job::new(memory_bytes, move |reporter| -> Cancel {
            let worker = runtime.clone();
            let run = AsyncRun::new(interrupted, move |account| async move {
                account.set_origin(CallOrigin::Direct);
                act(&worker, &account, (&storage, caller), &given).await.ending()
            });
            let run = run.traced(trace).asking(reporter.caller());
            let watcher = follow(reporter, move |reporter, mut outcome| {
                let answer = ProxyAnswer::from_outcome(&mut outcome);
                let summary = answer.summary(&outcome);
                reporter.ended(&ToolAnswer { summary, ..answer.after(profile, &outcome) });
            });
            let submitted = runtime.submit_async(limits, run, watcher);
            Box::new(move || submitted.cancel())
        }))
    }
}

async fn act(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    (storage, caller): (&ProxyStorage, Caller),
    given: &CallFields,
) -> ProxyAnswer {
    let answer = match given.act {
        ProxyAction::List => listing::list(runtime, account, given, storage.shows_arguments).await,
        ProxyAction::Search => listing::search(runtime, account, given).await,
        ProxyAction::Call => call::call(runtime, account, (storage, caller), given).await,
        ProxyAction::ReadResult => read_result::read_result(&storage.results, caller, given).await,
    };
    answer.unwrap_or_else(|message| {
        ProxyAnswer::error(RefusalReason::ArgsError.name(), message).with("action", given.act.name())
    })
}
