//! What one run of an isolate may spend.

use crate::memory::{Interrupt, Preemption};

/// Budgets and settings of a run.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Most logical bytes alive at once, those included that earlier runs have left.
    pub memory_bytes: u64,
    /// Fuel for the whole run.
    pub fuel: u64,
    /// Most rounds of one loop activation; `None` for no limit.
    pub loop_limit: Option<u64>,
    /// Most branches of `pmap` and `pcalls` alive at once.
    pub parallel_width: usize,
    /// Bytes of printed lines to keep.
    pub print_bytes: usize,
    /// Reading an absent `data/…` key is an error.
    pub strict_data: bool,
    /// Raised by the driver at the deadline or on cancellation.
    pub interrupt: Interrupt,
    /// How the driver takes the thread away in the middle of a native operation.
    pub preemption: Preemption,
}

impl Budget {
    /// Bytes of memory by default.
    pub const MEMORY_BYTES: u64 = 10 << 20;
    /// Fuel by default.
    pub const FUEL: u64 = 1_000_000_000;
    /// Branches alive at once by default.
    pub const PARALLEL_WIDTH: usize = 1_000;
    /// Bytes of printed lines by default.
    pub const PRINT_BYTES: usize = 1 << 20;
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            memory_bytes: Budget::MEMORY_BYTES,
            fuel: Budget::FUEL,
            loop_limit: None,
            parallel_width: Budget::PARALLEL_WIDTH,
            print_bytes: Budget::PRINT_BYTES,
            strict_data: false,
            interrupt: Interrupt::default(),
            preemption: Preemption::default(),
        }
    }
}

/// Ways to run that no program may tell apart: tests turn them off to see that.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Runs frequent instructions in the hot loop.
    pub hot_loop: bool,
    /// Interns keys met in data.
    pub intern_keys: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { hot_loop: true, intern_keys: true }
    }
}
