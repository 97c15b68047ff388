//! Runs `transduce` with a transducer that is a function of the program: calls it with the reducing function, then
//! reduces with the function that it returns.

use crate::fault::Result;
use crate::native::pipeline::{Finish, Pipeline, Sink};
use crate::native::{Action, Native};
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The machine.
pub struct Transduce {
    transducer: Value,
    function: Value,
    /// The first accumulator; without it, the reducing function gives one.
    init: Option<Value>,
    input: Rc<VectorNode>,
    /// The reducing function that the transducer made.
    reducer: Option<Value>,
}

impl Transduce {
    /// A machine over the items of a collection.
    pub fn new(transducer: Value, function: Value, init: Option<Value>, input: Rc<VectorNode>) -> Transduce {
        Transduce { transducer, function, init, input, reducer: None }
    }

    pub(crate) fn resume(&mut self, returned: Option<Value>) -> Result<Action> {
        let Some(value) = returned else {
            return Ok(Action::Call1(take(&mut self.transducer), self.function.clone()));
        };
        let reducer = match self.reducer.take() {
            None => value,
            Some(reducer) => {
                self.init = Some(value);
                reducer
            }
        };
        match self.init.take() {
            None => {
                self.reducer = Some(reducer);
                Ok(Action::Call(self.function.clone(), Arguments::new()))
            }
            Some(accumulator) => {
                let sink = Sink::Fold { function: reducer, accumulator, finish: Finish::Complete };
                let input = self.input.clone();
                Ok(Action::Become(Native::Pipeline(Box::new(Pipeline::over_items(
                    input,
                    Default::default(),
                    sink,
                )))))
            }
        }
    }
}
