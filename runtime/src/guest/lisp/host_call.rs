//! What a host call of a program asks for, decided while its arguments are at hand.

use crate::engine::Engine;
use crate::guest::lisp::discovery::{self, Reply, Step};
use crate::guest::lisp::driver::label;
use crate::guest::lisp::tool_call::{Encoded, encode, parse, programmer_fault};
use crate::run::account::{CallLabel, RunAccount};
use crate::run::outcome::{CallFault, Effect};
use crate::run::outgoing::Turn;
use crate::tools::LookUp;
use crate::tools::words::{Notation, no_such_server, no_such_tool, refused_tool};
use crate::upstream::{CallRequest, ResultSink, Upstream, UpstreamFault, UpstreamState, UpstreamStatus};
use ptc_vm::builtins::HostFunction;
use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Reason, Value};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to do about a host call.
pub(crate) enum Plan {
    /// Answer with the configured servers.
    Servers,
    /// Answer with the calls that are left.
    Budget,
    /// Answer with the clock.
    Now,
    /// Answer with this.
    Answer(Reply),
    /// The tools of servers are not known: start them and look again.
    LoadAll(Vec<Arc<dyn Upstream>>),
    /// Answer with a world fault.
    Refuse { label: CallLabel, reason: CallFault, text: String },
    /// The server's tools are not known: start it within the time of the call, and look again.
    Load { upstream: Arc<dyn Upstream>, label: CallLabel, timeout: Duration },
    /// Too much of the program is on its way to this server: wait for a turn within the time of the call, and look
    /// again.
    AwaitTurn { label: CallLabel, timeout: Duration },
    /// Call the tool. `whole`: how long the call may take in all, of which the request has the rest.
    Send { upstream: Arc<dyn Upstream>, label: CallLabel, request: CallRequest, whole: Duration },
}

/// A call that has waited until less than this part of its time is left is not sent any more.
const LATE: u32 = 20;

/// What has happened to a call before.
#[derive(Default)]
pub(crate) struct Earlier {
    /// It waited: it is paid for, and a server that it needed was started.
    pub(crate) looked_at: bool,
    /// How long it has waited.
    pub(crate) waited: Duration,
    /// How long it may take in all, which was decided when it was made.
    pub(crate) whole: Option<Duration>,
    /// The right to encode it.
    pub(crate) turn: Option<Turn>,
}

/// Decides. A fault is a programmer fault, or a limit of the program.
pub(crate) fn plan(
    cx: &mut Context,
    engine: &Engine,
    context: &RunAccount,
    function: HostFunction,
    arguments: &[Value],
    earlier: Earlier,
) -> Result<Plan, Box<Fault>> {
    match function {
        HostFunction::Servers if discovery::take_operation(context) => Ok(Plan::Servers),
        HostFunction::Servers => Ok(Plan::Answer(Reply::Nil)),
        HostFunction::Discover(form) => {
            Ok(match discovery::step(cx, engine, context, form, arguments, earlier.looked_at)? {
                Step::Answer(reply) => Plan::Answer(reply),
                Step::Load(upstreams) => Plan::LoadAll(upstreams),
            })
        }
        HostFunction::Now => Ok(Plan::Now),
        HostFunction::Budget => Ok(Plan::Budget),
        HostFunction::Tool => {
            let name = arguments.first().and_then(|name| cx.name(name)).unwrap_or("?");
            Err(Fault::new(Reason::UnknownTool, format_args!("Unknown tool: {name}")).hint(
                "Upstream tools are called as (tool/call {:server \"name\" :tool \"name\" :args {…}}).",
            ))
        }
        HostFunction::ToolCall => plan_tool_call(cx, engine, context, arguments, earlier),
    }
}

