//! Builtins on numbers (arithmetic, bits, parsing, Java's `Math`), and those that compare values of any type.

pub(crate) mod bits;
pub(crate) mod comparison;
pub(crate) mod convert;
pub(crate) mod java_math;
pub(super) mod math;
