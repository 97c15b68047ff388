//! Finds the place in the source that a fiber (one thread of control in a program) has reached, and adds it to faults
//! with the calls that led there.

use super::{Fiber, Frame};
use crate::bytecode::instruction::Reference;
use crate::bytecode::{BuiltinId, Proto};
use crate::context::Function;
use crate::fault::{CallSite, Fault, Span, UnitId};
use crate::interpreter::hints;

impl Fiber {
    /// The current call of the topmost function of the program.
    pub(crate) fn location(&self, functions: &[Function]) -> Option<(UnitId, Span)> {
        (0..self.frames.len()).rev().find_map(|frame| {
            let (unit, proto, at) = self.instruction(functions, frame)?;
            Some((unit, *proto.spans.get(at)?))
        })
    }

    /// Adds location and hints to a fault. A location that is already known stays.
    #[cold]
    pub(crate) fn locate(&self, functions: &[Function], fault: &mut Fault) {
        if fault.location.is_none() {
            fault.location = self.location(functions);
            fault.calls = self.calls(functions, fault.location);
        }
        hints::complete(fault, self.builtin(functions), self.frames.len());
    }

    /// The program, function and instruction of a frame of code.
    fn instruction<'f>(&self, functions: &'f [Function], frame: usize) -> Option<(UnitId, &'f Proto, usize)> {
        match *self.frames.get(frame)? {
            Frame::Code { function, pc, .. } => {
                let function = functions.get(function.index())?;
                let unit = function.unit.code.unit();
                Some((unit, function.compiled()?, (pc as usize).saturating_sub(1)))
            }
            Frame::Native { .. } | Frame::Chain { .. } | Frame::Floor => None,
        }
    }

    /// The builtin that the topmost function of the program is calling, if any.
    fn builtin(&self, functions: &[Function]) -> Option<BuiltinId> {
        let top = (0..self.frames.len()).rev().find(|&at| matches!(self.frames[at], Frame::Code { .. }))?;
        let (_, proto, at) = self.instruction(functions, top)?;
        match proto.code.get(at)?.reference()? {
            Reference::Builtin(builtin) => Some(builtin),
            _ => None,
        }
    }

    /// The innermost two function calls and the outermost, except those that contain the location of the fault: a
    /// function written inline where it is passed needs no call site.
    fn calls(&self, functions: &[Function], location: Option<(UnitId, Span)>) -> Vec<CallSite> {
        const INNERMOST: usize = 2;
        let is_code = |at: &usize| matches!(self.frames[*at], Frame::Code { .. });
        let inner: Vec<usize> = (0..self.frames.len()).rev().filter(is_code).take(INNERMOST + 1).collect();
        let outer: Vec<usize> = (0..self.frames.len()).filter(is_code).take(2).collect();
        let mut pairs: Vec<(usize, usize)> = inner.windows(2).map(|pair| (pair[1], pair[0])).collect();
        if let [caller, callee] = outer[..]
            && !pairs.contains(&(caller, callee))
        {
            pairs.push((caller, callee));
        }
        let site = |(caller, callee): (usize, usize)| {
            let (unit, proto, at) = self.instruction(functions, caller)?;
            let span = *proto.spans.get(at)?;
            let function = self.instruction(functions, callee)?.1.name.clone();
            let is_around =
                location.is_some_and(|(inside, location)| inside == unit && span.covers(location));
            (!is_around).then_some(CallSite { function, unit, span })
        };
        let mut calls: Vec<CallSite> = pairs.into_iter().filter_map(site).collect();
        // A recursive function is listed once.
        calls.dedup();
        calls
    }
}
