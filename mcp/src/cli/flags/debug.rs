//! Flags that choose how the server records tool calls: by a debug tool, trace files, a log of session programs, or
//! OpenTelemetry export. The recorder is set up from them here.

use super::limits::{FlagTable, LimitFlags};
use super::variables;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::limit_table;
use ptc_server::console::Abort;
use ptc_server::observe::counts::CallCounts;
use ptc_server::observe::otlp::OtlpOptions;
use ptc_server::observe::payload::PayloadPolicy;
use ptc_server::observe::{CallRecorder, RecordOptions};
use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

limit_table! {
    /// The limits of records.
    RecordLimits;
    /// Calls that lisp_debug remembers, from 10 to 5000.
    ring_size: Positive = 500, "debug-ring-size", "older ones go";
    /// Longest answer of lisp_debug, all of its message; at least 4k.
    response_bytes: Bytes = 65_536, "max-debug-response-bytes", "parts are left out";
    /// Traces in the folder of --trace-dir.
    traces: Positive = 1_000, "trace-max-files", "the oldest go";
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
    /// Write a file for each call into this folder; `ptc trace show` draws them
    #[arg(long, value_name = "DIR")]
    trace_dir: Option<PathBuf>,
    /// Write a line for each program of a session, in a file a server, into this folder
    #[arg(long, value_name = "DIR")]
    turn_log_dir: Option<PathBuf>,
    /// Export spans and metrics to this OpenTelemetry collector, such as http://127.0.0.1:4318 [default: what the
    /// variable OTEL_EXPORTER_OTLP_ENDPOINT says]
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    #[command(flatten)]
    limits: LimitFlags<RecordLimits>,
}

/// The recorder that the flags ask for.
pub struct Recording {
    /// Records calls.
    pub recorder: Arc<CallRecorder>,
    /// Most bytes of an answer of `lisp_debug`.
    pub response_bytes: usize,
}

impl DebugFlags {
    /// Whether `lisp_debug` is enabled.
    pub fn wants_tool(&self) -> Result<bool, Abort> {
        variables::switch(self.debug_tool, "debug-tool")
    }

    /// Starts to record calls, if the flags ask for it.
    pub fn recording(
        &self,
        with_tool: bool,
        totals: Option<CallCounts>,
        page: bool,
        secrets: &SecretRegistry,
    ) -> Result<Option<Recording>, Abort> {
        let trace_folder = folder("trace-dir", self.trace_dir.as_ref())?;
        let turn_log_folder = folder("turn-log-dir", self.turn_log_dir.as_ref())?;
        let limits = self.limits.limits(false)?;
        let policy = variables::given_or_read(self.trace_payloads, "trace-payloads", variables::word)?;
        let ring_size = within("debug-ring-size", limits.ring_size, 10, 5_000);
        let response_bytes =
            within("max-debug-response-bytes", limits.response_bytes, 4_096, usize::MAX as u64);
        let otlp = variables::given_or_read(self.otlp.clone(), "otlp", variables::text)?;
        let otlp = OtlpOptions::read(otlp).map_err(|error| Abort::usage(format!("--otlp: {error}")))?;
        if !with_tool
            && otlp.is_none()
            && trace_folder.is_none()
            && turn_log_folder.is_none()
            && totals.is_none()
            && !page
        {
            return Ok(None);
        }
        let options = RecordOptions {
            // Only the tool and the page read the ring.
            ring_size: if with_tool || page { ring_size } else { 1 },
            policy: policy.unwrap_or_default(),
            trace_folder,
            most_traces: usize::try_from(limits.traces).unwrap_or(usize::MAX),
            turn_log_folder,
            totals,
            otlp,
            page,
        };
        let recorder = Arc::new(CallRecorder::new(options, secrets.clone())?);
        Ok(Some(Recording { recorder, response_bytes }))
    }
}

/// Makes the folder of a flag. A folder that cannot be made is not fatal: lost records are counted.
fn folder(flag: &'static str, given: Option<&PathBuf>) -> Result<Option<PathBuf>, Abort> {
    let folder = variables::given_or_read(given.cloned(), flag, variables::path)?;
    if let Some(folder) = &folder
        && let Err(error) = make_private(folder)
    {
        tracing::warn!(flag, folder = %folder.display(), %error, "the folder cannot be made");
    }
    Ok(folder)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Clamps a number to its bounds, and logs it when it was outside.
fn within(flag: &'static str, number: u64, least: u64, most: u64) -> usize {
    let clamped = number.clamp(least, most);
    if clamped != number {
        tracing::warn!(flag, number, clamped, "out of bounds");
    }
    usize::try_from(clamped).unwrap_or(usize::MAX)
}
