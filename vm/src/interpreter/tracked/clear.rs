//! Speeds up programs with source tracking (which servers' data a value depends on): runs functions in the untracked
//! hot loop while they can reach only values that depend on no source.
//!
//! While no register of the running function and none above has a source, no name has one, and nothing has decided that
//! the function runs, every value that an instruction computes has none. Then shadows need no work, and the function
//! runs in the hot loop with all functions that it calls. The loop stops where a source may come in, or where the rules
//! need to know more than registers: at the return of the function, at builtins with callbacks, and at everything that
//! only the complete table does, such as calls of the host and definitions of names.

use super::state::{Calls, Level};
use super::{Machine, Tracking};
use crate::bytecode::instruction::Instruction;
use crate::context::Function;
use crate::fault::{Fault, Reason, Result};
use crate::interpreter::fiber::Frame;
use crate::interpreter::{HotExit, Stop};
use crate::sources::Sources;

impl Tracking {
    /// True if the function on top, with its registers from `base` on, can meet no source.
    pub(super) fn is_clear(&mut self, machine: &Machine<'_>, base: usize) -> bool {
        machine.cx.hot_loop
            && self.control().is_empty()
            && self.tracker.is_clear()
            && self.track.is_clear_from(base)
    }

    /// Runs the function on top in the hot loop, and then one instruction of the complete table.
    pub(super) fn run_clear(&mut self, machine: &mut Machine<'_>) -> Result<Option<Stop>> {
        machine.cx.leaves_callbacks = true;
        let floor = machine.fiber.frames.lay_floor();
        let exit = machine.run_hot();
        machine.fiber.frames.lift_floor(floor);
        machine.cx.leaves_callbacks = false;
        match exit? {
            HotExit::SlowPath => {
                self.follow_calls(machine);
                self.instruction(machine)
            }
            // The fiber has returned.
            HotExit::Stop(stop) => {
                self.track.levels.clear();
                Ok(Some(stop))
            }
            // Only machines do this, which the loop leaves.
            HotExit::Act(_) | HotExit::Returned(..) | HotExit::Drive => {
                Err(Fault::new(Reason::ExecutionError, "a machine ran without its sources"))
            }
        }
    }

    /// Enters the functions that the hot loop has called: functions of the program, one from the other.
    fn follow_calls(&mut self, machine: &Machine<'_>) {
        let known = self.track.levels.last().map_or(0, |level| level.index + 1);
        for index in known..machine.fiber.frames.len() {
            let dst = index.checked_sub(1).and_then(|caller| result_of_call(machine, caller));
            if let Some(level) = self.track.levels.last_mut() {
                level.calls = Calls { dst, is_direct: true, may_call: true, ..Calls::default() };
            }
            self.track.levels.push(Level::new(index, Sources::NONE));
        }
    }
}

/// The stack slot of the result that a frame waits for.
fn result_of_call(machine: &Machine<'_>, frame: usize) -> Option<usize> {
    let &Frame::Code { function, pc, base } = machine.fiber.frames.get(frame)? else { return None };
    let function: &Function = machine.functions.get(function.index())?;
    match function.code.get((pc as usize).checked_sub(1)?)? {
        Instruction::Call { window, .. } | Instruction::CallGlobal { window, .. } => {
            Some(base as usize + usize::from(window.at))
        }
        _ => None,
    }
}
