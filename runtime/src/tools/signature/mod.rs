//! Turns schemas into signatures and example arguments.
//!
//! # Layout
//! - `typed`: signatures; `example`: example arguments; `docstring`: parameters in descriptions
//! - `facts`: constraints of values; `types`: schemas that are written by name
//! - `variants`: splits a schema into alternatives; `alternative`: one of them

pub(super) mod alternative;
pub(super) mod docstring;
pub(super) mod example;
mod facts;
pub(crate) mod typed;
mod types;
pub(super) mod variants;
