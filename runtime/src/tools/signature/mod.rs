//! Turns schemas into signatures and example arguments.
//!
//! # Layout
//! - `typed`: signatures; `example`: example arguments; `docstring`: parameters in descriptions
//! - `python`: signatures in the notation of Python; `arguments`: merged arguments and their descriptions
//! - `facts`: constraints of values; `types`: schemas that are written by name
//! - `variants`: splits a schema into alternatives; `alternative`: one of them

pub(super) mod alternative;
pub(super) mod arguments;
pub(super) mod docstring;
pub(super) mod example;
mod facts;
pub(super) mod python;
pub(crate) mod typed;
mod types;
pub(super) mod variants;
