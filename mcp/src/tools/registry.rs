//! All tools of the server.

use super::lisp_eval::{Evaluator, LispEval};
use super::{Definition, Facts, Tool};
use ptc_runtime::limits::Limits;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;
use std::sync::Arc;

/// The tools, in the order of `tools/list`. Of two with one name the first is meant.
#[derive(Default)]
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
}

impl Registry {
    /// What `ptc serve` offers: one line a tool.
    pub fn of_server(evaluator: Arc<dyn Evaluator>, limits: Limits) -> Registry {
        Registry::default()
            // A line a tool.
            .with(LispEval::new(evaluator, limits))
    }

    /// These tools and another one.
    pub fn with(mut self, tool: impl Tool + 'static) -> Registry {
        self.tools.push(Box::new(tool));
        self
    }

    /// These tools and others.
    pub fn with_all(mut self, tools: Vec<Box<dyn Tool>>) -> Registry {
        self.tools.extend(tools);
        self
    }

    /// Only the tools of these names.
    pub fn only(mut self, names: &[String]) -> Registry {
        self.tools.retain(|tool| names.iter().any(|name| name == tool.name()));
        self
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The JSON array of `tools/list`.
    ///
    /// # Errors
    /// A definition that is no JSON.
    pub fn list(&self, facts: &Facts) -> serde_json::Result<Box<RawValue>> {
        #[derive(Serialize)]
        struct ToolEntry<'t> {
            name: &'t str,
            #[serde(flatten)]
            definition: Definition,
        }
        let entry = |tool: &dyn Tool| {
            to_raw_value(&ToolEntry { name: tool.name(), definition: tool.definition(facts) })
        };
        to_raw_value(&self.tools.iter().map(|tool| entry(&**tool)).collect::<serde_json::Result<Vec<_>>>()?)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.names()).finish()
    }
}
