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
    /// `(reduced x)`: tells `reduce` to stop. It is no function.
    Reduced,
    /// A sequence without an end. It is no function.
    Endless(Endless),
}

/// The sequences without an end, closed so that pulling items out of one is data for a machine. The parts
/// of a combinator of this kind are named in the order they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endless {
    /// `(repeat x)`: x.
    Repeat,
    /// `(cycle coll)`: a vector that is not empty.
    Cycle,
    /// `(iterate f x)`: f, x.
    Iterate,
    /// `(repeatedly f)`: f.
    Repeatedly,
    /// `map` of another endless sequence: the sequence, f.
    Map,
    /// `filter` of another: the sequence, pred.
    Filter,
    /// `remove` of another: the sequence, pred.
    Remove,
    /// `keep` of another: the sequence, f.
    Keep,
    /// `drop` of another: the sequence, n.
    Drop,
    /// `drop-while` of another: the sequence, pred.
    DropWhile,
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
