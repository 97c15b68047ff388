//! Pools the register arrays (windows) of finished fibers (threads of control) for reuse, since filling and dropping
//! 256 registers takes longer than running a small program.

use super::fiber::FIRST_ROOM;
use crate::bytecode::WINDOW;
use crate::value::{Value, garbage};
use std::cell::RefCell;

/// Number of pooled windows per thread.
const KEPT: usize = 256;

/// Most registers of a pooled window: those of a few nested calls.
const LARGEST: usize = 4 * WINDOW;

thread_local! {
    static POOL: RefCell<Vec<Vec<Value>>> = const { RefCell::new(Vec::new()) };
}

/// A window with empty registers: they hold nothing to drop.
pub(super) fn take() -> Vec<Value> {
    let kept = POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| {
        let mut window = Vec::with_capacity(FIRST_ROOM);
        window.resize_with(FIRST_ROOM, Value::default);
        window
    })
}

/// Returns a window to the pool. Values left by a fault are dropped now, in the scope of their isolate; a return
/// leaves none.
pub(super) fn give(mut window: Vec<Value>, is_empty: bool) {
    if window.capacity() > LARGEST || window.len() < FIRST_ROOM {
        // Values left by a deep recursion are freed in steps.
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
    // There is no pool while a thread ends; the window holds no heap values and is dropped.
    let _ = POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < KEPT {
            pool.push(window);
        }
    });
}
