//! The keys of the context before: a client that runs a program again mostly gives it data under the same names, so they are
//! not read, looked up and allocated each time.
//!
//! Invariant: no program can tell. No value reaches the keys of a context but through the context itself, whose keys cannot
//! be asked for, only one by one. Between runs they are on no account; a run that uses them is charged as if it had made
//! them.

use crate::context::Context;
use crate::memory::account;
use crate::value::Value;
use crate::value::set::SetNode;
use std::rc::Rc;

/// Keys that are remembered, and what they take.
#[derive(Default)]
pub(super) struct ContextKeys {
    kept: Option<Rc<SetNode>>,
    /// Logical bytes of them that are on nobody else's account.
    bytes: usize,
    /// Those bytes are on the account.
    is_charged: bool,
    /// The context that came last had others.
    missed: bool,
}

/// Longest lists of keys that are remembered.
const MOST: usize = 16;

impl ContextKeys {
    /// The keys that a context of this run probably has: [`ContextKeys::charge`] when it does. None when the run has named
    /// something: keys would have symbols then that are not there after it.
    #[inline]
    pub(super) fn expected(&self, cx: &Context) -> Option<&Rc<SetNode>> {
        self.kept.as_ref().filter(|_| cx.symbols.are_committed())
    }

    /// Remembers the keys of a context for the next run, if that is worth it.
    pub(super) fn remember(&mut self, cx: &Context, context: &Value) {
        if self.kept.is_some() && !self.missed {
            // One context of another kind between many does not cost them their keys.
            self.missed = true;
            return;
        }
        self.forget();
        let Value::Map(map) = context else { return };
        let (keys, is_name) = (map.key_set(), |key: &Value| key.as_str().is_some_and(is_plain));
        let is_usual = !keys.is_empty() && keys.len() <= MOST && keys.is_tight();
        let is_flat = !map.values().iter().any(Value::is_composite);
        if !is_usual || !is_flat || !cx.symbols.are_committed() || !keys.members().iter().all(is_name) {
            return;
        }
        let own = keys.members().iter().filter_map(|key| match key {
            // The table of names holds, and has paid for, those that have a symbol.
            Value::Str(node) if node.symbol().is_none() => Some(node.bytes()),
            _ => None,
        });
        self.bytes = keys.bytes() + own.sum::<usize>();
        (self.kept, self.is_charged) = (Some(keys.clone()), true);
    }

    /// The run has a context with them.
    #[inline]
    pub(super) fn charge(&mut self) {
        if !self.is_charged {
            account::charge(self.bytes);
            self.is_charged = true;
            self.missed = false;
        }
    }

    /// The run has ended, and its context is gone.
    #[inline]
    pub(super) fn end_run(&mut self) {
        if self.is_charged {
            account::release(self.bytes);
            self.is_charged = false;
        }
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        if self.kept.is_some() {
            // Dropping them releases what they take.
            if !self.is_charged {
                account::hold(self.bytes);
            }
            *self = ContextKeys::default();
        }
    }
}

/// Stands in JSON as it is.
fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, ..0x20 | b'"' | b'\\'))
}
