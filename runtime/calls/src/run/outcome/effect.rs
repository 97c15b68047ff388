//! Classifies what a tool may do (read, write, or unknown), for decisions such as whether a call may be repeated.

use ptc_base::named_enum;

named_enum! {
    /// What a tool may do: set with `HostTool::effect`, or read from the annotations of a server.
    pub enum Effect {
        /// It only reads (`readOnlyHint` of MCP), so a call can be made again.
        Read = "read",
        /// It changes something (`destructiveHint` of MCP, or a writing HTTP method).
        Write = "write",
        /// Neither is known. It is handled like [`Effect::Write`] where a call must not be repeated.
        Unknown = "unknown",
    }
}
