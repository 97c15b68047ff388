//! Decides how to answer a host call (a Lisp program's request for a tool, the server list, the clock or the budget):
//! with data at hand, with the recorded answer of a replay, or by calling the tool. If tools of servers are not known
//! yet, the plan is to start the servers and decide again. The plan is made while the arguments are at hand, and this
//! file makes the values about servers and budget.

use super::build::{self, record};
use super::discovery::{self, DiscoveryReply, Step};
use super::driver::journaled::CallPosition;
use super::environment::CompileEnvironment;
use super::spilled::{self, KnownSpills, PlannedLook};
use super::tool_call::{ParsedCall, encode, granted, over_memory, parse, programmer_fault};
use crate::broker::{
    CallError, NoPermit, OWN_CAP, Pending, Permit, PreparedCall, ToolBroker, WorldFault, names,
};
use ptc_calls::journal::Verdict;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::{CallTarget, CatalogServer, HOST, Notation, ServerText, visible::visible};
use ptc_upstream::Upstream;
use ptc_vm::builtins::HostFunction;
use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How to answer a host call.
pub(super) enum Plan {
    /// Answer with the configured servers.
    Servers(Vec<ServerRow>),
    /// Answer with the number of calls that are left.
    Budget,
    /// Answer with the current time.
    Now,
    /// Answer with this reply.
    Answer(DiscoveryReply),
    /// The tools of servers are not known: start them and look again.
    LoadAll(Vec<Arc<dyn Upstream>>),
    /// Answer with a world fault, which is a value.
    Refuse(WorldFault),
    /// Wait for a permit to encode the call.
    Wait(Box<Pending>),
    /// Read a part of a spilled result.
    Look(PlannedLook),
    /// Call the tool.
    Send(PreparedCall),
    /// Wait for the recorded answer of the call, which is not sent.
    AwaitRecorded(Option<PreparedCall>),
    /// Nothing: the replay has diverged.
    Stop,
}

/// What the planning of a host call needs.
pub(super) struct HostCallContext<'e> {
    pub(super) environment: &'e CompileEnvironment,
    pub(super) broker: &'e Arc<ToolBroker>,
    pub(super) account: &'e Arc<RunAccount>,
    pub(super) spills: KnownSpills<'e>,
    pub(super) position: CallPosition<'e>,
}

/// Decides how to answer a call. A fault is a programmer fault, or a limit of the program. `is_loaded`:
/// servers were started for this call, which is already paid for.
pub(super) fn plan(
    cx: &mut Context,
    surroundings: &HostCallContext<'_>,
    function: HostFunction,
    arguments: &[Value],
    is_loaded: bool,
) -> Result<Plan, Box<Fault>> {
    let HostCallContext { environment, broker, account, spills, position } = surroundings;
    match function {
        HostFunction::Servers if discovery::take_operation(account) => {
            broker.policy().looked_up(account);
            let rows = server_rows(broker);
            let recorded = position.asked(cx, "tool/servers", || json!(rows));
            Ok(Plan::Servers(recorded.and_then(|rows| serde_json::from_value(rows).ok()).unwrap_or(rows)))
        }
        HostFunction::Servers => Ok(Plan::Answer(DiscoveryReply::Nil)),
        HostFunction::Discover(form) => {
            broker.policy().looked_up(account);
            let seen = environment.seen(broker);
            let providers = environment.providers(seen.as_ref());
            let step = discovery::step(cx, &providers, broker, account, form, arguments, is_loaded)?;
            Ok(match step {
                Step::Answer(reply) => {
                    let recorded = position.asked(cx, form.name(), || json!(reply));
                    let recorded = recorded.and_then(|reply| serde_json::from_value(reply).ok());
                    let reply: DiscoveryReply = recorded.unwrap_or(reply);
                    account.discover(reply.texts());
                    Plan::Answer(reply)
                }
                Step::Load(upstreams) => Plan::LoadAll(upstreams),
            })
        }
        HostFunction::Now => Ok(Plan::Now),
        HostFunction::Budget => Ok(Plan::Budget),
        HostFunction::Tool => {
            let name = arguments.first().and_then(|name| cx.name(name)).unwrap_or("?");
            let tool = granted::find(environment.tools(), name)?;
            match broker.reserve_granted(account, tool) {
                Ok(permit) => load_granted(cx, account, permit, *position, arguments),
                Err(NoPermit::Yet(pending)) => Ok(Plan::Wait(pending)),
                Err(NoPermit::Refused(error)) => Err(granted::failed(name, error, account)),
            }
        }
        HostFunction::Look(form) => Ok(Plan::Look(spilled::plan(cx, account, spills, form, arguments)?)),
        HostFunction::ToolCall | HostFunction::ToolCallValue | HostFunction::Ask(_) => {
            let (call, args) = parse(cx, function, arguments, &names(&broker.upstreams()))?;
            match broker.reserve(account, &call.server, call.target.clone(), Notation::Lisp) {
                Ok(permit) => load(cx, account, permit, *position, &call, &args),
                Err(NoPermit::Yet(pending)) => Ok(Plan::Wait(pending)),
                Err(NoPermit::Refused(error)) => {
                    if let CallError::World(fault) = &error {
                        position.refused(cx, fault);
                    }
                    plan_for_error(error, account)
                }
            }
        }
    }
}

