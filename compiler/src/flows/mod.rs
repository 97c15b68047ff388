//! Finds, before a program runs, which data (call results, inputs, session values, literals) may reach which argument
//! of which tool call, for data-flow rules.
//!
//! The analysis is a walk of the IR with abstract values (`node`), repeated until nothing changes. It tells apart
//! functions and places of calls, but not the calls of one function (0-CFA), and parts of maps under constant keys.
//! What decides whether a call is made counts as a source of the call (control dependence). A builtin without a rule of
//! its own (`rules`) gives a value that depends on everything it got, and calls every function it got with that.
//!
//! A plan over-approximates: a source that is not named cannot influence an argument, other than by ending the program
//! with a fault or by the time that it takes.
//!
//! # Layout
//! - `budget`: what the analysis may use
//! - `set`: sets of sources and functions; `node`: abstract values; `parts`: parts of collections, and constants;
//!   `plan`: the result; `outside`: names that the program does not define
//! - `walk`: the state of the analysis, and the kinds of expressions; `control`: branches and loops
//! - `apply`: calls of functions; `rules`: calls of builtins; `sites`: calls that leave the program;
//!   `listing`: the plan of these calls

mod apply;
mod budget;
mod control;
mod listing;
mod node;
mod outside;
mod parts;
mod plan;
mod rules;
mod set;
mod sites;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use apply::is_deferring;
pub use plan::{FlowArgument, FlowCall, FlowCallKind, FlowPlan, FlowSource, SourceSet};

use crate::ir::Function;
use crate::ir::tables::Tables;
use crate::meter::Meter;
use budget::Nodes;
use bumpalo::Bump;
pub(crate) use outside::Outside;
use walk::Walk;

/// Most repetitions of the walk. Programs of people need four or five.
const MOST_ROUNDS: usize = 24;

/// Plans a resolved program.
pub(crate) fn plan(
    meter: &Meter<'_>,
    source: &str,
    tables: &Tables<'_>,
    main: &Function<'_>,
    outside: Outside<'_>,
) -> FlowPlan {
    let arena = Bump::new();
    let (room, goes_on) = budget::of_meter(meter);
    let mut walk = Walk::new(Nodes::new(&arena, &goes_on, source, room), tables, outside);
    for _ in 0..MOST_ROUNDS {
        if !walk.round(main) {
            return walk.plan(source);
        }
    }
    FlowPlan::unknown()
}
