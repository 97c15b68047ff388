//! Calls functions made by `juxt`, `complement`, `every-pred` and `some-fn`, as a resumable state machine that calls
//! one part after another. The first call of a parallel branch is one of these machines as well.

use super::Action;
use crate::bytecode::CombinatorKind;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::combinator::Combinator;
use std::rc::Rc;

/// The machine.
pub struct Combine {
    combinator: Rc<Combinator>,
    arguments: Arguments,
    /// Number of functions called so far.
    called: usize,
    out: List<Value>,
}

impl Combine {
    /// A call of a combinator.
    pub fn new(combinator: Rc<Combinator>, arguments: Arguments) -> Combine {
        Combine { combinator, arguments, called: 0, out: List::default() }
    }

    /// A plain call, with which a fiber starts.
    pub(crate) fn call(function: Value, arguments: Arguments) -> Combine {
        Combine::new(Combinator::from_parts(CombinatorKind::Comp, [function]), arguments)
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match self.combinator.kind {
            // Only at the start of a fiber; elsewhere `comp` is a chain of frames.
            CombinatorKind::Comp => Ok(Action::TailCall(self.part(0), std::mem::take(&mut self.arguments))),
            CombinatorKind::Juxt => self.juxt(cx, returned),
            CombinatorKind::Complement => Ok(match returned {
                Some(value) => Action::Return(Value::Bool(!value.is_truthy())),
                None => Action::Call(self.part(0), std::mem::take(&mut self.arguments)),
            }),
            CombinatorKind::EveryPred => Ok(self.predicates(returned, false)),
            CombinatorKind::SomeFn => Ok(self.predicates(returned, true)),
            // The others need no machine.
            CombinatorKind::Partial
            | CombinatorKind::Constantly
            | CombinatorKind::Fnil
            | CombinatorKind::Reduced
            | CombinatorKind::Endless(_)
            | CombinatorKind::Transducer(_)
            | CombinatorKind::Reducer
            | CombinatorKind::Completing
            | CombinatorKind::Memoize => Ok(Action::Return(Value::Nil)),
        }
    }

    fn part(&self, index: usize) -> Value {
        self.combinator.parts().get(index).cloned().unwrap_or_default()
    }

    fn juxt(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(value) = returned {
            self.out.push(cx, value)?;
        }
        if self.called == self.combinator.parts().len() {
            return Ok(Action::Return(self.out.take_vector()));
        }
        let function = self.part(self.called);
        self.called += 1;
        let arguments = cx.arguments(self.arguments.iter().cloned())?;
        Ok(Action::Call(function, arguments))
    }

    /// Calls every predicate on every argument, until one decides.
    fn predicates(&mut self, returned: Option<Value>, stop_on: bool) -> Action {
        let predicates = self.combinator.parts().len();
        let total = predicates * self.arguments.len();
        match returned {
            Some(value) if value.is_truthy() == stop_on => {
                return Action::Return(if stop_on { value } else { Value::Bool(false) });
            }
            // The last predicate's result, as with `or`.
            Some(value) if self.called == total && stop_on => return Action::Return(value),
            _ if self.called == total => {
                return Action::Return(if stop_on { Value::Nil } else { Value::Bool(true) });
            }
            _ => {}
        }
        let (predicate, argument) = (self.called % predicates, self.called / predicates);
        self.called += 1;
        Action::Call1(self.part(predicate), self.arguments[argument].clone())
    }
}
