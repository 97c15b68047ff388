//! PTC-Lisp programs.
//!
//! # Layout
//! - `driver`: one program, slice by slice; `host_call`, `tool_call`: what it asks for; `rendering`: its end
//! - [`discovery`]: what programs can ask about names, servers and tools
//! - `inline`: tiny programs on their caller's thread; `program_cache`: compiled programs by source

pub mod discovery;
pub(crate) mod driver;
mod host_call;
pub(crate) mod inline;
pub(crate) mod program_cache;
pub(crate) mod rendering;
pub(crate) mod tool_call;
