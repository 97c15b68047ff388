//! Memory that one compilation leaves for the next on its thread: a small program takes less time to compile
//! than its tables take to be allocated and freed.

use crate::codegen::Buffers;
use bumpalo::Bump;
use std::cell::Cell;

/// Programs longer than this leave nothing.
const LONGEST: usize = 16 << 10;

/// Most bytes of an arena that is kept.
const LARGEST_ARENA: usize = 1 << 20;

/// Fewest bytes of an arena that is kept.
const SMALLEST_ARENA: usize = 4 << 10;

thread_local! {
    static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The memory. Nothing in it depends on what was compiled before.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Empty between compilations.
    pub(crate) arena: Bump,
    /// Of functions, while their code is generated.
    pub(crate) buffers: Vec<Buffers>,
}

impl Scratch {
    /// What the last compilation left, or new memory for a text.
    pub(crate) fn take(source: &str) -> Box<Scratch> {
        // While a thread ends nothing is kept.
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        // Long programs begin with new memory, so that what fits depends on nothing else.
        let kept = kept.filter(|_| source.len() <= LONGEST);
        kept.unwrap_or_else(|| {
            // Forms and expressions take some fifteen times the room of their text; most programs fit the first chunk.
            let room = (source.len() * 16).clamp(SMALLEST_ARENA, 64 << 10);
            Box::new(Scratch { arena: Bump::with_capacity(room), buffers: Vec::new() })
        })
    }

    /// Leaves the memory for the next compilation.
    pub(crate) fn keep(mut self: Box<Scratch>, source: &str) {
        if source.len() <= LONGEST && self.arena.allocated_bytes() <= LARGEST_ARENA {
            self.arena.reset();
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }
}
