//! Represents combinators, values that builtins make of functions and other values: combined functions (`comp`,
//! `partial`), endless sequences (`iterate`) and transducers. They are a closed set of kinds, so that calling one is
//! data for the interpreter.

use crate::bytecode::{Builtins, CombinatorKind};
use crate::fault::{Fault, Result};
use crate::memory::{List, STEP, account};
use crate::value::garbage::drop_children;
use crate::value::{Store, Value};
use std::rc::Rc;

/// A function made of other values.
pub struct Combinator {
    /// Its kind.
    pub kind: CombinatorKind,
    parts: Vec<Value>,
    /// Nesting depth of its combinators, if calling it needs no frame.
    direct_depth: Option<u8>,
}

/// Logical bytes in addition to the parts.
const COMBINATOR_BYTES: usize = 48;

impl Combinator {
    /// A combinator of a few values that is never called without a frame.
    pub fn from_parts<const N: usize>(kind: CombinatorKind, parts: [Value; N]) -> Rc<Combinator> {
        Combinator::charged(kind, List::from_array(parts), None)
    }

    /// A combinator of these functions and values, of which there may be very many.
    ///
    /// # Errors
    /// Deadline and cancellation.
    pub(crate) fn new(cx: &Store, kind: CombinatorKind, parts: List<Value>) -> Result<Rc<Combinator>> {
        let direct_depth = depth_of(cx, kind, &parts)?;
        Ok(Combinator::charged(kind, parts, direct_depth))
    }

    fn charged(kind: CombinatorKind, parts: List<Value>, direct_depth: Option<u8>) -> Rc<Combinator> {
        let parts = parts.into_items();
        account::charge(COMBINATOR_BYTES + parts.capacity() * size_of::<Value>());
        Rc::new(Combinator { kind, parts, direct_depth })
    }

    /// The functions and values that it is made of.
    pub fn parts(&self) -> &[Value] {
        &self.parts
    }
}

impl Drop for Combinator {
    fn drop(&mut self) {
        let bytes = COMBINATOR_BYTES + self.parts.capacity() * size_of::<Value>();
        drop_children(std::mem::take(&mut self.parts), bytes);
    }
}

/// Nesting depth of combinators in a function that needs no frame; `None` for other functions.
#[inline]
pub(crate) fn direct_depth(builtins: Builtins, function: &Value) -> Option<u8> {
    match function {
        Value::Builtin(builtin) => builtins.facts(*builtin).is_direct.then_some(0),
        Value::Keyword(_) | Value::Map(_) | Value::Set(_) | Value::Vector(_) => Some(0),
        Value::Combinator(node) => node.direct_depth,
        _ => None,
    }
}

/// The same for a combinator of these parts. Computed when the combinator is made, since machines need it before
/// every call.
fn depth_of(cx: &Store, kind: CombinatorKind, parts: &[Value]) -> Result<Option<u8>> {
    let called = match kind {
        CombinatorKind::Reduced
        | CombinatorKind::Endless(_)
        | CombinatorKind::Transducer(_)
        | CombinatorKind::Reducer
        | CombinatorKind::Completing
        | CombinatorKind::Memoize => return Ok(None),
        CombinatorKind::Constantly => return Ok(Some(0)),
        // The other parts are arguments.
        CombinatorKind::Partial | CombinatorKind::Fnil => parts.get(..1).unwrap_or_default(),
        CombinatorKind::Comp
        | CombinatorKind::Juxt
        | CombinatorKind::Complement
        | CombinatorKind::EveryPred
        | CombinatorKind::SomeFn => parts,
    };
    let mut deepest = 0;
    for some in called.chunks(STEP) {
        for part in some {
            match direct_depth(cx.builtins, part) {
                Some(depth) => deepest = depth.max(deepest),
                None => return Ok(None),
            }
        }
        if some.len() == STEP {
            cx.fuel.poll()?;
        }
    }
    Ok(Some(deepest.saturating_add(1)))
}

/// The fault of a consumer that needs all items.
#[cold]
pub(crate) fn unbounded(name: &str) -> Box<Fault> {
    Fault::type_error(format_args!("{name}: the sequence never ends"))
        .hint("Take a bounded part of it first: (take n coll) or (take-while pred coll).")
}
