//! Classifies the keys in JSON that ptc writes (MCP messages, reports, traces), so that secrets are redacted in text
//! from outside but protocol members stay as they are.
//!
//! A key that is missing here cannot leak: its name and everything below it count as foreign text.

use ptc_base::secrets::{DocumentShape, KeyClass};

/// A list of keys.
macro_rules! keys {
    ($($key:ident)*) => { &[$(stringify!($key)),*] };
}

/// Messages of the Model Context Protocol.
pub const MCP: DocumentShape = DocumentShape {
    keys: &[
        (
            KeyClass::Verbatim,
            keys![
                // Echoed as received.
                id progressToken _meta
                // Constant.
                serverInfo capabilities notifications annotations inputSchema outputSchema
                // Our numbers under our names.
                usage ptc_metrics
            ],
        ),
        (
            KeyClass::Words,
            keys![
                jsonrpc method type resultType protocolVersion supportedVersions supported
                cacheScope ttlMs isError name title level logger status reason error_kind effect
                code
            ],
        ),
        (
            KeyClass::Fields,
            keys![
                result error params message data requested tools description instructions content
                text structuredContent feedback prints prints_truncated prints_hint truncated line
                column value_bytes value_hint validated_bytes calls_made count upstream_calls
                upstream_calls_total server tool duration_ms result_bytes oversize progress fuel
            ],
        ),
        (KeyClass::Data, keys![value validated]),
    ],
    unknown: KeyClass::Data,
};

/// Reports of commands (`--output json`), answers of `ptc batch`, and log records.
pub const REPORT: DocumentShape = DocumentShape {
    keys: &[
        (KeyClass::Verbatim, keys![id usage ptc_metrics timestamp]),
        (KeyClass::Words, keys![ok status state effect severity level check host fate types target]),
        (
            KeyClass::Fields,
            keys![
                value prints error message reason notes diagnostics line column end_line end_column
                source hints calls function upstream_calls server tool duration_ms result_bytes
                oversize file files path servers name description start_ms server_info protocol
                tools configuration findings detail remedy command as written upstream retry_ms
                suppressed bytes
            ],
        ),
        (KeyClass::Data, keys![json input_schema document]),
    ],
    unknown: KeyClass::Data,
};

/// Lines of traces and of turn logs.
pub const TRACE: DocumentShape = DocumentShape {
    keys: &[
        (KeyClass::Verbatim, keys![timestamp measurements trace_id seq schema_version sha256 args_hash]),
        (
            KeyClass::Words,
            keys![
                event trace_kind producer payload_policy protocol_version status effect driver
                outcome tool_name
            ],
        ),
        (
            KeyClass::Fields,
            keys![
                metadata data request_id trace_label program_bytes context_bytes signature_present
                server tool reason message error is_error duration_ms result prints count items
                bytes preview session_id turn attempt committed program raw_response result_preview
                memory_diff changed_keys tool_calls limits_hit preludes fail turn_type query
            ],
        ),
        (KeyClass::Data, keys![context values]),
    ],
    unknown: KeyClass::Data,
};
