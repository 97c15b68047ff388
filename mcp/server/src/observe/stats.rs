//! Computes statistics over recorded calls: counts, durations, errors, and how much smaller answers were than the data
//! that their programs got from upstream servers.

use super::entry::{CallEntry, timestamp};
use crate::answer::PlannerSummary;
use crate::answer::outcome::{call_fault, millis};
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::outcome::CallRecord;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Number of calls in the list of those that reduced most.
const TOP: usize = 10;

/// Time range of the calls: the ends of the first and the last one.
pub fn window(calls: &[&CallEntry]) -> Value {
    let from = calls.iter().map(|call| call.ended).min();
    let to = calls.iter().map(|call| call.ended).max();
    let shown = |time: Option<SystemTime>| time.map(timestamp);
    json!({ "from": shown(from), "to": shown(to), "calls": calls.len() })
}

/// Counts and durations by tool.
pub fn by_tool(calls: &[&CallEntry]) -> Value {
    let mut tools: BTreeMap<&str, Vec<&CallEntry>> = BTreeMap::new();
    for call in calls {
        tools.entry(&call.tool).or_default().push(call);
    }
    let row = |calls: &[&CallEntry]| {
        let errors = calls.iter().filter(|call| call.is_error).count();
        let mut durations: Vec<u64> = calls.iter().map(|call| millis(call.duration)).collect();
        durations.sort_unstable();
        let rate = errors as f64 / calls.len().max(1) as f64;
        json!({
            "calls": calls.len(), "ok": calls.len() - errors, "error": errors,
            "error_rate": rounded(rate, 1_000.0),
            "duration_ms": {
                "p50": nearest_rank(&durations, 50).unwrap_or(0),
                "p95": nearest_rank(&durations, 95).unwrap_or(0),
                "max": durations.last().copied().unwrap_or(0),
            },
        })
    };
    Value::Object(tools.into_iter().map(|(tool, calls)| (tool.to_owned(), row(&calls))).collect())
}

/// Number of errors by reason.
pub fn errors(calls: &[&CallEntry]) -> Value {
    let failed = calls.iter().filter(|call| call.is_error);
    json!({ "by_reason": counted(failed.filter_map(|call| call.reason.as_deref())) })
}

/// Upstream calls; `None` without any.
pub fn upstream_calls(calls: &[&CallEntry]) -> Option<Value> {
    let all: Vec<&CallRecord> = calls.iter().flat_map(|call| call.calls()).collect();
    if all.is_empty() {
        return None;
    }
    let mut servers: BTreeMap<&str, Vec<&CallRecord>> = BTreeMap::new();
    for call in &all {
        servers.entry(&call.server).or_default().push(call);
    }
    let by_server = servers.into_iter().map(|(server, calls)| (server.to_owned(), tally(&calls).into()));
    let by_server: Map<String, Value> = by_server.collect();
    let mut shown = tally(&all);
    shown.insert("by_server".into(), by_server.into());
    Some(shown.into())
}

fn tally(calls: &[&CallRecord]) -> Map<String, Value> {
    let reasons = || calls.iter().filter_map(|call| call_fault(call)).map(|(reason, _)| reason);
    let mut shown = Map::new();
    shown.insert("total".into(), calls.len().into());
    shown.insert("ok".into(), (calls.len() - reasons().count()).into());
    shown.insert("by_reason".into(), counted(reasons()).into());
    shown
}

