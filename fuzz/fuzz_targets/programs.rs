#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ptc_tests::checks::programs(data));
