//! The shape of the context before: a client that runs a program again mostly gives it data under the same names, so they are
//! not read, looked up and allocated each time.
//!
//! Invariant: no program can tell. Keys that are remembered are in no symbol's node that a run has made, a run that uses
//! them is charged as if it had made them, what it finds out about them (their order) is paid for by each run, and they are
//! given up when a run is kept. Between runs they are on no account.

use crate::context::Context;
use crate::json::ObjectShape;
use crate::memory::account;
use crate::value::Value;

/// A shape that is remembered.
#[derive(Default)]
pub(super) struct ContextShape {
    kept: Option<ObjectShape>,
    /// What its keys take is on the account.
    is_charged: bool,
    /// The context that came last had another one.
    missed: bool,
}

impl ContextShape {
    /// What a context of this run is probably like: [`ContextShape::charge`] when it is. None when the run has named
    /// something: keys would have symbols then that are not there after it.
    #[inline]
    pub(super) fn expected(&self, cx: &Context) -> Option<&ObjectShape> {
        self.kept.as_ref().filter(|_| cx.symbols.are_committed())
    }

    /// Remembers the shape of a context for the next run, if that is worth it.
    pub(super) fn remember(&mut self, cx: &Context, json: &str, context: &Value) {
        if self.kept.is_some() && !self.missed {
            // One context of another kind between many does not cost them their shape.
            self.missed = true;
            return;
        }
        self.forget();
        if ObjectShape::may_be_of(json) && cx.symbols.are_committed() {
            self.kept = ObjectShape::of(context);
            self.is_charged = self.kept.is_some();
        }
    }

    /// The run has a context like that.
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

    /// The run has ended, and its context is gone.
    #[inline]
    pub(super) fn end_run(&mut self) {
        if let Some(shape) = &self.kept
            && self.is_charged
        {
            account::release(shape.bytes);
            self.is_charged = false;
        }
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        if let Some(shape) = &self.kept {
            // Dropping them releases what they take.
            if !self.is_charged {
                account::hold(shape.bytes);
            }
            *self = ContextShape::default();
        }
    }
}
