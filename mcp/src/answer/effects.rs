//! Lists what a failed program may already have changed, since a repeated run would change it again.

use ptc_runtime::outcome::{CallFault, CallRecord, CallStatus, Effect};
use serde_json::{Value, json};

/// Calls of one tool that may have changed something.
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
    let mut found: Vec<EffectfulCalls<'_>> = Vec::new();
    for call in calls.iter().filter(|call| call.effect != Effect::Read && may_have_run(&call.status)) {
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
            let never_sent = [CallFault::CapExhausted, CallFault::UpstreamUnavailable, CallFault::Starting];
            !never_sent.contains(reason)
        }
    }
}

/// The line for an error text; `None` when nothing can have changed.
pub fn line(calls: &[EffectfulCalls<'_>]) -> Option<String> {
    const NAMED: usize = 10;
    if calls.is_empty() {
        return None;
    }
    let mut names: Vec<String> = calls
        .iter()
        .take(NAMED)
        .map(|calls| match calls.count {
            1 => format!("{}.{}", calls.server, calls.tool),
            count => format!("{}.{} x{count}", calls.server, calls.tool),
        })
        .collect();
    if calls.len() > NAMED {
        names.push(format!("… and {} more tools", calls.len() - NAMED));
    }
    Some(format!("calls already made, which are not undone: {}", names.join(", ")))
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
        let text = "calls already made, which are not undone: s.write x2, s.ask";
        assert_eq!(line(&found).as_deref(), Some(text));
        assert_eq!(
            as_json(&found)[1],
            json!({ "server": "s", "tool": "ask", "effect": "unknown", "count": 1 })
        );
        assert_eq!(line(&effectful(&calls[..1])), None);
    }
}
