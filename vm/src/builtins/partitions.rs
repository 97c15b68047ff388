//! Builtins that cut, thin out or recombine sequences.

use super::Builtin;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[];
