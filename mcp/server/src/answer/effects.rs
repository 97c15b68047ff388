//! Lists the tool calls by which a failed program may already have changed something, so that the client knows what a
//! repeated run would do again.

use ptc_calls::outcome::{CallFault, CallRecord, CallStatus, Effect};
use serde_json::{Value, json};

/// Calls of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectfulCalls<'a> {
    server: &'a str,
    tool: &'a str,
    effect: Effect,
    count: usize,
}

/// The calls that may have changed something, by tool, in the order of their first end. A call that never
/// reached its server changed nothing, and neither did one of a read-only tool.
pub fn effectful(calls: &[CallRecord]) -> Vec<EffectfulCalls<'_>> {
    let mut found = by_tool(calls);
    found.retain(|calls| calls.effect != Effect::Read);
    found
}

/// The calls that reached their servers, by tool.
fn by_tool(calls: &[CallRecord]) -> Vec<EffectfulCalls<'_>> {
    let mut found: Vec<EffectfulCalls<'_>> = Vec::new();
    for call in calls.iter().filter(|call| may_have_run(&call.status)) {
        match found.iter_mut().find(|known| *known.server == *call.server && *known.tool == *call.tool) {
            Some(known) => known.count += 1,
            None => found.push(EffectfulCalls {
                server: &call.server,
                tool: &call.tool,
                effect: call.effect,
                count: 1,
            }),
        }
    }
    found
}

fn may_have_run(status: &CallStatus) -> bool {
    match status {
        CallStatus::Ok => true,
        CallStatus::Error { reason, .. } => {
            let never_sent = [
                CallFault::UpstreamUnavailable,
                CallFault::Starting,
                CallFault::LoginRequired,
                CallFault::ScopeDenied,
            ];
            !reason.is_refusal() && !never_sent.contains(reason)
        }
    }
}

/// The line for an error text: writes apart from reads, since a repeated run would make them again. `None` when nothing
/// can have changed.
pub fn line(calls: &[CallRecord]) -> Option<String> {
    let done = by_tool(calls);
    if done.iter().all(|calls| calls.effect == Effect::Read) {
        return None;
    }
    let parts = [
        (Effect::Write, "writes, which are not undone"),
        (Effect::Unknown, "may have written"),
        (Effect::Read, "reads"),
    ];
    let parts =
        parts.iter().filter_map(|(effect, title)| Some(format!("{title}: {}", names(&done, *effect)?)));
    Some(format!("calls already made: {}", parts.collect::<Vec<_>>().join("; ")))
}

/// The tools with this effect; `None` if there are none.
fn names(done: &[EffectfulCalls<'_>], effect: Effect) -> Option<String> {
    const NAMED: usize = 10;
    let those: Vec<&EffectfulCalls<'_>> = done.iter().filter(|calls| calls.effect == effect).collect();
    let name = |calls: &&EffectfulCalls<'_>| match calls.count {
        1 => format!("{}.{}", calls.server, calls.tool),
        count => format!("{}.{} x{count}", calls.server, calls.tool),
    };
    let mut names: Vec<String> = those.iter().take(NAMED).map(name).collect();
    if those.len() > NAMED {
        names.push(format!("… and {} more tools", those.len() - NAMED));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// The same data as JSON.
pub fn as_json(calls: &[EffectfulCalls<'_>]) -> Value {
    const LISTED: usize = 50;
    let row = |calls: &EffectfulCalls<'_>| {
        json!({
            "server": calls.server, "tool": calls.tool, "effect": calls.effect.name(), "count": calls.count,
        })
    };
    calls.iter().take(LISTED).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn call(tool: &str, effect: Effect, fault: Option<CallFault>) -> CallRecord {
        CallRecord {
            server: "s".into(),
            tool: tool.into(),
            status: fault.map_or(CallStatus::Ok, |reason| CallStatus::Error { reason, error: String::new() }),
            begun: Duration::ZERO,
            duration: Duration::ZERO,
            result_bytes: None,
            effect,
            arguments_hash: None,
            cached: false,
            ruling: None,
            number: None,
            place: None,
        }
    }

    #[test]
    fn only_what_may_have_happened_counts() {
        let calls = [
            call("look", Effect::Read, None),
            call("write", Effect::Write, None),
            call("ask", Effect::Unknown, Some(CallFault::Timeout)),
            call("write", Effect::Write, Some(CallFault::Cancelled)),
            call("gone", Effect::Write, Some(CallFault::UpstreamUnavailable)),
            call("late", Effect::Unknown, Some(CallFault::CapExhausted)),
        ];
        let found = effectful(&calls);
        let text = "calls already made: writes, which are not undone: s.write x2; may have written: s.ask; reads: s.look";
        assert_eq!(line(&calls).as_deref(), Some(text));
        assert_eq!(
            as_json(&found)[1],
            json!({ "server": "s", "tool": "ask", "effect": "unknown", "count": 1 })
        );
        assert_eq!(line(&calls[..1]), None);
    }
}
