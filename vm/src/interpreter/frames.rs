//! The call stack of a fiber (one thread of control in a program), filled in advance so that a call writes its frame
//! after a single check, without growing memory.

use super::charged::Charged;
use super::fiber::Frame;
use crate::value::code_ref::FunctionId;
use std::ops::{Deref, DerefMut};

/// Number of frames in the initial room.
const FIRST: usize = 8;

/// The filler of unused room.
const EMPTY: Frame = Frame::Native { dst: 0, top: 0 };

/// The frames, the running one last.
#[derive(Default)]
pub(crate) struct FrameStack {
    /// All charged room, filled with frames.
    slots: Charged<Frame>,
    /// Frames in use.
    depth: usize,
}

/// Where a function resumes.
pub(crate) struct Resume {
    pub(crate) function: FunctionId,
    pub(crate) pc: u32,
    pub(crate) base: u32,
}

impl FrameStack {
    /// Adds a frame; the stack is charged like any node. Inline, so that the frame is written in the parts in which
    /// it is read: loading it as a whole would wait for the stores of its parts.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: Frame) {
        if self.depth == self.slots.len() {
            self.grow();
        }
        if let Some(slot) = self.slots.get_mut(self.depth) {
            *slot = frame;
            self.depth += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.make_room((self.depth + 1).max(FIRST));
        let room = self.slots.room();
        self.slots.resize(room, EMPTY);
    }

    /// Calls a function from the frame on top, which resumes at `pc`. False, and nothing changed, if the stack must
    /// grow first.
    #[inline(always)]
    pub(crate) fn enter(&mut self, pc: usize, callee: Frame) -> bool {
        let Some([.., top, next]) = self.slots.get_mut(..self.depth + 1) else { return false };
        if let Frame::Code { pc: saved, .. } = top {
            *saved = pc as u32;
        }
        *next = callee;
        self.depth += 1;
        true
    }

    /// Removes the function on top. Gives where its caller resumes; `None`, and nothing changed, if a function did
    /// not call it.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> Option<Resume> {
        let below = self.depth.wrapping_sub(2);
        let Some(&Frame::Code { function, pc, base }) = self.slots.get(below) else { return None };
        self.depth = below + 1;
        Some(Resume { function, pc, base })
    }

    /// True if there is room for `more` frames.
    #[inline]
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.depth + more <= self.slots.len()
    }

    /// The frame on top.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&Frame> {
        self.slots.get(self.depth.wrapping_sub(1))
    }

    /// The frame on top.
    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Frame> {
        self.slots.get_mut(self.depth.wrapping_sub(1))
    }

    /// The frame below the one on top.
    #[inline(always)]
    pub(crate) fn below(&self) -> Option<&Frame> {
        self.slots.get(self.depth.wrapping_sub(2))
    }

    /// The frame below the one on top.
    #[inline(always)]
    pub(crate) fn below_mut(&mut self) -> Option<&mut Frame> {
        self.slots.get_mut(self.depth.wrapping_sub(2))
    }

    /// Replaces the frame below the one on top by [`Frame::Floor`]. Gives its place and the frame; `None` if there is none.
    pub(crate) fn lay_floor(&mut self) -> Option<(usize, Frame)> {
        let below = self.depth.checked_sub(2)?;
        let frame = std::mem::replace(self.slots.get_mut(below)?, Frame::Floor);
        Some((below, frame))
    }

    /// Puts the frame back that [`FrameStack::lay_floor`] has replaced.
    pub(crate) fn lift_floor(&mut self, floor: Option<(usize, Frame)>) {
        if let Some((below, frame)) = floor
            && let Some(slot) = self.slots.get_mut(below)
        {
            *slot = frame;
        }
    }

    /// The frame below the two on top: the caller of a chain.
    #[inline(always)]
    pub(crate) fn below_chain(&self) -> Option<Frame> {
        self.slots.get(self.depth.wrapping_sub(3)).copied()
    }

    /// Removes the frame on top.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&Frame> {
        self.depth = self.depth.checked_sub(1)?;
        self.slots.get(self.depth)
    }

    /// Stores the memory of an empty stack that never grew, uncharged; false for any other stack.
    #[inline]
    pub(crate) fn recycle(&mut self) -> bool {
        let is_small = self.depth == 0 && self.slots.room() == FIRST;
        if is_small {
            self.slots.recycle();
        }
        is_small
    }

    /// Charges the recycled memory, as the first frame would have.
    #[inline]
    pub(crate) fn reuse(&mut self) {
        self.slots.reuse();
    }

    /// Removes all frames and frees the memory.
    pub(crate) fn clear(&mut self) {
        self.depth = 0;
        self.slots.clear();
    }
}

impl Deref for FrameStack {
    type Target = [Frame];
    #[inline]
    fn deref(&self) -> &[Frame] {
        self.slots.get(..self.depth).unwrap_or_default()
    }
}

impl DerefMut for FrameStack {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Frame] {
        self.slots.get_mut(..self.depth).unwrap_or_default()
    }
}
