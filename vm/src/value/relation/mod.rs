//! The relations between values.

pub mod equal;
pub mod hash;
pub mod order;
pub(crate) mod sort;
