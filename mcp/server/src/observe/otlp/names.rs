//! Defines in one place the names of exported OpenTelemetry attributes and duration metrics, which may change because
//! their conventions are still in development. The buckets of the duration histograms are here too.
//!
//! `mcp.*`, `gen_ai.*`, `jsonrpc.*` and `error.*` are those of the OpenTelemetry semantic conventions for
//! MCP and generative AI (<https://github.com/open-telemetry/semantic-conventions-genai>). `ptc.*` are our own.

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $text;)*
    };
}

keys! {
    /// The method of MCP.
    METHOD = "mcp.method.name";
    /// The revision of MCP that the client speaks.
    PROTOCOL = "mcp.protocol.version";
    /// Id of the request, as JSON.
    REQUEST_ID = "jsonrpc.request.id";
    /// Name of the tool.
    TOOL = "gen_ai.tool.name";
    /// `execute_tool`.
    OPERATION = "gen_ai.operation.name";
    /// Arguments of the tool; only where payloads are recorded in full.
    ARGUMENTS = "gen_ai.tool.call.arguments";
    /// The reason of a failure.
    ERROR = "error.type";
    /// Configured name of the upstream.
    UPSTREAM = "ptc.upstream";
    /// What the call may have changed.
    EFFECT = "ptc.effect";
    /// The answer was cached.
    CACHED = "ptc.cached";
    /// The rule that decided about the call.
    RULE = "ptc.policy.rule";
    /// What it decided.
    VERDICT = "ptc.policy.verdict";
    /// Fuel of the program.
    FUEL = "ptc.fuel";
    /// Peak memory of the program, in bytes.
    PEAK_BYTES = "ptc.peak_bytes";
    /// SHA-256 of the program, in hexadecimal.
    PROGRAM = "ptc.program.sha256";
    /// Bytes that came from upstreams.
    PAYLOAD_IN = "ptc.payload.in";
    /// Bytes of the answer.
    PAYLOAD_OUT = "ptc.payload.out";
    /// Calls that are in the run's totals and have no span, since the records of a run are bounded.
    CALLS_WITHOUT_SPAN = "ptc.calls_without_span";
}

/// Duration of tool calls that this server answers.
pub(super) const SERVER_DURATION: &str = "mcp.server.operation.duration";

/// Duration of calls that programs make.
pub(super) const CLIENT_DURATION: &str = "mcp.client.operation.duration";

/// Bounds of the buckets of durations, in seconds, by the conventions.
pub(super) const DURATION_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
