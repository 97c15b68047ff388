//! The global allocator: calls mimalloc, without an explicit alignment where mimalloc's default one suffices, so that
//! more allocations take its fast path.
//!
//! Version 3 of mimalloc serves an aligned request by asking for `size + alignment - 1` bytes, unless the
//! size is a power of two. Where that sum falls into the next size class (48, 80, 96, 160 … bytes: vectors,
//! maps and their items), the fast path never finds a page of the class. Every such allocation takes the slow
//! path and a block of the larger class. Blocks of 16 bytes and more are aligned to 16 bytes in any case,
//! which is enough for almost any type.

use libmimalloc_sys as mimalloc;
use std::alloc::{GlobalAlloc, Layout};

pub(crate) struct Mimalloc;

/// The alignment that mimalloc gives to every block of at least this size (`MI_MAX_ALIGN_SIZE`). Smaller
/// blocks are aligned to their size.
const NATURAL: usize = 16;

/// Whether a block of this size has the alignment without asking for it.
#[inline]
const fn is_natural(size: usize, alignment: usize) -> bool {
    alignment <= NATURAL && alignment <= size
}

// SAFETY: mimalloc's functions have the contract of `GlobalAlloc`. Blocks have at least the requested size,
// null means that there is no memory, and `mi_free` and `mi_realloc` accept blocks of either kind of
// allocation. Blocks have the requested alignment or, by `is_natural`, at least that of the layout.
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are fine.
        unsafe {
            if is_natural(size, alignment) {
                mimalloc::mi_malloc(size).cast()
            } else {
                mimalloc::mi_malloc_aligned(size, alignment).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: as in `alloc`.
        unsafe {
            if is_natural(size, alignment) {
                mimalloc::mi_zalloc(size).cast()
            } else {
                mimalloc::mi_zalloc_aligned(size, alignment).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller's block comes from this allocator.
        unsafe { mimalloc::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let alignment = layout.align();
        // SAFETY: the caller's block comes from this allocator; the rest as in `alloc`.
        unsafe {
            if is_natural(size, alignment) {
                mimalloc::mi_realloc(block.cast(), size).cast()
            } else {
                mimalloc::mi_realloc_aligned(block.cast(), size, alignment).cast()
            }
        }
    }
}
