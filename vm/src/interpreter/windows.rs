//! First register windows of finished fibers, kept for the next: filling and dropping 256 registers costs
//! more than a small program does.

use super::fiber::FIRST_ROOM;
use crate::bytecode::WINDOW;
use crate::value::{Value, garbage};
use std::cell::RefCell;

/// Windows kept per thread.
const KEPT: usize = 256;

/// Most registers that a kept window has room for: those of a few calls inside one another.
const LARGEST: usize = 4 * WINDOW;

thread_local! {
    static POOL: RefCell<Vec<Vec<Value>>> = const { RefCell::new(Vec::new()) };
}

/// A window whose registers are empty: they hold nothing to drop.
pub(super) fn take() -> Vec<Value> {
    let kept = POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| {
        let mut window = Vec::with_capacity(FIRST_ROOM);
        window.resize_with(FIRST_ROOM, Value::default);
        window
    })
}

/// Keeps a window for later. What a fault left in it is dropped now, in the scope of its isolate; after a
/// return there is nothing.
pub(super) fn give(window: Vec<Value>, is_empty: bool) {
    let mut window = window;
    if window.capacity() > LARGEST || window.len() < FIRST_ROOM {
        // What a deep recursion leaves is freed in steps.
        return garbage::discard(window, 0);
    }
    window.truncate(FIRST_ROOM);
    if is_empty {
        debug_assert!(!window.iter().any(Value::is_heap), "a function has left registers full");
    } else {
        for register in &mut window {
            if register.is_heap() {
                *register = Value::Nil;
            }
        }
    }
    // While a thread ends there is no pool; the window holds no values of the heap and may go.
    let _ = POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < KEPT {
            pool.push(window);
        }
    });
}
