//! Checks properties with random inputs.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Checks a property with this many inputs, the same ones in each run. A failure shows the smallest failing input.
pub fn for_all<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let scale = std::env::var("PTC_PROPERTY_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let config = Config {
        cases: cases * scale,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |input| {
        property(input);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
