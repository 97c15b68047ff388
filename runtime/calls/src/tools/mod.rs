//! Keeps a catalog of the tools that programs can call, to describe these tools to models and people, and to check the
//! arguments of calls.
//!
//! # Layout
//! - `tool`: one server's tools, and why some of them may not be called; `catalog`: the tools of all
//!   servers; `glob`: patterns for names
//! - `signature`: schemas as signatures and example arguments; `shape`: observed shapes of undeclared results
//! - `target`: the target of a call: a tool, a resource, a prompt or a list
//! - `qualified`: names of tools with their servers; `key`: names of properties as programs write them
//! - `check`: checks JSON arguments against their schema
//! - `call_messages`: texts about wrong calls; the same for literal calls, computed ones and JSON callers
//! - `offers`: resources and prompts of a server; [`text`]: tools as text; `sentence`: the first sentence of a text
//! - [`visible`]: makes invisible characters of servers' texts visible; `suggest`: the nearest known name

pub mod call_messages;
mod catalog;
mod check;
pub(crate) mod glob;
mod key;
mod offers;
mod qualified;
mod sentence;
pub mod shape;
pub(crate) mod signature;
pub mod suggest;
mod target;
pub mod text;
mod tool;
pub mod visible;

pub use signature::typed;

pub use call_messages::{Notation, WrongCall};
pub use catalog::{Catalog, CatalogServer, LookUp, ServerNames, SharedCatalog, SnapshotMode};
pub use check::check_arguments;
pub use check::check_value;
pub use check::is_small_tree;
pub use glob::glob;
pub use offers::Offers;
pub use qualified::qualified_name;
pub use shape::SeenResults;
pub use signature::python::{PythonSignature, python_name};
pub use suggest::nearest;
pub use target::{CallTarget, ListKind};
pub use tool::{
    Annotations, HIDDEN_ARGUMENTS, Listed, OWN_FACTS, Refusal, TaskSupport, ToolList, UpstreamTool,
};
pub use visible::ServerText;

/// Server name of the host's tools: the namespace in which programs call them.
pub const HOST: &str = "tool";
