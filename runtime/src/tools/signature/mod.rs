//! Schemas as signatures, and as arguments to begin with.
//!
//! # Layout
//! - `typed`: signatures; `example`: arguments
//! - `variants`: a schema taken apart into alternatives; `alternative`: one of them

pub(super) mod alternative;
pub(super) mod example;
pub(crate) mod typed;
pub(super) mod variants;
