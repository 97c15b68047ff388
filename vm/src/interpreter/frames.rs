//! The call stack of a fiber. Room for frames is filled in advance, so that a call writes a frame with one
//! check and without asking whether the memory has to grow.

use super::charged::Charged;
use super::fiber::Frame;
use crate::value::code_ref::FunctionId;
use std::ops::{Deref, DerefMut};

/// Frames of the first room.
const FIRST: usize = 8;

/// What fills room that is not in use.
const EMPTY: Frame = Frame::Native { dst: 0, top: 0 };

/// The frames, the running one last.
#[derive(Default)]
pub(crate) struct FrameStack {
    /// As long as there is charged room.
    slots: Charged<Frame>,
    /// Frames in use.
    depth: usize,
}

/// Where a function goes on.
pub(crate) struct Resume {
    pub(crate) function: FunctionId,
    pub(crate) pc: u32,
    pub(crate) base: u32,
}

impl FrameStack {
    /// Adds a frame; the stack is charged like any node. Inline, so that the frame is written in the parts
    /// it is read in: a copy as a whole would wait for the parts.
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

    /// Calls a function from the frame on top, which goes on at `pc` afterwards. False, and nothing done,
    /// when the stack has to grow first.
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

    /// Removes the function on top and says where the function that called it goes on. `None`, and nothing
    /// done, when it was not called by a function.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> Option<Resume> {
        let below = self.depth.wrapping_sub(2);
        let Some(&Frame::Code { function, pc, base }) = self.slots.get(below) else { return None };
        self.depth = below + 1;
        Some(Resume { function, pc, base })
    }

    /// True when there is room for `more` frames.
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

    /// The frame that called what is below the top: the caller of a chain.
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

    /// Keeps the memory of a stack that is empty and never grew, uncharged; false when this is not one.
    #[inline]
    pub(crate) fn recycle(&mut self) -> bool {
        let is_small = self.depth == 0 && self.slots.room() == FIRST;
        if is_small {
            self.slots.recycle();
        }
        is_small
    }

    /// Charges what was recycled, as the first frame would have.
    #[inline]
    pub(crate) fn reuse(&mut self) {
        self.slots.reuse();
    }

    /// Removes all and gives the memory back.
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
