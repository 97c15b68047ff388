//! Defines what a call can request from a server: a tool, a resource, a prompt, a list of resources or prompts, or an
//! MCP request that ptc makes on its own and no program can make.

use super::tool::{Annotations, TaskSupport, UpstreamTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The target of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTarget {
    /// A tool, by its name as the upstream lists it.
    Tool(Arc<str>),
    /// A complete list of another kind.
    List(ListKind),
    /// The content of a resource, by its URI.
    Resource(Arc<str>),
    /// A prompt, by its name.
    Prompt(Arc<str>),
    /// A question of the session itself, by its method. No program asks it.
    Protocol(&'static str),
    /// A question of the session about a task, by its method and the id of the task.
    Task(&'static str, Arc<str>),
}

/// Lists other than that of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    /// Resources.
    Resources,
    /// URI templates of resources.
    Templates,
    /// Prompts.
    Prompts,
}

impl ListKind {
    /// All of them.
    pub const ALL: [ListKind; 3] = [ListKind::Resources, ListKind::Templates, ListKind::Prompts];

    /// The capability of a server that has such lists.
    pub const fn capability(self) -> &'static str {
        match self {
            ListKind::Resources | ListKind::Templates => "resources",
            ListKind::Prompts => "prompts",
        }
    }

    /// The member of an entry that requests name.
    pub(crate) const fn address(self) -> &'static str {
        match self {
            ListKind::Resources => "uri",
            ListKind::Templates => "uriTemplate",
            ListKind::Prompts => "name",
        }
    }

    /// The words for one entry, and for several.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            ListKind::Resources => ("resource", "resources"),
            ListKind::Templates => ("resource template", "resource templates"),
            ListKind::Prompts => ("prompt", "prompts"),
        }
    }

    /// The method, and the member of its result that holds the list.
    pub const fn parts(self) -> (&'static str, &'static str) {
        match self {
            ListKind::Resources => ("resources/list", "resources"),
            ListKind::Templates => ("resources/templates/list", "resourceTemplates"),
            ListKind::Prompts => ("prompts/list", "prompts"),
        }
    }

    /// The form of PTC-Lisp that requests it.
    pub(crate) const fn form(self) -> &'static str {
        match self {
            ListKind::Resources => "resource/list",
            ListKind::Templates => "resource/templates",
            ListKind::Prompts => "prompt/list",
        }
    }
}

impl CallTarget {
    /// The methods of all targets except tools.
    pub(crate) const METHODS: [&'static str; 5] = [
        ListKind::Resources.parts().0,
        ListKind::Templates.parts().0,
        ListKind::Prompts.parts().0,
        "resources/read",
        "prompts/get",
    ];

    /// The MCP method.
    pub const fn method(&self) -> &'static str {
        match self {
            CallTarget::Tool(_) => "tools/call",
            CallTarget::List(kind) => kind.parts().0,
            CallTarget::Resource(_) => "resources/read",
            CallTarget::Prompt(_) => "prompts/get",
            CallTarget::Protocol(method) | CallTarget::Task(method, _) => method,
        }
    }

    /// The name or address of what is asked for, if it has one.
    pub fn subject(&self) -> Option<&str> {
        match self {
            CallTarget::Tool(subject)
            | CallTarget::Resource(subject)
            | CallTarget::Prompt(subject)
            | CallTarget::Task(_, subject) => Some(subject),
            CallTarget::List(_) | CallTarget::Protocol(_) => None,
        }
    }

    /// Its label in ledger and configuration: the name of a tool, or the method.
    pub fn label(&self) -> &str {
        match self {
            CallTarget::Tool(name) => name,
            other => other.method(),
        }
    }

    /// [`CallTarget::label`] as a shared text for records.
    pub fn shared_label(&self) -> Arc<str> {
        match self {
            CallTarget::Tool(name) => name.clone(),
            other => other.method().into(),
        }
    }

    /// The target as a tool, if it is none: it only reads, and its arguments are passed unchanged.
    pub fn as_tool(&self) -> UpstreamTool {
        UpstreamTool {
            name: self.label().into(),
            title: None,
            description: None,
            input_schema: Value::Null,
            output_schema: None,
            annotations: Annotations { read_only_hint: Some(true), ..Annotations::default() },
            meta: None,
            tasks: TaskSupport::Forbidden,
        }
    }
}
