//! Fuzz target `programs`: runs generated programs and compares modes of the engine, within a limit of time and memory.
#![no_main]

use ptc_tests::cost::{MOST_OF_A_CHECK, within};

libfuzzer_sys::fuzz_target!(|data: &[u8]| within(MOST_OF_A_CHECK, || ptc_tests::checks::programs(data)));
