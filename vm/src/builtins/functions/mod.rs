//! Builtins that call functions or make them: callbacks, combinators, transducers, endless sequences, and walks through
//! nested collections.

pub(crate) mod callbacks;
pub(crate) mod combinators;
pub(crate) mod endless;
pub(crate) mod transducers;
pub(crate) mod walks;
