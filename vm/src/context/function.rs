//! Finds the code of a closure, its arities and its program, in a table of the functions of all programs that are
//! loaded into one isolate (a separate heap with its state). A call or a return finds its code in one step, whichever
//! program the function belongs to.

use super::{Context, Unit};
use crate::bytecode::entry::Entry;
use crate::bytecode::instruction::Instruction;
use crate::bytecode::leaf::Leaf;
use crate::bytecode::{Proto, ProtoIndex};
use crate::fault::UnitId;
use crate::value::Closure;
use crate::value::code_ref::FunctionId;
use std::rc::Rc;
use std::sync::Arc;

/// A function of a loaded program.
#[derive(Clone)]
pub(crate) struct Function {
    /// Its instructions.
    pub(crate) code: Arc<[Instruction]>,
    /// The program.
    pub(crate) unit: Rc<Unit>,
    /// Its number there.
    pub(crate) proto: ProtoIndex,
    /// Its fast calls.
    pub(crate) entry: Entry,
}

impl Function {
    /// The content of a free slot: a function without code, of a program without functions.
    pub(crate) fn vacant(nothing: &Rc<Unit>) -> Function {
        Function { code: Arc::default(), unit: nothing.clone(), proto: ProtoIndex(0), entry: Entry::NONE }
    }

    /// The slot is free.
    pub(crate) fn is_vacant(&self) -> bool {
        self.unit.program.protos.is_empty()
    }

    /// The programs of a table, each once.
    pub(crate) fn programs(functions: &[Function]) -> impl Iterator<Item = &Unit> {
        let first = |function: &&Function| function.proto == ProtoIndex(0) && !function.is_vacant();
        functions.iter().filter(first).map(|function| &*function.unit)
    }

    /// The compiled function; `None` for a free slot.
    #[inline]
    pub(crate) fn compiled(&self) -> Option<&Proto> {
        self.unit.program.protos.get(usize::from(self.proto.0))
    }

    /// The function as a leaf, if it is one.
    #[inline(always)]
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        self.unit.leaves.get(usize::from(self.entry.leaf()).wrapping_sub(1))
    }

    /// The function and its further arities.
    pub(crate) fn arities(&self) -> impl Iterator<Item = (FunctionId, &Proto)> {
        let (unit, protos) = (self.unit.code.unit(), &self.unit.program.protos);
        let arity = move |index: ProtoIndex| {
            protos.get(usize::from(index.0)).map(|proto| (unit.function(index), proto))
        };
        std::iter::successors(arity(self.proto), move |(_, proto)| arity(proto.next_arity?))
    }
}

impl Context {
    /// A loaded program. The number of a removed program may be vacant or reused.
    pub(crate) fn unit(&self, unit: UnitId) -> Option<&Unit> {
        let function = self.functions.get(unit.0 as usize).filter(|function| !function.is_vacant());
        function.map(|function| &*function.unit)
    }

    /// The function of a closure. The closure keeps its program loaded, so it exists.
    #[inline]
    pub(crate) fn function(&self, closure: &Closure) -> Option<&Function> {
        self.functions.get(closure.function.index())
    }

    /// The function of a closure and its further arities.
    pub(crate) fn arities(&self, closure: &Closure) -> impl Iterator<Item = &Proto> {
        self.function(closure).into_iter().flat_map(Function::arities).map(|(_, proto)| proto)
    }
}
