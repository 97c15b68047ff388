//! Checks generated programs in all variants.

use crate::grammar;
use crate::variants::{self, Budget};

/// The input selects productions of a grammar. The resulting program ends within its limits, in the same way in all
/// variants.
pub fn programs(data: &[u8]) {
    let budget = Budget { fuel: 50_000, memory_bytes: 4 << 20 };
    variants::compare(&grammar::program(data), &budget);
}
