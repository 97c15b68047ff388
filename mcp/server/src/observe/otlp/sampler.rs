//! Decides which traces are recorded, by the standard variables `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.

/// Names of the samplers.
const NAMES: &str = "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, \
    parentbased_traceidratio";

/// Which traces are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampler {
    /// A trace of a caller is recorded if the caller does.
    is_parent_based: bool,
    /// The part of all other traces that is recorded, from 0 to 1.
    ratio: f64,
}

impl Sampler {
    /// The sampler of this name, which by default follows the caller and records all other traces.
    ///
    /// # Errors
    /// An unknown name, or an argument that is no number from 0 to 1.
    pub(super) fn named(name: Option<&str>, argument: Option<&str>) -> Result<Sampler, String> {
        let name = name.unwrap_or("parentbased_always_on").trim();
        let (is_parent_based, kind) = match name.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        let ratio = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match argument.unwrap_or("1").trim().parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
                _ => return Err("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1".to_owned()),
            },
            _ => return Err(format!("OTEL_TRACES_SAMPLER is none of {NAMES}")),
        };
        Ok(Sampler { is_parent_based, ratio })
    }

    /// Whether a trace is recorded. `caller`: whether the caller records it, if it has a trace.
    pub(super) fn records(&self, trace: u128, caller: Option<bool>) -> bool {
        match caller {
            Some(is_recorded) if self.is_parent_based => is_recorded,
            // The low 63 bits of the id, as samplers of OpenTelemetry compare them: all of a trace decide the same way.
            _ => ((trace as u64) >> 1) < (self.ratio * (1_u64 << 63) as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_follow_their_callers_and_the_ratio() {
        let sampled = |name: Option<&str>, argument: Option<&str>, caller: Option<bool>| {
            let sampler = Sampler::named(name, argument).unwrap();
            (0..1_000u128)
                .map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
                .filter(|trace| sampler.records(*trace, caller))
                .count()
        };
        assert_eq!(
            [None, Some(true), Some(false)].map(|caller| sampled(None, None, caller)),
            [1_000, 1_000, 0]
        );
        assert_eq!(sampled(Some("always_on"), None, Some(false)), 1_000);
        assert_eq!(sampled(Some("always_off"), None, Some(true)), 0);
        for name in ["traceidratio", "parentbased_traceidratio"] {
            assert!((150..350).contains(&sampled(Some(name), Some("0.25"), None)), "{name}");
        }
        assert!(NAMES.split(", ").all(|name| Sampler::named(Some(name), Some("0.5")).is_ok()));
        assert!(Sampler::named(Some("xray"), None).unwrap_err().contains("parentbased_traceidratio"));
        assert!(Sampler::named(Some("traceidratio"), Some("2")).unwrap_err().contains("from 0 to 1"));
    }
}