/// The `server/tool` of a call by `tool/call!`; `None` for other forms.
pub(super) fn called(
    cx: &mut Context,
    broker: &ToolBroker,
    function: HostFunction,
    arguments: &[Value],
) -> Option<String> {
    if function != HostFunction::ToolCallValue {
        return None;
    }
    let (server, target) = called_target(cx, broker, function, arguments)?;
    Some(format!("{server}/{target}"))
}

/// The server and the target of a call of a server.
pub(super) fn called_target(
    cx: &mut Context,
    broker: &ToolBroker,
    function: HostFunction,
    arguments: &[Value],
) -> Option<(String, String)> {
    let (call, _) = parse(cx, function, arguments, &names(&broker.upstreams())).ok()?;
    let target = call.target.label().to_owned();
    Some((call.server, target))
}

/// Continues a call that has waited for its permit.
pub(super) fn permitted(
    cx: &mut Context,
    broker: &ToolBroker,
    account: &RunAccount,
    function: HostFunction,
    permit: Permit,
    position: CallPosition<'_>,
    arguments: &[Value],
) -> Result<Plan, Box<Fault>> {
    match permit.in_time() {
        Ok(permit) if function == HostFunction::Tool => {
            load_granted(cx, account, permit, position, arguments)
        }
        Ok(permit) => {
            let (call, args) = parse(cx, function, arguments, &names(&broker.upstreams()))?;
            load(cx, account, permit, position, &call, &args)
        }
        Err(fault) => {
            position.refused(cx, &fault);
            Ok(Plan::Refuse(fault))
        }
    }
}

/// Encodes a call of a server.
fn load(
    cx: &mut Context,
    account: &RunAccount,
    mut permit: Permit,
    position: CallPosition<'_>,
    call: &ParsedCall,
    args: &Value,
) -> Result<Plan, Box<Fault>> {
    let name = (&*call.server, call.target.label());
    let encoded = match position.entered() {
        Some(arguments) => Ok((arguments.to_string(), Vec::new())),
        None => encode(cx, name, args, Some(permit.tool())),
    };
    let (text, notes) = match encoded {
        Ok(encoded) => encoded,
        Err(fault) => {
            permit.withdraw();
            return Err(fault);
        }
    };
    notes.into_iter().for_each(|note| account.note(note));
    let subject = call.target.subject().filter(|_| !matches!(call.target, CallTarget::Tool(_)));
    let verdict = position.departs(cx, (&call.server, subject), &mut permit, &text);
    let store = permit.spill_store(call.keeps_large);
    Ok(leave(cx, position, verdict, permit.load(text, store)).unwrap_or_else(Plan::Refuse))
}

/// Encodes a call of a tool of the host.
fn load_granted(
    cx: &mut Context,
    account: &RunAccount,
    permit: Permit,
    position: CallPosition<'_>,
    arguments: &[Value],
) -> Result<Plan, Box<Fault>> {
    let tool = permit.tool().clone();
    let (mut permit, text) = match position.entered() {
        Some(entered) => (permit, entered.to_string()),
        None => granted::encoded(cx, account, permit, arguments.get(1..).unwrap_or_default())?,
    };
    let verdict = position.departs(cx, (HOST, None), &mut permit, &text);
    leave(cx, position, verdict, permit.load(text, None)).map_err(|fault| granted::world(&tool.name, fault))
}

