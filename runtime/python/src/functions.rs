//! The tools as functions of Python: `mcp__<server>__<tool>`.

use ptc_runtime::tools::Catalog;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a function leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Configured name of the upstream.
    pub server: Arc<str>,
    /// Tool name as the upstream lists it.
    pub tool: Arc<str>,
}

/// A function as a script's process is told of it.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters in the order of the schema, required ones first.
    pub params: Vec<String>,
    /// Its docstring.
    pub doc: String,
    #[serde(skip)]
    target: Target,
}

/// All functions, as one catalog has them.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_name: BTreeMap<String, Function>,
    /// Names that two tools would have, and names of tools that policy refuses.
    unavailable: Vec<String>,
}

/// The part of a function's name that stands for a server or a tool: what no name of Python can hold is `_`.
pub fn normalised(name: &str) -> String {
    name.chars().map(|c| if c == '_' || c.is_alphanumeric() { c } else { '_' }).collect()
}

/// The name of a tool's function.
pub fn function_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", normalised(server), normalised(tool))
}

impl Functions {
    /// The functions of a catalog. Two tools of one name are both left out.
    pub fn of(catalog: &Catalog) -> Functions {
        let mut functions = Functions::default();
        for server in catalog.servers() {
            for tool in server.tools.iter().flat_map(|tools| tools.iter()) {
                let name = function_name(&server.name, &tool.name);
                let mut params: Vec<String> = tool.required().map(str::to_owned).collect();
                let declared = tool.input_schema["properties"].as_object();
                let others = declared.into_iter().flat_map(|all| all.keys());
                let others: Vec<String> = others.filter(|name| !params.contains(name)).cloned().collect();
                params.extend(others);
                let doc = tool.description.clone().unwrap_or_default();
                let target = Target { server: server.name.clone(), tool: tool.name.clone() };
                let function = Function { name: name.clone(), params, doc, target };
                if functions.by_name.insert(name.clone(), function).is_some() {
                    functions.unavailable.push(name);
                }
            }
        }
        for name in &functions.unavailable {
            functions.by_name.remove(name);
        }
        functions
    }

    /// Where a function leads.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.by_name.get(name).map(|function| &function.target)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The functions that a script may mean: those whose name stands in it.
    pub fn named_in<'f>(&'f self, code: &'f str) -> impl Iterator<Item = &'f Function> {
        self.by_name.values().filter(move |function| code.contains(&function.name))
    }

    /// Names that a script may mean and not use.
    pub fn unavailable_in<'f>(&'f self, code: &'f str) -> impl Iterator<Item = &'f str> {
        self.unavailable.iter().map(String::as_str).filter(move |name| code.contains(name))
    }
}
