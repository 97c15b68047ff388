//! Tools as data: what servers list, what policies leave of that, what schemas expect, and all of it in words.
//!
//! # Layout
//! - `tool`, `policy`: one server's tools, and which of them may be called; `catalog`: those of all servers, and of some
//! - `expectation`: what a schema expects of one value and of the names of a map; `schema`: schemas as words;
//!   `plain`: schemas that name scalars and no more; `signature`: as signatures, and as arguments to begin with;
//!   `seen`: what tools gave that do not say
//! - `target`: what a call asks for, tools and the rest
//! - `qualified`: names of tools beside those of other servers
//! - `check`: arguments that are JSON already, against their schema
//! - `words`: what is wrong with a call; the same for literal calls, computed ones and callers with JSON
//! - [`text`]: tools as text; [`visible`]: text of servers as data; `suggest`: the nearest known name

mod catalog;
mod check;
pub(crate) mod expectation;
mod plain;
mod policy;
mod qualified;
pub(crate) mod schema;
pub(crate) mod seen;
pub(crate) mod signature;
pub(crate) mod suggest;
mod target;
pub mod text;
mod tool;
pub mod visible;
pub(crate) mod words;

#[cfg(feature = "agent")]
pub(crate) use signature::typed;

pub use catalog::{Catalog, CatalogServer, LookUp, ServerNames, SharedCatalog, SnapshotMode};
pub use check::check_arguments;
#[cfg(feature = "agent")]
pub(crate) use check::check_value;
pub(crate) use plain::{PlainArguments, PlainKind};
pub use policy::{NameRule, Refusal, ToolPattern, ToolPolicy};
pub use qualified::qualified_name;
pub use target::{CallTarget, ListKind};
pub use tool::{Annotations, Listed, ToolList, UpstreamTool};
pub use words::{Notation, WrongCall};

/// What tools of the host have in the place of a server's name: the namespace in which programs call them.
pub const HOST: &str = "tool";
