//! Implements the builtins that call functions of the program, such as `map` and `sort`, as resumable state machines,
//! so that a callback can suspend anywhere. A machine never calls (architecture invariant 3): it requests a call, and
//! gets the result by `resume`. A host call inside a callback so suspends like any other, at any depth, and nothing
//! recurses on the native stack.
//!
//! The state of a machine is plain data (architecture invariant 10).

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

pub mod combine;
pub mod each;
pub mod forward;
pub mod map_many;
pub mod memoize;
pub mod merge;
pub mod parallel;
pub mod pipeline;
pub mod reduce;
pub mod replace;
pub mod sort;
pub mod tree;
pub mod update;
pub mod walk;

use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::build::Arguments;
use std::rc::Rc;

/// A machine's next action.
pub enum Action {
    /// It is finished.
    Return(Value),
    /// Call a function with one argument.
    Call1(Value, Value),
    /// Call a function with two arguments.
    Call2(Value, Value, Value),
    /// Call a function with any number of arguments.
    Call(Value, Arguments),
    /// Finish with the result of this call.
    TailCall(Value, Arguments),
    /// Continue later: the slice is used up.
    Pause,
    /// Continue as this machine.
    Become(Native),
    /// Run its branches as fibers (only [`parallel::Parallel`]).
    Fork,
    /// Fault at this instruction of a function that has no frame.
    Failed(Box<Fault>, forward::Site),
}

/// A callback builtin's next step.
pub enum Step {
    /// It is finished.
    Return(Value),
    /// Replace the call by a call of this function with these arguments (as `apply` does).
    TailCall(Value, Arguments),
    /// Run this state machine.
    Enter(Native),
}

/// The closed set of machines. Large and rare ones are boxed, since the others are moved often.
pub enum Native {
    /// One function over one collection.
    Each(each::Each),
    /// `map` over several collections.
    MapMany(map_many::MapMany),
    /// `reduce`, `reduce-kv`.
    Reduce(reduce::Reduce),
    /// `replace` of a regex with a function.
    Replace(replace::Replace),
    /// `sort` and `sort-by` with a comparator.
    Sort(Box<sort::Sort>),
    /// `sort-by` with several keys.
    SortKeys(Box<sort::keys::SortKeys>),
    /// `update`, `update-in`.
    Update(Box<update::Update>),
    /// `merge-with`.
    Merge(merge::Merge),
    /// `walk`, `prewalk`, `postwalk`.
    Walk(walk::Walk),
    /// `tree-seq`.
    Tree(tree::Tree),
    /// Items through stages into a sink: `transduce`, `into`, endless sequences.
    Pipeline(Box<pipeline::Pipeline>),
    /// `transduce` with a transducer that is a function of the program.
    Transduce(pipeline::transduce::Transduce),
    /// Endless arguments cut to the length of the others.
    Bounded(pipeline::bounded::Bounded),
    /// Calls of memoized functions.
    Memoize(memoize::Memoize),
    /// Calls of combinators.
    Combine(combine::Combine),
    /// `pmap`, `pcalls`.
    Parallel(parallel::Parallel),
}

impl Native {
    /// Continues with the result of the last call (`None` at the start).
    pub(crate) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        match self {
            Native::Each(machine) => machine.resume(cx, returned),
            Native::MapMany(machine) => machine.resume(cx, returned),
            Native::Reduce(machine) => machine.resume(cx, returned),
            Native::Replace(machine) => machine.resume(cx, returned),
            Native::Sort(machine) => machine.resume(cx, returned),
            Native::SortKeys(machine) => machine.resume(cx),
            Native::Update(machine) => machine.resume(cx, returned),
            Native::Merge(machine) => machine.resume(cx, returned),
            Native::Walk(machine) => machine.resume(cx, returned),
            Native::Tree(machine) => machine.resume(cx, returned),
            Native::Pipeline(machine) => machine.resume(cx, returned),
            Native::Transduce(machine) => machine.resume(returned),
            Native::Bounded(machine) => machine.resume(returned),
            Native::Memoize(machine) => machine.resume(cx, returned),
            Native::Combine(machine) => machine.resume(cx, returned),
            Native::Parallel(machine) => machine.resume(cx, returned),
        }
    }
}

impl Native {
    /// [`Native::resume`] after a function of the program has returned to the machine, while its window still exists
    /// (register 0 holds the function). A machine that calls the same function for every item puts the next arguments
    /// into the window and returns true: no new frame is needed. Otherwise `action` is the machine's next action.
    #[inline]
    pub(crate) fn resume_in_window(
        &mut self,
        cx: &mut Context,
        returned: Value,
        window: &mut [Value],
        action: &mut Option<Action>,
    ) -> Result<bool> {
        match self {
            Native::Each(machine) => machine.resume_in_window(cx, returned, window, action),
            Native::Reduce(machine) => machine.resume_in_window(cx, returned, window, action),
            _ => {
                *action = Some(self.resume(cx, Some(returned))?);
                Ok(false)
            }
        }
    }
}

/// Whether the window belongs to a call of this function.
#[inline]
pub(crate) fn is_running(function: &Value, window: &[Value]) -> bool {
    match (function, window.first()) {
        (Value::Closure(function), Some(Value::Closure(running))) => Rc::ptr_eq(function, running),
        _ => false,
    }
}

/// Whether a function is one of the program that takes exactly this many arguments, passed unchanged in the first
/// registers.
fn takes_exactly(cx: &Context, function: &Value, count: u8) -> bool {
    matches!(function, Value::Closure(closure)
        if cx.function(closure).is_some_and(|function| function.entry.arguments == count))
}
