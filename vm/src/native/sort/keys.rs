//! A fast path of `sort-by` with several keys, as in `(sort-by (juxt :a :b) rows)`, for key functions that can be
//! called without a call frame. The keys of a row are adjacent in one list, instead of a vector each.

use crate::apply::apply;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::native::{Action, sort};
use crate::value::Value;
use crate::value::combinator::Combinator;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The machine.
pub struct SortKeys {
    /// The `juxt`, with at least one part.
    functions: Rc<Combinator>,
    input: Rc<VectorNode>,
    /// Index of the next item.
    next: usize,
    /// The keys of each item, one for each function.
    keys: List<Value>,
    descending: bool,
}

impl SortKeys {
    /// A machine over the items; none of the functions needs a frame.
    ///
    /// # Errors
    /// Memory for the keys.
    pub fn new(
        cx: &mut Context,
        functions: Rc<Combinator>,
        input: Rc<VectorNode>,
        descending: bool,
    ) -> Result<SortKeys> {
        let keys = input.len().saturating_mul(functions.parts().len());
        let keys = List::with_capacity(cx, keys)?;
        Ok(SortKeys { functions, input, next: 0, keys, descending })
    }

    pub(crate) fn resume(&mut self, cx: &mut Context) -> Result<Action> {
        while let Some(item) = self.input.get(self.next) {
            if cx.fuel.slice < 0 {
                return Ok(Action::Pause);
            }
            // The call of the `juxt`.
            cx.fuel.slice -= 1;
            self.next += 1;
            for function in self.functions.parts() {
                let key = match (function, &item) {
                    (Value::Keyword(symbol), Value::Map(map)) => {
                        cx.tick(1)?;
                        map.find_named(cx, *symbol).map_or(Value::Nil, |row| map.value(row).clone())
                    }
                    _ => apply(cx, function, &mut [item.clone()])?,
                };
                self.keys.push(cx, key)?;
            }
        }
        let (keys, width) = (take(&mut self.keys), self.functions.parts().len());
        sort::by_parts(cx, &self.input, &keys, width, self.descending).map(Action::Return)
    }
}
