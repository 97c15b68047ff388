//! Declares the builtin functions by which a program calls tools, lists the servers, and reads how many tool calls it
//! has left. They are rows of the table of builtins; the host carries them out.

use crate::builtins::{Builtin, Category, HostFunction, host};
use crate::bytecode::Known;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    host("%tool-call", Category::Internal, "0+", "(tool/call {:server s :tool t :args {}})", "Calls a tool of an upstream.", HostFunction::ToolCall).known(Known::ToolCall),
    host("%tool-call!", Category::Internal, "0+", "(tool/call! {:server s :tool t :args {}})", "The value of a tool of an upstream.", HostFunction::ToolCallValue).known(Known::ToolCallValue),
    host("%tool", Category::Internal, "1+", "(tool/name {})", "Calls a tool that the host granted.", HostFunction::Tool).known(Known::GrantedTool),
    host("budget/remaining", Category::Interop, "0", "(budget/remaining)", "A map of what the program may still use: :upstream-calls, the number of tool calls left.", HostFunction::Budget).known(Known::Budget),
    host("%tool-servers", Category::Internal, "0", "(tool/servers)", "The configured upstreams.", HostFunction::Servers).known(Known::ToolServers),
];
