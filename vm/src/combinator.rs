//! Functions made by functions: a closed set, so that calling one is data for the interpreter.

use crate::heap;
use crate::value::{Value, drop_children};
use std::rc::Rc;

/// Which function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombinatorKind {
    /// `(comp f g …)`: right to left; none is identity.
    Comp,
    /// `(partial f a …)`.
    Partial,
    /// `(juxt f g …)`.
    Juxt,
    /// `(complement f)`.
    Complement,
    /// `(constantly v)`.
    Constantly,
    /// `(every-pred p …)`.
    EveryPred,
    /// `(some-fn p …)`.
    SomeFn,
    /// `(fnil f default …)`.
    Fnil,
}

/// A function made of other values.
pub struct Combinator {
    /// Which function.
    pub kind: CombinatorKind,
    parts: Vec<Value>,
}

/// Logical bytes beside the parts.
const COMBINATOR_BYTES: usize = 48;

impl Combinator {
    /// A combinator of these functions and values.
    pub fn new(kind: CombinatorKind, parts: Vec<Value>) -> Rc<Combinator> {
        heap::charge(COMBINATOR_BYTES + parts.capacity() * size_of::<Value>());
        Rc::new(Combinator { kind, parts })
    }

    /// The functions and values it is made of.
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