/// Ratio of answers to upstream payload; `None` without upstream calls. Null ratios are left out of the
/// percentiles. The weighted ratio is that of the totals.
pub fn payload_reduction(calls: &[&CallEntry]) -> Option<Value> {
    let measured: Vec<(&CallEntry, PtcMetrics)> =
        calls.iter().filter_map(|call| Some((*call, call.metrics()?))).collect();
    if measured.is_empty() {
        return None;
    }
    let sum = |part: fn(&PtcMetrics) -> u64| measured.iter().map(|(_, metrics)| part(metrics)).sum::<u64>();
    let answers = sum(|metrics| metrics.final_result_bytes);
    let results = sum(|metrics| metrics.upstream_result_bytes);
    let mut reducers: Vec<(f64, &CallEntry, &PtcMetrics)> = measured
        .iter()
        .filter_map(|(call, metrics)| Some((metrics.payload_reduction_ratio?, *call, metrics)))
        .collect();
    reducers.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.ended.cmp(&a.1.ended)));
    let ratios: Vec<f64> = reducers.iter().rev().map(|(ratio, ..)| *ratio).collect();
    let weighted = (answers > 0 && results > 0).then(|| rounded(results as f64 / answers as f64, 100.0));
    let top = reducers.iter().take(TOP).map(|(ratio, call, metrics)| {
        json!({
            "request_id": call.request_id, "ts": timestamp(call.ended), "tool": call.tool,
            "final_result_bytes": metrics.final_result_bytes,
            "upstream_result_bytes": metrics.upstream_result_bytes, "ratio": ratio,
        })
    });
    let mut reduction = json!({
        "schema_version": 1,
        "calls_with_metrics": measured.len(),
        "total_final_result_bytes": answers,
        "total_upstream_result_bytes": results,
        "total_upstream_error_bytes": sum(|metrics| metrics.upstream_error_bytes),
        "total_upstream_oversize_bytes": sum(|metrics| metrics.upstream_oversize_bytes),
        "total_upstream_calls": sum(|metrics| metrics.upstream_call_count),
        "reduction_ratio": {
            "p50": nearest_rank(&ratios, 50), "p95": nearest_rank(&ratios, 95),
            "max": ratios.last(), "weighted": weighted,
        },
        "estimated_tokens": {
            "final_result": answers.div_ceil(4), "upstream_result": results.div_ceil(4),
            "method": "utf8_bytes_div_4",
        },
        "top_reducers": top.collect::<Vec<_>>(),
    });
    let planners: Vec<&PlannerSummary> = planners(calls).collect();
    if !planners.is_empty() {
        reduction["agentic_planner"] = planner_totals(&planners);
    }
    Some(reduction)
}

/// Figures of the server's own models; `None` without tasks.
pub fn agentic(calls: &[&CallEntry]) -> Option<Value> {
    let planners: Vec<&PlannerSummary> = planners(calls).collect();
    let sum =
        |part: fn(&PlannerSummary) -> usize| planners.iter().map(|planner| part(planner)).sum::<usize>();
    (!planners.is_empty()).then(|| {
        json!({
            "tasks": planners.len(), "planner_calls": sum(PlannerSummary::calls),
            "planner_errors": sum(|planner| planner.errors), "planner_rejects": sum(PlannerSummary::rejects),
            "retries": sum(PlannerSummary::retries),
        })
    })
}

fn planners<'c>(calls: &[&'c CallEntry]) -> impl Iterator<Item = &'c PlannerSummary> {
    calls.iter().filter_map(|call| call.planner.as_deref())
}

/// Tokens are null unless the model reported them for every request.
fn planner_totals(planners: &[&PlannerSummary]) -> Value {
    let reported: Vec<(u64, u64)> = planners.iter().filter_map(|planner| planner.tokens()).collect();
    let is_known = reported.len() == planners.len();
    let tokens = |part: fn(&(u64, u64)) -> u64| {
        is_known.then(|| reported.iter().map(part).fold(0, u64::saturating_add))
    };
    let sum = |part: fn(&PlannerSummary) -> u64| planners.iter().map(|planner| part(planner)).sum::<u64>();
    json!({
        "tasks": planners.len(), "provider_reported_tasks": reported.len(),
        "total_prompt_tokens": tokens(|(prompt, _)| *prompt),
        "total_completion_tokens": tokens(|(_, completion)| *completion),
        "total_prompt_bytes": sum(|planner| planner.prompt_bytes),
        "total_completion_bytes": sum(|planner| planner.completion_bytes),
        "estimated_total_tokens": sum(PlannerSummary::estimated_tokens),
    })
}

fn counted<'w>(words: impl Iterator<Item = &'w str>) -> Map<String, Value> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    counts.into_iter().map(|(word, count)| (word.to_owned(), count.into())).collect()
}

/// Nearest-rank percentile: the smallest number that is at least as large as `percent` of them.
fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn rounded(number: f64, scale: f64) -> f64 {
    (number * scale).round() / scale
}
