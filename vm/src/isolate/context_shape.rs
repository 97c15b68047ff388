//! Remembers the shape of the last context: a client that repeats a program mostly passes data with the same names,
//! which then need not be read, looked up and allocated each time.
//!
//! Invariant: programs cannot observe it. Remembered keys are no nodes of symbols that a run has made. A run that
//! uses them is charged as if it had made them. Each run pays for what it finds out about them (their order). They
//! are dropped when a run is committed. Between runs they are on no account.

use crate::context::Context;
use crate::json::ObjectShape;
use crate::memory::account;
use crate::value::Value;

/// A remembered shape.
#[derive(Default)]
pub(super) struct ContextShape {
    kept: Option<ObjectShape>,
    /// The account is charged for its keys.
    is_charged: bool,
    /// The last context had a different shape.
    missed: bool,
}

impl ContextShape {
    /// The probable shape of this run's context; call [`ContextShape::charge`] if it fits. `None` if the run has
    /// interned a name: keys would then have symbols that disappear after the run.
    #[inline]
    pub(super) fn expected(&self, cx: &Context) -> Option<&ObjectShape> {
        self.kept.as_ref().filter(|_| cx.symbols.are_committed())
    }

    /// Remembers the shape of a context for the next run, if that pays off.
    pub(super) fn remember(&mut self, cx: &Context, json: &str, context: &Value) {
        if self.kept.is_some() && !self.missed {
            // A single different context does not replace the shape.
            self.missed = true;
            return;
        }
        self.forget();
        if ObjectShape::may_have_shape(json) && cx.symbols.are_committed() {
            self.kept = ObjectShape::from_value(context);
            self.is_charged = self.kept.is_some();
        }
    }

    /// The run's context has this shape.
    #[inline]
    pub(super) fn charge(&mut self) {
        if let Some(shape) = &self.kept
            && !self.is_charged
        {
            account::charge(shape.bytes);
            self.is_charged = true;
            self.missed = false;
        }
    }

    /// The run has ended and dropped its context.
    #[inline]
    pub(super) fn end_run(&mut self) {
        if let Some(shape) = &self.kept
            && self.is_charged
        {
            account::release(shape.bytes);
            self.is_charged = false;
        }
    }

    /// Drops the shape.
    pub(super) fn forget(&mut self) {
        if let Some(shape) = &self.kept {
            // Dropping the keys releases their charge.
            if !self.is_charged {
                account::hold(shape.bytes);
            }
            *self = ContextShape::default();
        }
    }
}
