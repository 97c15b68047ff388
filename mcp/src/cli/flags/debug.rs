//! Flags of what the server remembers of calls.

use super::limits::{FlagTable, LimitFlags};
use super::variables;
use crate::console::exit::Abort;
use crate::observe::CallRecorder;
use crate::observe::payload::PayloadPolicy;
use clap::ValueEnum;
use ptc_runtime::limit_table;
use ptc_runtime::secrets::SecretRegistry;
use std::sync::Arc;

limit_table! {
    /// The limits of records.
    RecordLimits;
    /// Calls that lisp_debug remembers, from 10 to 5000.
    ring_size: Positive = 500, "debug-ring-size", "older ones go";
    /// Longest answer of lisp_debug, all of its message; at least 4k.
    response_bytes: Bytes = 65_536, "max-debug-response-bytes", "parts are left out";
}

impl FlagTable for RecordLimits {}

/// Flags of what the server remembers of calls.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Records of calls")]
pub struct DebugFlags {
    /// Offer lisp_debug, a tool that says what the server has been doing
    #[arg(long)]
    debug_tool: bool,
    /// How much records show of programs, contexts and answers [default: summary]
    #[arg(long, value_name = "POLICY", value_enum)]
    trace_payloads: Option<PayloadPolicy>,
    #[command(flatten)]
    limits: LimitFlags<RecordLimits>,
}

/// What was asked for.
pub struct Recording {
    /// Who keeps records.
    pub recorder: Arc<CallRecorder>,
    /// Longest answer of `lisp_debug`.
    pub response_bytes: usize,
}

impl DebugFlags {
    /// True when `lisp_debug` is wanted.
    pub fn wants_tool(&self) -> Result<bool, Abort> {
        Ok(self.debug_tool || variables::read("debug-tool", variables::boolean)?.unwrap_or(false))
    }

    /// Begins to keep records.
    pub fn recording(&self, secrets: &SecretRegistry) -> Result<Recording, Abort> {
        let limits = self.limits.limits(false)?;
        let policy = match self.trace_payloads {
            Some(policy) => Some(policy),
            None => variables::read("trace-payloads", |text| PayloadPolicy::from_str(text, true))?,
        };
        let ring_size = within("debug-ring-size", limits.ring_size, 10, 5_000);
        let response_bytes =
            within("max-debug-response-bytes", limits.response_bytes, 4_096, usize::MAX as u64);
        let recorder = CallRecorder::new(ring_size, policy.unwrap_or_default(), secrets.clone());
        Ok(Recording { recorder: Arc::new(recorder), response_bytes })
    }
}

/// A number within its bounds; the log says when it was not.
fn within(flag: &'static str, number: u64, least: u64, most: u64) -> usize {
    let clamped = number.clamp(least, most);
    if clamped != number {
        tracing::warn!(flag, number, clamped, "out of bounds");
    }
    usize::try_from(clamped).unwrap_or(usize::MAX)
}
