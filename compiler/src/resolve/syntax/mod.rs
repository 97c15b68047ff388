//! The special forms, one module for each family.

pub(crate) mod binding;
pub(crate) mod conditional;
pub(crate) mod definition;
pub(crate) mod function;
pub(crate) mod host;
pub(crate) mod iteration;
pub(crate) mod letfn;
pub(crate) mod literal_call;
pub(crate) mod pattern;
pub(crate) mod threading;
