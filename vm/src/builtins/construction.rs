//! Builtins that build sequences and collections.

use super::Builtin;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[];
