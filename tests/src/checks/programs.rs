use crate::grammar;
use crate::variants::{self, Budget};

/// The program that the input gives, read as choices of a grammar, ends within its limits and the same way
/// in all variants.
pub fn programs(data: &[u8]) {
    let budget = Budget { fuel: 50_000, memory_bytes: 4 << 20 };
    variants::compare(&grammar::program(data), &budget);
}
