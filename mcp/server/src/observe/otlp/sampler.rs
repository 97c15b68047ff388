//! Decides which traces are recorded, by the standard variables `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample};

/// Names of the samplers.
const NAMES: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// The sampler of this name, which by default follows the caller and records all other traces.
///
/// # Errors
/// An unknown name, or an argument that is no number from 0 to 1.
pub(super) fn sampler(name: Option<&str>, argument: Option<&str>) -> Result<Sampler, String> {
    let ratio = || match argument.unwrap_or("1").trim().parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Sampler::TraceIdRatioBased(ratio)),
        _ => Err("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1".to_owned()),
    };
    let name = name.unwrap_or("parentbased_always_on").trim();
    let (is_parent_based, kind) = match name.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, name),
    };
    let own = match kind {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => ratio()?,
        _ => return Err(format!("OTEL_TRACES_SAMPLER is none of {}", NAMES.join(", "))),
    };
    Ok(if is_parent_based { Sampler::ParentBased(Box::new(own)) } else { own })
}

/// Whether a trace is recorded, with the span of the caller if it has one, and whether that is recorded.
pub(super) fn is_sampled(sampler: &Sampler, trace: TraceId, caller: Option<(SpanId, bool)>) -> bool {
    let context = caller.map(|(span, is_sampled)| {
        let flags = TraceFlags::default().with_sampled(is_sampled);
        Context::new().with_remote_span_context(SpanContext::new(
            trace,
            span,
            flags,
            true,
            Default::default(),
        ))
    });
    let result = sampler.should_sample(context.as_ref(), trace, "tools/call", &SpanKind::Server, &[], &[]);
    result.decision == SamplingDecision::RecordAndSample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_follow_their_callers_and_the_ratio() {
        let sampled = |name: Option<&str>, argument: Option<&str>, caller: Option<bool>| {
            let sampler = sampler(name, argument).unwrap();
            (0..1_000u128)
                .filter(|number| {
                    let trace = TraceId::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
                    is_sampled(&sampler, trace, caller.map(|sampled| (SpanId::from(1), sampled)))
                })
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
        assert!(NAMES.iter().all(|name| sampler(Some(name), Some("0.5")).is_ok()));
        assert!(sampler(Some("xray"), None).unwrap_err().contains("parentbased_traceidratio"));
        assert!(sampler(Some("traceidratio"), Some("2")).unwrap_err().contains("from 0 to 1"));
    }
}
