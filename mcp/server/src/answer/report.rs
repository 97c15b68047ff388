//! Serializes errors and warnings of a program as JSON. The format is stable: `ptc check --output json`, `ptc eval
//! --output json` and debug answers share it.

use ptc_calls::outcome::{Location, Report};
use serde_json::{Map, Value, json};

/// One error or warning:
///
/// ```json
/// {"severity": "error", "reason": "unbound_var", "message": "Undefined variable: fooo",
///  "line": 1, "column": 4, "end_line": 1, "end_column": 8, "source": "fooo",
///  "hints": ["Did you mean `foo`?"]}
/// ```
///
/// `line`, `column`, `end_line` and `end_column` count from 1. They are left out for an error without a
/// location. Some faults have `types` (of the values that do not fit) or `calls` (`{"function", "line",
/// "column", "source"}`, the innermost first).
pub fn report_json(report: &Report) -> Value {
    let mut map = Map::new();
    map.insert("severity".into(), report.severity.name().into());
    map.insert("reason".into(), report.reason.raw().into());
    map.insert("message".into(), report.message.as_str().into());
    if let Some(Location { start, end, excerpt, .. }) = &report.location {
        map.insert("line".into(), start.line.into());
        map.insert("column".into(), start.column.into());
        map.insert("end_line".into(), end.line.into());
        map.insert("end_column".into(), end.column.into());
        map.insert("source".into(), excerpt.as_str().into());
    }
    if !report.types.is_empty() {
        map.insert("types".into(), report.types.clone().into());
    }
    if !report.calls.is_empty() {
        let calls: Vec<Value> = report
            .calls
            .iter()
            .map(|call| {
                let Location { start, excerpt, .. } = &call.location;
                json!({ "function": call.function, "line": start.line, "column": start.column, "source": excerpt })
            })
            .collect();
        map.insert("calls".into(), calls.into());
    }
    map.insert("hints".into(), report.hints.clone().into());
    map.into()
}

/// Several errors and warnings.
pub fn reports_json(reports: &[Report]) -> Value {
    reports.iter().map(report_json).collect()
}
