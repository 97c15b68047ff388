//! Builtins that call functions or make them.

pub(crate) mod callbacks;
pub(crate) mod combinators;
pub(crate) mod endless;
pub(crate) mod transducers;
pub(crate) mod walks;
