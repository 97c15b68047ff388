//! Holds the embedding application's own tools by name, and gives out a tool's function only for a call that is
//! permitted.

use super::{Function, HostTool};
use crate::policy::Permitted;
use crate::tools::{HOST, UpstreamTool};
use ptc_vm::builtins::ToolForm;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Tools by name.
pub struct GrantedTools(BTreeMap<Arc<str>, Arc<GrantedTool>>);

/// A tool with data that its calls share.
pub struct GrantedTool {
    tool: HostTool,
    listing: Arc<UpstreamTool>,
}

impl GrantedTool {
    /// [`HOST`] as a shared text, for records of calls.
    pub fn host_name() -> &'static Arc<str> {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| HOST.into());
        &NAME
    }

    /// The tool as a server would list it.
    pub fn listing(&self) -> &Arc<UpstreamTool> {
        &self.listing
    }

    /// Time limit of a call, if the tool sets one.
    pub fn timeout(&self) -> Option<Duration> {
        self.tool.timeout
    }

    /// The function itself, for a call that may be made.
    pub fn function(&self, _: &Permitted) -> &Function {
        &*self.tool.function
    }
}

impl GrantedTools {
    /// A table of these tools.
    ///
    /// # Errors
    /// A name that programs cannot write or that is taken; two tools of one name.
    fn new(tools: Vec<HostTool>) -> Result<GrantedTools, String> {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            let name = tool.listing.name.clone();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.*+!?<>=".contains(c);
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) {
                return Err(format!(
                    "tool {name:?}: a name begins with a letter and has letters, digits, _ and - only"
                ));
            }
            if ToolForm::find(&name).is_some() {
                return Err(format!("tool {name:?}: tool/{name} is a form of the language"));
            }
            let listing = Arc::new(tool.listing.clone());
            if by_name.insert(name.clone(), Arc::new(GrantedTool { tool, listing })).is_some() {
                return Err(format!("tool {name:?} is given twice"));
            }
        }
        Ok(GrantedTools(by_name))
    }

    /// A table of these tools. For programs that only read, tools that may change something are left out.
    /// `None` if no tool is left.
    ///
    /// # Errors
    /// As for `GrantedTools::new`.
    pub fn for_programs(
        mut tools: Vec<HostTool>,
        read_only: bool,
    ) -> Result<Option<Arc<GrantedTools>>, String> {
        tools.retain(|tool| tool.is_admitted(read_only));
        (!tools.is_empty()).then(|| GrantedTools::new(tools).map(Arc::new)).transpose()
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<GrantedTool>> {
        self.0.get(name)
    }

    /// The tool of this name, for other tables.
    pub fn tool(&self, name: &str) -> Option<&HostTool> {
        self.0.get(name).map(|granted| &granted.tool)
    }

    /// The names of all, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(|name| &**name).collect()
    }

    /// Names of the private tools, or of those that programs may call, sorted.
    pub fn names_of(&self, are_private: bool) -> Vec<&str> {
        let those = self.0.iter().filter(|(_, granted)| granted.tool.is_private == are_private);
        those.map(|(name, _)| &**name).collect()
    }

    /// Tools that programs may call, in name order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<UpstreamTool>> {
        self.0.values().filter(|granted| !granted.tool.is_private).map(|granted| &granted.listing)
    }
}
