//! Formats what `ptc demo` prints: the program before the run; its answer, calls and totals after it.

use super::{PROGRAM, Sample};
use crate::sample_server::SampleServer;
use ptc_calls::metrics::PtcMetrics;
use ptc_calls::outcome::{CallRecord, CallStatus, Outcome};
use ptc_server::console::Style;
use std::fmt::Write;
use std::time::Duration;

/// Rows of the call table that are printed in full.
const ROWS: usize = 12;

/// Text before the run.
pub fn introduction(style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}\nTwo sample MCP servers run as processes of their own: {} (customers, orders) and {} (tickets).\n\
         Each call takes about {} ms, as a remote one might.\n",
        style.bold("ptc demo"),
        style.cyan("shop"),
        style.cyan("desk"),
        Sample::CALL_TIME.as_millis(),
    );
    let _ = writeln!(text, "{}", style.bold("Program"));
    for line in PROGRAM.lines() {
        let _ = writeln!(text, "  {}", if line.starts_with(';') { style.dim(line) } else { line.to_owned() });
    }
    text
}

/// Text after the run.
pub fn outcome(outcome: &Outcome, style: Style) -> String {
    let mut text = String::new();
    let (answer, bytes) = match &outcome.result {
        Ok(answer) => (one_item_a_line(&answer.text), answer.text_bytes),
        Err(failure) => (failure.compact(), 0),
    };
    let _ = writeln!(text, "{}", style.bold("Answer (all that goes back to the model)"));
    for line in answer.lines() {
        let _ = writeln!(text, "  {}", style.green(line));
    }
    let _ = writeln!(text, "\n{}", style.bold("Calls"));
    let _ = writeln!(text, "  {:<8} {:<16} {:<8} {:>8} {:>10}", "server", "tool", "status", "time", "bytes");
    for call in outcome.upstream_calls.iter().take(ROWS) {
        let _ = writeln!(text, "  {}", row(call));
    }
    let more = outcome.call_totals.count().saturating_sub(ROWS as u64);
    if more > 0 {
        let _ = writeln!(text, "  {}", style.dim(&format!("… and {more} more")));
    }
    let metrics = PtcMetrics::from_outcome(outcome, bytes);
    let serial: Duration = outcome.upstream_calls.iter().map(|call| call.duration).sum();
    let wall = outcome.usage.duration;
    let _ = writeln!(
        text,
        "\n{} calls took {} ms one after the other; together they took {} ms.",
        metrics.upstream_call_count,
        serial.as_millis(),
        wall.as_millis()
    );
    let _ = writeln!(
        text,
        "Upstream payload {} bytes -> answer {} bytes{}",
        grouped(metrics.upstream_result_bytes),
        grouped(metrics.final_result_bytes),
        metrics
            .payload_reduction_ratio
            .map(|ratio| format!(": {} less to read", style.bold(&format!("{ratio:.0} times"))))
            .unwrap_or_default()
    );
    text
}

fn row(call: &CallRecord) -> String {
    let status = match &call.status {
        CallStatus::Ok => "ok",
        CallStatus::Error { reason, .. } => reason.name(),
    };
    let bytes = call.result_bytes.map_or_else(|| "-".into(), grouped);
    let time = format!("{} ms", call.duration.as_millis());
    format!("{:<8} {:<16} {status:<8} {time:>8} {bytes:>10}", call.server, call.tool)
}

/// Breaks the printed vector of maps so that each map has its own line.
fn one_item_a_line(text: &str) -> String {
    text.replace("} {", "}\n {")
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
