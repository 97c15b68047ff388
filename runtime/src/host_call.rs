//! What a host call of a program asks for, decided while its arguments are at hand.

use crate::context::{CallLabel, RunContext};
use crate::driver::label;
use crate::engine::Engine;
use crate::outcome::Effect;
use crate::tool_call::{encode, parse};
use crate::upstream::{CallRequest, Upstream, UpstreamState};
use ptc_vm::builtins::HostFunction;
use ptc_vm::map::Table;
use ptc_vm::{Context, Fault, Reason, Value};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What to do about a host call.
pub(crate) enum Plan {
    /// Answer with the configured servers.
    Servers,
    /// Answer with the clock.
    Now,
    /// The call budget is used up: a world fault.
    OverBudget(CallLabel),
    /// The server's tools are not known: start it and look again.
    Load { upstream: Arc<dyn Upstream>, label: CallLabel },
    /// Call the tool.
    Send { upstream: Arc<dyn Upstream>, label: CallLabel, request: CallRequest },
}

/// Decides. A fault is a programmer fault, or a limit of the program. `loaded`: the server was started for
/// this very call, which is already paid for.
pub(crate) fn plan(
    cx: &mut Context,
    engine: &Engine,
    context: &RunContext,
    function: HostFunction,
    arguments: &[Value],
    loaded: bool,
) -> Result<Plan, Box<Fault>> {
    match function {
        HostFunction::Servers => Ok(Plan::Servers),
        HostFunction::Now => Ok(Plan::Now),
        HostFunction::Tool => {
            let name = arguments.first().and_then(|name| cx.name(name)).unwrap_or("?");
            Err(Fault::new(Reason::UnknownTool, format!("Unknown tool: {name}")).hint(
                "Upstream tools are called as (tool/call {:server \"name\" :tool \"name\" :args {…}}).",
            ))
        }
        HostFunction::ToolCall => plan_tool_call(cx, engine, context, arguments, loaded),
    }
}

fn plan_tool_call(
    cx: &mut Context,
    engine: &Engine,
    context: &RunContext,
    arguments: &[Value],
    loaded: bool,
) -> Result<Plan, Box<Fault>> {
    let servers = engine.server_names();
    let (call, args) = parse(cx, arguments, &servers)?;
    let Some(upstream) = engine.upstreams.get(call.server.as_str()) else {
        return Err(call.no_such_server(&servers));
    };
    let tools = match upstream.tools() {
        Some(tools) => tools,
        None if loaded => Arc::default(),
        None => {
            let label = label(&call, Effect::Unknown);
            return Ok(match context.take_call() {
                true => Plan::Load { upstream: upstream.clone(), label },
                false => Plan::OverBudget(label),
            });
        }
    };
    let tool = tools.get(&call.tool);
    // Only a healthy upstream's list proves that a tool does not exist.
    let healthy = upstream.tools().is_some() && upstream.status().state == UpstreamState::Ready;
    if tool.is_none() && healthy {
        let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        return Err(call.no_such_tool(&known));
    }
    let text = encode(cx, &call, &args, tool.map(|tool| &**tool))?;
    let label = label(&call, tool.map_or(Effect::Unknown, |tool| tool.effect()));
    if !loaded && !context.take_call() {
        return Ok(Plan::OverBudget(label));
    }
    let limits = context.limits();
    let request = CallRequest {
        tool: call.tool.as_str().into(),
        arguments: text,
        timeout: limits.upstream_call_timeout(),
        max_response_bytes: usize::try_from(limits.max_upstream_response_bytes).unwrap_or(usize::MAX),
    };
    Ok(Plan::Send { upstream: upstream.clone(), label, request })
}

/// The value of `(tool/servers)`: one map a server, sorted by name.
pub(crate) fn servers(cx: &mut Context, engine: &Engine) -> Result<Value, Box<Fault>> {
    let mut rows = Vec::with_capacity(engine.upstreams.len());
    for (name, upstream) in &engine.upstreams {
        let tools = upstream.tools();
        let count = tools.as_ref().map_or(0, |tools| tools.len());
        let entries = [
            ("name", cx.string(name)),
            (
                "description",
                upstream.description().map_or(Value::Nil, |text| cx.string(&engine.secrets.scrub(text))),
            ),
            ("tool_count", Value::Int(i64::try_from(count).unwrap_or(i64::MAX))),
            ("catalog_loaded", Value::Bool(tools.is_some())),
        ];
        let mut row = Table::with_capacity(entries.len());
        for (key, value) in entries {
            let key = cx.string(key);
            row = Table::insert(row, cx, key, value)?;
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
