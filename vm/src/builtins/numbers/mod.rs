//! Builtins for arithmetic, bit operations, parsing of numbers, Java's `Math`, and the comparison of values of any
//! type.

pub(crate) mod bits;
pub(crate) mod comparison;
pub(crate) mod convert;
pub(crate) mod java_math;
pub(super) mod math;
