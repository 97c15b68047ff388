//! Caches the key set that results from adding a key to a map, so that many maps of the same keys that get the same new
//! key share one key set in memory.
//!
//! One example is `(map #(assoc % :total 0) rows)`. The last few steps are remembered while a program runs. Only key
//! sets of keys with symbols take part: they are compared by number, and a remembered step holds only names.

use crate::fault::Result;
use crate::value::set::SetNode;
use crate::value::symbol::Symbol;
use crate::value::{Store, Value};
use std::rc::Rc;

/// Number of remembered steps, a power of two; a new step replaces the one in its slot.
const SLOTS: usize = 64;

/// The steps of the running program.
#[derive(Default)]
pub(crate) struct Extensions(Vec<Option<Step>>);

struct Step {
    from: Rc<SetNode>,
    key: Value,
    to: Rc<SetNode>,
}

impl Extensions {
    /// Drops all steps.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Independent of addresses: remembered steps are on the memory account, which must be the same in every run.
    fn slot(from: &SetNode, symbol: Symbol) -> usize {
        (symbol.index() as usize).wrapping_mul(7).wrapping_add(from.len()) % SLOTS
    }
}

/// The symbol of a key, if it has one.
fn symbol_of(key: &Value) -> Option<Symbol> {
    match key {
        Value::Keyword(symbol) => Some(*symbol),
        Value::Str(node) => node.symbol(),
        _ => None,
    }
}

impl Store {
    /// The keys with one more, which is known to be absent.
    ///
    /// # Errors
    /// As [`SetNode::push_new`].
    pub(crate) fn extend_keys(&mut self, from: &Rc<SetNode>, key: Value) -> Result<Rc<SetNode>> {
        let symbol = symbol_of(&key);
        if let Some(symbol) = symbol
            && let Some(Some(step)) = self.extensions.0.get(Extensions::slot(from, symbol))
            && Rc::ptr_eq(&step.from, from)
            && symbol_of(&step.key) == Some(symbol)
            && matches!(step.key, Value::Str(_)) == matches!(key, Value::Str(_))
        {
            return Ok(step.to.clone());
        }
        let mut to = from.copy(self, 1)?;
        if let Some(set) = Rc::get_mut(&mut to) {
            set.push_new(self, key.clone())?;
        }
        if let Some(symbol) = symbol
            && from.members().iter().all(|member| symbol_of(member).is_some())
        {
            if self.extensions.0.is_empty() {
                self.extensions.0.resize_with(SLOTS, || None);
            }
            self.extensions.0[Extensions::slot(from, symbol)] =
                Some(Step { from: from.clone(), key, to: to.clone() });
        }
        Ok(to)
    }
}
