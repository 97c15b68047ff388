//! Measures how much smaller a program's answer is than the tool results that the program received, for the
//! `ptc_metrics` block of debug answers.
//!
//! Bytes are exact: tool-result payload as received, counted once. Tokens are estimates.

use super::outcome::Outcome;
use super::totals::CallTotals;
use serde::Serialize;

const CONSERVATIVE_NOTE: &str = "Bytes of successful upstream tool results that the program collapsed into its \
     answer. Not tokens saved, and not the size of the MCP response.";
const OPTIMISTIC_NOTE: &str =
    "What a workflow without programs would have cost cannot be measured from here.";

/// The block `ptc_metrics` of debug answers and debug records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PtcMetrics {
    /// Version of this shape.
    pub schema_version: u32,
    /// Bytes of the `result` field; 0 on error.
    pub final_result_bytes: u64,
    /// Bytes of all printed lines.
    pub prints_bytes: u64,
    /// Upstream calls of every outcome.
    pub upstream_call_count: u64,
    /// Calls that succeeded.
    pub upstream_ok_count: u64,
    /// Calls that failed, except for oversized answers.
    pub upstream_error_count: u64,
    /// Calls with an oversized answer.
    pub upstream_oversize_count: u64,
    /// Payload of the calls that succeeded: the numerator of the ratio.
    pub upstream_result_bytes: u64,
    /// Payload of the calls that failed, except for oversized answers.
    pub upstream_error_bytes: u64,
    /// Bytes of the answers that were too large.
    pub upstream_oversize_bytes: u64,
    /// `upstream_result_bytes / final_result_bytes` to two places; null when either is 0.
    pub payload_reduction_ratio: Option<f64>,
    /// `final_result_bytes` divided by four.
    pub estimated_final_result_tokens: u64,
    /// `upstream_result_bytes` divided by four.
    pub estimated_upstream_result_tokens: u64,
    /// How tokens were estimated.
    pub token_estimate_method: &'static str,
    /// What the ratio is measured against.
    pub baseline: Baseline,
}

/// The two baselines of the ratio; only the first can be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// The measured baseline.
    pub conservative: ConservativeBaseline,
    /// The baseline that cannot be measured.
    pub optimistic: OptimisticBaseline,
}

/// Successful upstream results only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConservativeBaseline {
    /// `successful_upstream_results_only`.
    pub name: &'static str,
    /// Same as `upstream_result_bytes`.
    pub bytes: u64,
    /// Same as `payload_reduction_ratio`.
    pub ratio: Option<f64>,
    /// Its meaning.
    pub note: &'static str,
}

/// A workflow without programs; never available.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptimisticBaseline {
    /// `no_ptc_direct_llm_workflow`.
    pub name: &'static str,
    /// Always false.
    pub available: bool,
    /// Why it is not available.
    pub note: &'static str,
}

impl PtcMetrics {
    /// The block for one run. `final_result_bytes`: the bytes of the `result` field as sent; it counts as 0
    /// when the run failed.
    pub fn from_outcome(outcome: &Outcome, final_result_bytes: u64) -> PtcMetrics {
        let final_bytes = if outcome.result.is_ok() { final_result_bytes } else { 0 };
        let prints = outcome.prints.iter().map(|line| line.len() as u64).sum();
        PtcMetrics::from_parts(&outcome.call_totals, final_bytes, prints)
    }

    /// The block from its components.
    pub fn from_parts(calls: &CallTotals, final_bytes: u64, prints_bytes: u64) -> PtcMetrics {
        let CallTotals { ok, failed, oversize, refused: _ } = calls;
        let ratio = (ok.bytes > 0 && final_bytes > 0).then(|| round2(ok.bytes as f64 / final_bytes as f64));
        PtcMetrics {
            schema_version: 1,
            final_result_bytes: final_bytes,
            prints_bytes,
            upstream_call_count: calls.count(),
            upstream_ok_count: ok.count,
            upstream_error_count: failed.count,
            upstream_oversize_count: oversize.count,
            upstream_result_bytes: ok.bytes,
            upstream_error_bytes: failed.bytes,
            upstream_oversize_bytes: oversize.bytes,
            payload_reduction_ratio: ratio,
            estimated_final_result_tokens: final_bytes.div_ceil(4),
            estimated_upstream_result_tokens: ok.bytes.div_ceil(4),
            token_estimate_method: "utf8_bytes_div_4",
            baseline: Baseline {
                conservative: ConservativeBaseline {
                    name: "successful_upstream_results_only",
                    bytes: ok.bytes,
                    ratio,
                    note: CONSERVATIVE_NOTE,
                },
                optimistic: OptimisticBaseline {
                    name: "no_ptc_direct_llm_workflow",
                    available: false,
                    note: OPTIMISTIC_NOTE,
                },
            },
        }
    }
}

fn round2(ratio: f64) -> f64 {
    (ratio * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::{CallFault, CallRecord, CallStatus, Effect};
    use std::time::Duration;

    fn call(status: CallStatus, bytes: Option<u64>) -> CallRecord {
        CallRecord {
            server: "s".into(),
            tool: "t".into(),
            status,
            begun: Duration::ZERO,
            duration: Duration::ZERO,
            result_bytes: bytes,
            effect: Effect::Unknown,
            arguments_hash: None,
            cached: false,
            ruling: None,
            number: None,
            place: None,
        }
    }

    fn error(reason: CallFault) -> CallStatus {
        CallStatus::Error { reason, error: "x".into() }
    }

    #[test]
    fn the_sample_of_the_documentation() {
        let calls =
            [call(CallStatus::Ok, Some(48_122)), call(CallStatus::Ok, Some(0)), call(CallStatus::Ok, None)];
        let metrics = PtcMetrics::from_parts(&calls.iter().collect(), 812, 0);
        assert_eq!(metrics.payload_reduction_ratio, Some(59.26));
        assert_eq!(metrics.estimated_final_result_tokens, 203);
        assert_eq!(metrics.estimated_upstream_result_tokens, 12_031);
        assert_eq!((metrics.upstream_call_count, metrics.upstream_ok_count), (3, 3));
        assert_eq!(metrics.baseline.conservative.ratio, Some(59.26));
    }

    #[test]
    fn failed_and_oversize_calls_never_count_for_the_ratio() {
        let calls = [
            call(error(CallFault::ToolError), Some(10)),
            call(error(CallFault::ResponseTooLarge), Some(5_000_000)),
            call(error(CallFault::Timeout), None),
        ];
        let metrics = PtcMetrics::from_parts(&calls.iter().collect(), 100, 7);
        assert_eq!(metrics.payload_reduction_ratio, None);
        assert_eq!((metrics.upstream_error_count, metrics.upstream_error_bytes), (2, 10));
        assert_eq!((metrics.upstream_oversize_count, metrics.upstream_oversize_bytes), (1, 5_000_000));
        assert_eq!(metrics.upstream_result_bytes, 0);
    }
}
