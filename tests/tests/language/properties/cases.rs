//! Checks tables of programs: each ends in the same way, with the same fuel, however it runs.

use ptc_tests::variants::{Budget, Ending, compare};

const BUDGET: Budget = Budget { fuel: 1_000_000, memory_bytes: 64 << 20 };

/// A program, and its result: a value, or the reason and the source text at the location of the fault.
pub(crate) type Case = (&'static str, &'static str);

/// Every program ends as its row says.
pub(crate) fn ends_as_said(cases: &[Case]) {
    let mut wrong = Vec::new();
    for &(source, expected) in cases {
        let ran = compare(source, &BUDGET).unwrap_or_else(|| panic!("{source} does not compile"));
        let found = match &ran.ending {
            Ending::Done(text) => text.clone(),
            Ending::Fault(reason, _, Some(span), _) => {
                format!("{} {}", reason.raw(), &source[span.start as usize..span.end as usize])
            }
            other => format!("{other:?}"),
        };
        if found != expected {
            wrong.push((source, expected, found));
        }
    }
    assert!(wrong.is_empty(), "program, expected, found: {wrong:#?}");
}

/// At every fuel limit, all ways to run stop at the same point.
pub(crate) fn fuel_runs_out_anywhere(cases: &[Case]) {
    for (source, _) in cases {
        // Reading the context costs the most, and always the same.
        let full = compare(source, &BUDGET).map_or(0, |ran| ran.fuel);
        for fuel in full.saturating_sub(80)..=full {
            compare(source, &Budget { fuel, ..BUDGET });
        }
    }
}
