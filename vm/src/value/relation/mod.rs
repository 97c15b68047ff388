//! Compares values: equality, hashes, the total order, and sorting by it.

pub mod equal;
pub mod hash;
pub mod order;
pub(crate) mod sort;
pub(crate) mod text_hash;
