//! Defines the names that PTC-Lisp reserves in the namespace `tool` (`tool/call`, `tool/call!`, `tool/servers`), and
//! which builtin each of them runs. Every other `tool/name` is a tool that the host granted.

use super::HostFunction;
use crate::bytecode::Known;

/// A form of the language in the namespace `tool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolForm {
    /// `(tool/call …)`: a tagged result.
    Call,
    /// `(tool/call! …)`: the value; a failed call ends the program.
    CallValue,
    /// `(tool/servers)`.
    Servers,
}

impl ToolForm {
    /// All of them.
    pub const ALL: [ToolForm; 3] = [ToolForm::Call, ToolForm::CallValue, ToolForm::Servers];

    /// The form with this name, without its namespace.
    pub fn find(name: &str) -> Option<ToolForm> {
        ToolForm::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The name without its namespace.
    pub fn name(self) -> &'static str {
        self.qualified_name().trim_start_matches("tool/")
    }

    /// The name in programs.
    pub const fn qualified_name(self) -> &'static str {
        match self {
            ToolForm::Call => "tool/call",
            ToolForm::CallValue => "tool/call!",
            ToolForm::Servers => "tool/servers",
        }
    }

    /// True if it calls a tool of an upstream.
    pub const fn calls_upstream(self) -> bool {
        matches!(self, ToolForm::Call | ToolForm::CallValue)
    }

    /// The builtin that a call of it runs.
    pub const fn builtin(self) -> Known {
        match self {
            ToolForm::Call => Known::ToolCall,
            ToolForm::CallValue => Known::ToolCallValue,
            ToolForm::Servers => Known::ToolServers,
        }
    }

    pub(crate) const fn host_function(self) -> HostFunction {
        match self {
            ToolForm::Call => HostFunction::ToolCall,
            ToolForm::CallValue => HostFunction::ToolCallValue,
            ToolForm::Servers => HostFunction::Servers,
        }
    }
}
