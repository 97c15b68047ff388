use crate::variants::{self, Budget};

/// A program ends within its limits and leaves no byte behind; and it ends the same way, with the same
/// prints and the same fuel, whatever the size of its slices and with every optimisation off.
pub fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let budget = Budget { fuel: 20_000, memory_bytes: 2 << 20 };
    variants::compare(source, &budget);
}
