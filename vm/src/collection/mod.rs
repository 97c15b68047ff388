//! What builtins and machines do with collections: as sequences, by key, adding to them. Whatever grows or is looked at
//! pays (see [`crate::value::build`]).

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

pub(crate) mod adding;
pub(crate) mod lookup;
pub(crate) mod seq;
