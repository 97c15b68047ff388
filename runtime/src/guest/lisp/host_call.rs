//! Plans how to answer a host call of a program, while its arguments are at hand.

use super::build::{self, record};
use super::discovery::{self, DiscoveryReply, Step};
use super::environment::CompileEnvironment;
use super::spilled::{self, KnownSpills, PlannedLook};
use super::tool_call::{
    Encoded, ParsedCall, encode, granted, over_memory, parse, parse_request, programmer_fault,
};
use crate::broker::{CallError, Pending, Permit, PreparedCall, Reserved, ToolBroker, WorldFault, names};
use crate::run::account::RunAccount;
use crate::run::outcome::CallFault;
use crate::tools::Notation;
use crate::tools::{ServerText, visible::visible};
use crate::upstream::Upstream;
use ptc_vm::builtins::{HostFunction, ToolForm};
use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Value};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How to answer a host call.
pub(super) enum Plan {
    /// Answer with the configured servers.
    Servers,
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
    Wait(Pending),
    /// Read a part of a spilled result.
    Look(PlannedLook),
    /// Call the tool.
    Send(PreparedCall),
}

/// What the planning of a host call needs.
pub(super) struct HostCallContext<'e> {
    pub(super) environment: &'e CompileEnvironment,
    pub(super) broker: &'e Arc<ToolBroker>,
    pub(super) account: &'e Arc<RunAccount>,
    pub(super) spills: KnownSpills<'e>,
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
    let HostCallContext { environment, broker, account, spills } = surroundings;
    match function {
        HostFunction::Servers if discovery::take_operation(account) => Ok(Plan::Servers),
        HostFunction::Servers => Ok(Plan::Answer(DiscoveryReply::Nil)),
        HostFunction::Discover(form) => {
            let seen = environment.seen(broker);
            let providers = environment.providers(seen.as_ref());
            let step = discovery::step(cx, &providers, broker, account, form, arguments, is_loaded)?;
            Ok(match step {
                Step::Answer(reply) => {
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
            match granted::reserve(environment.tools(), broker, account, name)? {
                Reserved::Permit(permit) => {
                    granted::load(cx, account, permit, arguments.get(1..).unwrap_or_default()).map(Plan::Send)
                }
                Reserved::Pending(pending) => Ok(Plan::Wait(pending)),
            }
        }
        HostFunction::Look(form) => Ok(Plan::Look(spilled::plan(cx, account, spills, form, arguments)?)),
        HostFunction::ToolCall | HostFunction::ToolCallValue | HostFunction::Ask(_) => {
            let (call, args) = read(cx, broker, function, arguments)?;
            match broker.reserve(account, &call.server, call.target.clone(), Notation::Lisp) {
                Ok(Reserved::Permit(permit)) => load(cx, account, permit, &call, &args),
                Ok(Reserved::Pending(pending)) => Ok(Plan::Wait(pending)),
                Err(error) => plan_for_error(error, account),
            }
        }
    }
}

/// Reads a call of a server.
fn read(
    cx: &mut Context,
    broker: &ToolBroker,
    function: HostFunction,
    arguments: &[Value],
) -> Result<(ParsedCall, Value), Box<Fault>> {
    let upstreams = broker.upstreams();
    match function {
        HostFunction::Ask(form) => parse_request(cx, form, arguments, &names(&upstreams)),
        HostFunction::ToolCallValue => parse(cx, ToolForm::CallValue, arguments, &names(&upstreams)),
        _ => parse(cx, ToolForm::Call, arguments, &names(&upstreams)),
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
    let (call, _) = read(cx, broker, function, arguments).ok()?;
    Some(format!("{}/{}", call.server, call.target.label()))
}

/// Continues a call that has waited for its permit.
pub(super) fn permitted(
    cx: &mut Context,
    broker: &ToolBroker,
    account: &RunAccount,
    function: HostFunction,
    permit: Permit,
    arguments: &[Value],
) -> Result<Plan, Box<Fault>> {
    match permit.in_time() {
        Ok(permit) if function == HostFunction::Tool => {
            granted::load(cx, account, permit, arguments.get(1..).unwrap_or_default()).map(Plan::Send)
        }
        Ok(permit) => {
            let (call, args) = read(cx, broker, function, arguments)?;
            load(cx, account, permit, &call, &args)
        }
        Err(fault) => Ok(Plan::Refuse(fault)),
    }
}

/// Encodes a call.
fn load(
    cx: &mut Context,
    account: &RunAccount,
    permit: Permit,
    call: &ParsedCall,
    args: &Value,
) -> Result<Plan, Box<Fault>> {
    let Encoded { text, notes } =
        match encode(cx, (&call.server, call.target.label()), args, Some(permit.tool())) {
            Ok(encoded) => encoded,
            Err(fault) => {
                permit.withdraw();
                return Err(fault);
            }
        };
    notes.into_iter().for_each(|note| account.note(note));
    Ok(permit.load_kept(text, call.keeps_large).map_or_else(Plan::Refuse, Plan::Send))
}

/// What to do about a result that is too large.
const SPILL: &str = "; with :on-large :spill in the call it is stored and read in parts (spill/head, spill/grep, \
    spill/json-path), or raise --max-upstream-response-bytes";

/// What the program gets for a call that failed.
pub(super) fn plan_for_error(error: CallError, account: &RunAccount) -> Result<Plan, Box<Fault>> {
    match error {
        CallError::Wrong(wrong) => Err(programmer_fault(wrong)),
        CallError::World(WorldFault { reason: reason @ CallFault::ResponseTooLarge, message }) => {
            Ok(Plan::Refuse(WorldFault { reason, message: message + SPILL }))
        }
        CallError::World(fault) => Ok(Plan::Refuse(fault)),
        CallError::OverMemory { bytes } => Err(over_memory(bytes, account)),
    }
}

/// The value of `(budget/remaining)`.
pub(super) fn budget(cx: &mut Context, calls_left: u64) -> Result<Value, Box<Fault>> {
    record(cx, [("upstream-calls", build::count(calls_left))])
}

/// The value of `(tool/servers)`: one map per server, sorted by name.
pub(super) fn servers(cx: &mut Context, broker: &ToolBroker) -> Result<Value, Box<Fault>> {
    let catalog = broker.catalog().snapshot();
    let mut rows = Vec::with_capacity(catalog.servers().len());
    for server in catalog.servers() {
        let status = broker.upstream(&server.name).map(|upstream| upstream.status());
        let count = server.tools.as_ref().map_or(0, |tools| tools.len());
        let description = match server.about() {
            Some(text) => cx.host_text(&visible(&text))?,
            None => Value::Nil,
        };
        let mut entries = vec![
            ("name", cx.host_text(&ServerText::new(&server.name))?),
            ("description", description),
            ("tool_count", build::count(count as u64)),
            ("catalog_loaded", Value::Bool(server.proven().is_some())),
        ];
        if let Some(why) = server.tools.as_ref().and_then(|tools| tools.cut()) {
            entries.push(("catalog_cut", cx.host_text(&ServerText::new(why))?));
        }
        if let Some(status) = status {
            entries.push(("state", cx.host_text(status.state.name())?));
            if let Some(error) = status.error {
                entries.push(("error", cx.host_text(&broker.secrets().scrub(&error))?));
            }
        }
        let mut row = MapNode::with_capacity(entries.len());
        for (key, value) in entries {
            let key = cx.host_text(key)?;
            row = MapNode::insert(row, cx, key, value)?;
        }
        rows.push(Value::Map(row));
    }
    Ok(Value::vector(rows))
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
