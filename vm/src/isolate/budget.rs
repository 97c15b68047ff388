//! Defines the limits and settings of one run of a program: memory, work, loop rounds, parallel branches, printed lines
//! and interruption. Tests can also turn optimisations off.

use crate::memory::{Interrupt, Preemption};

/// Budgets and settings of a run.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Most live logical bytes, including those of earlier runs.
    pub memory_bytes: u64,
    /// Fuel for the whole run.
    pub fuel: u64,
    /// Most rounds of one loop activation; `None` for no limit.
    pub loop_limit: Option<u64>,
    /// Most live branches of `pmap` and `pcalls`.
    pub parallel_width: usize,
    /// Bytes of printed lines to store.
    pub print_bytes: usize,
    /// Reading an absent `data/…` key is an error.
    pub strict_data: bool,
    /// Raised by the driver at the deadline or on cancellation.
    pub interrupt: Interrupt,
    /// How the driver preempts native operations.
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

/// Optimisations that programs cannot observe; tests turn them off to prove that.
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
