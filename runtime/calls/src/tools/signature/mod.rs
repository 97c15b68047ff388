//! Renders the JSON Schema of a tool as a compact signature and example arguments, for models and people that write
//! programs.
//!
//! # Layout
//! - `typed`: signatures; `example`: example arguments; `docstring`: parameters in descriptions
//! - `python`: signatures in the notation of Python; `arguments`: merged arguments and their descriptions
//! - `detail`: how much a signature says; `facts`: constraints of values; `said`: what only descriptions say
//! - `types`: schemas that are written by name; `type_uses`: how often, and which contain themselves
//! - `variants`: splits a schema into alternatives; `alternative`: one of them

pub(super) mod alternative;
pub(super) mod arguments;
mod detail;
pub(super) mod docstring;
pub(super) mod example;
mod facts;
pub(super) mod python;
mod said;
#[cfg(test)]
mod tests;
mod type_uses;
pub mod typed;
mod types;
pub(super) mod variants;
