//! Equality and order.

use super::Builtin;

/// The rows of this module.
pub(super) const TABLE: &[Builtin] = &[];
