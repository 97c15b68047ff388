//! What a call asks a server for: a tool, or one of the other things that servers have.

use super::tool::{Annotations, UpstreamTool};
use serde_json::Value;
use std::sync::Arc;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTarget {
    /// A tool, by its name as the upstream lists it.
    Tool(Arc<str>),
    /// All of something else that the server has.
    List(ListKind),
    /// What a resource holds, by its address.
    Resource(Arc<str>),
    /// A prompt, by its name.
    Prompt(Arc<str>),
}

/// What can be listed beside tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Resources.
    Resources,
    /// Templates of addresses of resources.
    Templates,
    /// Prompts.
    Prompts,
}

impl ListKind {
    /// The method, and the member of its result that is the list.
    pub const fn parts(self) -> (&'static str, &'static str) {
        match self {
            ListKind::Resources => ("resources/list", "resources"),
            ListKind::Templates => ("resources/templates/list", "resourceTemplates"),
            ListKind::Prompts => ("prompts/list", "prompts"),
        }
    }

    /// The form of programs that asks for it.
    pub(crate) const fn form(self) -> &'static str {
        match self {
            ListKind::Resources => "resource/list",
            ListKind::Templates => "resource/templates",
            ListKind::Prompts => "prompt/list",
        }
    }
}

impl CallTarget {
    /// The methods of everything that is no tool.
    pub(crate) const METHODS: [&'static str; 5] = [
        ListKind::Resources.parts().0,
        ListKind::Templates.parts().0,
        ListKind::Prompts.parts().0,
        "resources/read",
        "prompts/get",
    ];

    /// The method of MCP.
    pub const fn method(&self) -> &'static str {
        match self {
            CallTarget::Tool(_) => "tools/call",
            CallTarget::List(kind) => kind.parts().0,
            CallTarget::Resource(_) => "resources/read",
            CallTarget::Prompt(_) => "prompts/get",
        }
    }

    /// The name or address of what is asked for; nothing for a list.
    pub fn subject(&self) -> &str {
        match self {
            CallTarget::Tool(subject) | CallTarget::Resource(subject) | CallTarget::Prompt(subject) => {
                subject
            }
            CallTarget::List(_) => "",
        }
    }

    /// What the ledger and the configuration call it: the tool by its name, anything else by its method.
    pub fn label(&self) -> &str {
        match self {
            CallTarget::Tool(name) => name,
            other => other.method(),
        }
    }

    /// [`CallTarget::label`] as a record shares it.
    pub(crate) fn shared_label(&self) -> Arc<str> {
        match self {
            CallTarget::Tool(name) => name.clone(),
            other => other.method().into(),
        }
    }

    /// What is known about a call of it, if it is no tool: it reads, and its arguments are as they are.
    pub(crate) fn as_tool(&self) -> UpstreamTool {
        UpstreamTool {
            name: self.label().into(),
            title: None,
            description: None,
            input_schema: Value::Null,
            output_schema: None,
            annotations: Annotations { read_only_hint: Some(true), ..Annotations::default() },
            meta: None,
        }
    }
}
