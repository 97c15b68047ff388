//! Fuzz target `compile`: compiles arbitrary text, within a limit of time and memory.
#![no_main]

use ptc_tests::cost::{MOST_OF_A_CHECK, within};

libfuzzer_sys::fuzz_target!(|data: &[u8]| within(MOST_OF_A_CHECK, || ptc_tests::checks::compile(data)));
