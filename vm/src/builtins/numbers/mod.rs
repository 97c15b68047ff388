//! Builtins on numbers, and comparison of values.

pub(crate) mod bits;
pub(crate) mod comparison;
pub(crate) mod convert;
pub(crate) mod java_math;
pub(super) mod math;