/// What becomes of a call that is ready to leave, or was refused at the last moment.
fn leave(
    cx: &Context,
    position: CallPosition<'_>,
    verdict: Result<Verdict, WorldFault>,
    prepared: Result<PreparedCall, WorldFault>,
) -> Result<Plan, WorldFault> {
    match (verdict, prepared) {
        (Ok(Verdict::Live | Verdict::Again), Ok(prepared)) => Ok(Plan::Send(prepared)),
        (Ok(Verdict::Live | Verdict::Again), Err(fault)) => {
            position.refused(cx, &fault);
            Err(fault)
        }
        // The recorded answer counts, whatever this process would have said.
        (Ok(Verdict::Replayed), prepared) => Ok(Plan::AwaitRecorded(prepared.ok())),
        (Err(fault), prepared) => {
            if let Ok(prepared) = prepared {
                // Enters the call into the ledger as failed.
                let _ = prepared.replayed(fault.recorded());
            }
            Err(fault)
        }
        (Ok(Verdict::Diverged | Verdict::NotRecorded), _) => Ok(Plan::Stop),
    }
}

/// What to do about a result that is too large.
const SPILL: &str = "; with :on-large :spill in the call it is stored and read in parts (spill/head, spill/grep, \
    spill/json-path), or raise ";

/// What the program gets for a call that failed.
pub(super) fn plan_for_error(error: CallError, account: &RunAccount) -> Result<Plan, Box<Fault>> {
    match error {
        CallError::Wrong(wrong) => Err(programmer_fault(wrong)),
        CallError::World(WorldFault { reason: reason @ CallFault::ResponseTooLarge, message }) => {
            let limit = match message.contains(OWN_CAP) {
                true => OWN_CAP,
                false => "--max-upstream-response-bytes",
            };
            Ok(Plan::Refuse(WorldFault { reason, message: message + SPILL + limit }))
        }
        CallError::World(fault) => Ok(Plan::Refuse(fault)),
        CallError::OverMemory { bytes } => Err(over_memory(bytes, account)),
    }
}

/// The value of `(budget/remaining)`.
pub(super) fn budget(cx: &mut Context, calls_left: u64) -> Result<Value, Box<Fault>> {
    record(cx, [("upstream-calls", build::count(calls_left))])
}

/// One server in the value of `(tool/servers)`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerRow {
    name: String,
    description: Option<String>,
    tools: u64,
    is_loaded: bool,
    cut: Option<String>,
    state: Option<String>,
    error: Option<String>,
}

/// The configured servers, sorted by name.
fn server_rows(broker: &ToolBroker) -> Vec<ServerRow> {
    let catalog = broker.catalog().snapshot();
    let row = |server: &CatalogServer| {
        let status = broker.upstream(&server.name).map(|upstream| upstream.status());
        let cut = server.tools.as_ref().and_then(|tools| tools.cut());
        let error = status.as_ref().and_then(|status| status.error.as_ref());
        ServerRow {
            name: ServerText::new(&server.name).to_string(),
            description: server.about().map(|text| visible(&text).into_owned()),
            tools: server.tools.as_ref().map_or(0, |tools| tools.len()) as u64,
            is_loaded: server.proven().is_some(),
            cut: cut.map(|why| ServerText::new(why).to_string()),
            error: error.map(|error| broker.secrets().scrub(error).into_owned()),
            state: status.map(|status| status.state.name().to_owned()),
        }
    };
    catalog.servers().map(row).collect()
}

/// The value of `(tool/servers)`: one map per server.
pub(super) fn servers(cx: &mut Context, rows: Vec<ServerRow>) -> Result<Value, Box<Fault>> {
    let mut values = Vec::with_capacity(rows.len());
    for ServerRow { name, description, tools, is_loaded, cut, state, error } in rows {
        let description = match description {
            Some(text) => cx.host_text(&text)?,
            None => Value::Nil,
        };
        let mut entries = vec![
            ("name", cx.host_text(&name)?),
            ("description", description),
            ("tool_count", build::count(tools)),
            ("catalog_loaded", Value::Bool(is_loaded)),
        ];
        for (key, text) in [("catalog_cut", cut), ("state", state), ("error", error)] {
            if let Some(text) = text {
                entries.push((key, cx.host_text(&text)?));
            }
        }
        let mut row = MapNode::with_capacity(entries.len());
        for (key, value) in entries {
            let key = cx.host_text(key)?;
            row = MapNode::insert(row, cx, key, value)?;
        }
        values.push(Value::Map(row));
    }
    Ok(Value::vector(values))
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
