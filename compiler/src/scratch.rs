//! Retains the memory of a compilation for the next one on the same thread, since allocating and freeing it would take
//! longer than compiling a small program.

use crate::codegen::Buffers;
use bumpalo::Bump;
use std::cell::Cell;

/// Longest program that leaves memory for reuse.
const LONGEST: usize = 16 << 10;

/// Most bytes of a retained arena.
const LARGEST_ARENA: usize = 1 << 20;

/// Fewest bytes of a retained arena.
const SMALLEST_ARENA: usize = 4 << 10;

thread_local! {
    static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The memory. Nothing in it depends on earlier compilations.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Empty between compilations.
    pub(crate) arena: Bump,
    /// For functions during code generation.
    pub(crate) buffers: Vec<Buffers>,
}

impl Scratch {
    /// The memory of the last compilation, or new memory for a text.
    pub(crate) fn take(source: &str) -> Box<Scratch> {
        // Nothing is retained while a thread ends.
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        // Long programs start with new memory, so that their limits do not depend on earlier ones.
        let kept = kept.filter(|_| source.len() <= LONGEST);
        kept.unwrap_or_else(|| {
            // Forms and expressions take about fifteen times the size of their text; most programs fit the first
            // chunk.
            let room = (source.len() * 16).clamp(SMALLEST_ARENA, 64 << 10);
            Box::new(Scratch { arena: Bump::with_capacity(room), buffers: Vec::new() })
        })
    }

    /// Retains the memory for the next compilation.
    pub(crate) fn keep(mut self: Box<Scratch>, source: &str) {
        if source.len() <= LONGEST && self.arena.allocated_bytes() <= LARGEST_ARENA {
            self.arena.reset();
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }
}