fn plan_tool_call(
    cx: &mut Context,
    engine: &Engine,
    context: &RunAccount,
    arguments: &[Value],
    earlier: Earlier,
) -> Result<Plan, Box<Fault>> {
    let Earlier { looked_at, waited, whole, turn } = earlier;
    let servers = engine.server_names();
    let (call, args) = parse(cx, arguments, &servers)?;
    let limits = context.limits();
    let catalog = engine.catalog.snapshot();
    let Some(upstream) = engine.upstreams.get(call.server.as_str()) else {
        let wrong = no_such_server(&call.server, &call.tool, &catalog, Notation::Lisp);
        return Err(programmer_fault(wrong));
    };
    let own = upstream.limits();
    let timeout = own.timeout.unwrap_or_else(|| limits.upstream_call_timeout());
    let whole = whole.unwrap_or_else(|| context.call_timeout(timeout));
    let timeout = whole.saturating_sub(waited);
    let tool = match catalog.look_up(&call.server, &call.tool) {
        LookUp::Ready(tool) => tool,
        LookUp::NoServer => {
            let wrong = no_such_server(&call.server, &call.tool, &catalog, Notation::Lisp);
            return Err(programmer_fault(wrong));
        }
        LookUp::Refused(refusal) => {
            return Err(programmer_fault(refused_tool(&call.server, &call.tool, refusal)));
        }
        // Only a healthy upstream's list proves that a tool does not exist.
        LookUp::NoTool(tools) if upstream.status().state == UpstreamState::Ready => {
            let wrong = no_such_tool(&call.server, &call.tool, &tools, &catalog, Notation::Lisp);
            return Err(programmer_fault(wrong));
        }
        LookUp::NotLoaded | LookUp::NoTool(_) => {
            let label = label(&call, Effect::Unknown);
            if looked_at {
                // It was there a moment ago, and has gone again.
                let UpstreamStatus { state, error, .. } = upstream.status();
                let text = error.unwrap_or_else(|| format!("upstream is {}", state.name()));
                return Ok(Plan::Refuse { label, reason: CallFault::UpstreamUnavailable, text });
            }
            return Ok(match take_call(context, &**upstream) {
                Ok(()) => Plan::Load { upstream: upstream.clone(), label, timeout },
                Err(text) => Plan::Refuse { label, reason: CallFault::CapExhausted, text },
            });
        }
    };
    let label = label(&call, tool.effect());
    let too_late = |label| {
        let text = UpstreamFault::Timeout(whole).to_string();
        Ok(Plan::Refuse { label, reason: CallFault::Timeout, text })
    };
    // Encoding what nobody can answer in time would only keep the program from answering itself.
    if looked_at && timeout <= context.longest_encoding().max(whole / LATE) {
        return too_late(label);
    }
    let Some(turn) = turn.or_else(|| context.outgoing().try_turn(&call.server)) else {
        let paid = if looked_at { Ok(()) } else { take_call(context, &**upstream) };
        return Ok(match paid {
            Ok(()) => Plan::AwaitTurn { label, timeout },
            Err(text) => Plan::Refuse { label, reason: CallFault::CapExhausted, text },
        });
    };
    // Large arguments take their time, in which others have their turns as well; it is the call's.
    let begun = Instant::now();
    let Encoded { text, notes } = encode(cx, &call, &args, Some(&tool))?;
    let took = begun.elapsed();
    context.encoded_in(took);
    notes.into_iter().for_each(|note| context.note(note));
    if !looked_at && let Err(text) = take_call(context, &**upstream) {
        return Ok(Plan::Refuse { label, reason: CallFault::CapExhausted, text });
    }
    let timeout = timeout.saturating_sub(took);
    if timeout.is_zero() {
        return too_late(label);
    }
    let max_bytes = usize::try_from(limits.max_upstream_response_bytes).unwrap_or(usize::MAX);
    let request = CallRequest {
        tool: tool.name.clone(),
        arguments: turn.charge(text),
        timeout,
        sink: ResultSink::Inline { max_bytes: own.max_response_bytes.unwrap_or(max_bytes) },
    };
    Ok(Plan::Send { upstream: upstream.clone(), label, request, whole })
}

/// Takes a call from the budgets of the program; says which of them is used up.
fn take_call(context: &RunAccount, upstream: &dyn Upstream) -> Result<(), String> {
    let cap = CallFault::CapExhausted.name();
    if let Some(limit) = upstream.limits().max_calls_per_program
        && !context.take_call_of(upstream.name(), limit)
    {
        return Err(format!("{cap}: upstream {} allows {limit} calls a program", upstream.name()));
    }
    if context.take_call() { Ok(()) } else { Err(cap.to_owned()) }
}

/// What `(budget/remaining)` gives.
pub(crate) fn budget(cx: &mut Context, calls_left: u64) -> Result<Value, Box<Fault>> {
    let key = cx.keyword("upstream-calls");
    let left = Value::Int(i64::try_from(calls_left).unwrap_or(i64::MAX));
    Ok(Value::Map(MapNode::insert(MapNode::with_capacity(1), cx, key, left)?))
}

/// The value of `(tool/servers)`: one map a server, sorted by name.
pub(crate) fn servers(cx: &mut Context, engine: &Engine) -> Result<Value, Box<Fault>> {
    let catalog = engine.catalog.snapshot();
    let mut rows = Vec::with_capacity(engine.upstreams.len());
    for server in catalog.servers() {
        let status = engine.upstreams.get(&server.name).map(|upstream| upstream.status());
        let count = server.tools.as_ref().map_or(0, |tools| tools.len());
        let description = match &server.description {
            Some(text) => cx.host_text(text)?,
            None => Value::Nil,
        };
        let mut entries = vec![
            ("name", cx.host_text(&server.name)?),
            ("description", description),
            ("tool_count", Value::Int(i64::try_from(count).unwrap_or(i64::MAX))),
            ("catalog_loaded", Value::Bool(server.proven().is_some())),
        ];
        if let Some(why) = server.tools.as_ref().and_then(|tools| tools.cut()) {
            entries.push(("catalog_cut", cx.host_text(why)?));
        }
        if let Some(status) = status {
            entries.push(("state", cx.host_text(status.state.name())?));
            if let Some(error) = status.error {
                entries.push(("error", cx.host_text(&engine.secrets.scrub(&error))?));
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
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
