//! Turns schemas into signatures and example arguments.
//!
//! # Layout
//! - `typed`: signatures; `example`: example arguments
//! - `variants`: splits a schema into alternatives; `alternative`: one of them

pub(super) mod alternative;
pub(super) mod example;
pub(crate) mod typed;
pub(super) mod variants;
