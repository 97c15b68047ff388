//! Classifies what a tool may do (read, write, or unknown), for decisions such as whether a call may be repeated.

/// What a tool may do: set with `HostTool::effect`, or read from the annotations of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads (`readOnlyHint` of MCP), so a call can be made again.
    Read,
    /// It changes something (`destructiveHint` of MCP, or a writing HTTP method).
    Write,
    /// Neither is known. It is handled like [`Effect::Write`] where a call must not be repeated.
    Unknown,
}

impl Effect {
    /// The name operators see.
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Unknown => "unknown",
        }
    }
}
