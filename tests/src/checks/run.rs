//! Checks that arbitrary programs end within their limits, the same way in all variants.

use crate::variants::{self, Budget};

/// A program ends within its limits and leaves no memory behind. Result, prints and fuel do not depend on the size of
/// its slices or on optimisations.
pub fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let budget = Budget { fuel: 20_000, memory_bytes: 2 << 20 };
    variants::compare(source, &budget);
}
