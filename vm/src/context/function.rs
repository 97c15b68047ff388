//! The functions of all programs of an isolate, in one table: a call and a return find where they go on in one step,
//! whichever program that is of.

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
    /// What it runs.
    pub(crate) code: Arc<[Instruction]>,
    /// The program.
    pub(crate) unit: Rc<Unit>,
    /// Its number there.
    pub(crate) proto: ProtoIndex,
    /// The calls it takes without more ado.
    pub(crate) entry: Entry,
}

impl Function {
    /// What stands in a place that is free: a function without code, of this program without functions.
    pub(crate) fn vacant(nothing: &Rc<Unit>) -> Function {
        Function { code: Arc::default(), unit: nothing.clone(), proto: ProtoIndex(0), entry: Entry::NONE }
    }

    /// The place is free.
    pub(crate) fn is_vacant(&self) -> bool {
        self.unit.program.protos.is_empty()
    }

    /// The programs of a table, each once.
    pub(crate) fn programs(functions: &[Function]) -> impl Iterator<Item = &Unit> {
        let first = |function: &&Function| function.proto == ProtoIndex(0) && !function.is_vacant();
        functions.iter().filter(first).map(|function| &*function.unit)
    }

    /// The function as it was compiled; none in a place that is free.
    #[inline]
    pub(crate) fn compiled(&self) -> Option<&Proto> {
        self.unit.program.protos.get(usize::from(self.proto.0))
    }

    /// The function as one operation, if it is one.
    #[inline(always)]
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        self.unit.leaves.get(usize::from(self.entry.leaf()).wrapping_sub(1))
    }

    /// It and the further arities that hang on it.
    pub(crate) fn arities(&self) -> impl Iterator<Item = (FunctionId, &Proto)> {
        let (unit, protos) = (self.unit.code.unit(), &self.unit.program.protos);
        let arity = move |index: ProtoIndex| {
            protos.get(usize::from(index.0)).map(|proto| (unit.function(index), proto))
        };
        std::iter::successors(arity(self.proto), move |(_, proto)| arity(proto.next_arity?))
    }
}

impl Context {
    /// A program that is loaded. A number whose program has gone may stand for none, or for another one.
    pub(crate) fn unit(&self, unit: UnitId) -> Option<&Unit> {
        let function = self.functions.get(unit.0 as usize).filter(|function| !function.is_vacant());
        function.map(|function| &*function.unit)
    }

    /// The function of a closure: it keeps its program, so it is there.
    #[inline]
    pub(crate) fn function(&self, closure: &Closure) -> Option<&Function> {
        self.functions.get(closure.function.place())
    }

    /// The function of a closure and the further arities that hang on it.
    pub(crate) fn arities(&self, closure: &Closure) -> impl Iterator<Item = &Proto> {
        self.function(closure).into_iter().flat_map(Function::arities).map(|(_, proto)| proto)
    }
}
