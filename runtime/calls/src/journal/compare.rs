//! Lists how the outcome of a replay differs from the recorded one: result, prints, fuel, number of calls.

use super::record::OutcomeRecord;
use ptc_base::named_enum;
use std::fmt;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: OutcomePart,
    /// As it was recorded.
    pub recorded: String,
    /// As it is now.
    pub now: String,
}

named_enum! {
    /// What is compared of two outcomes.
    pub enum OutcomePart {
        /// The value, or the error.
        Result = "result",
        /// The first line that differs.
        Prints = "prints",
        /// The work.
        Fuel = "fuel",
        /// The number of calls.
        Calls = "calls",
    }
}

impl fmt::Display for OutcomePart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, recorded, now } = self;
        write!(out, "{what}\n  - {recorded}\n  + {now}")
    }
}

/// The differences of two outcomes, the most telling first.
pub fn differences(recorded: &OutcomeRecord, now: &OutcomeRecord, costs: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |what, recorded: String, now: String| {
        if recorded != now {
            found.push(Difference { what, recorded, now });
        }
    };
    compare(OutcomePart::Result, result(recorded), result(now));
    let (lines, lines_now) = (&recorded.prints, &now.prints);
    let at = lines.iter().zip(lines_now).position(|(line, line_now)| line != line_now);
    let at = at.or((lines.len() != lines_now.len()).then_some(lines.len().min(lines_now.len())));
    if let Some(at) = at {
        let line = |lines: &[String]| match lines.get(at) {
            Some(line) => format!("line {}: {line}", at + 1),
            None => format!("no line {}", at + 1),
        };
        compare(OutcomePart::Prints, line(lines), line(lines_now));
    }
    if costs {
        let fuel = |outcome: &OutcomeRecord| outcome.fuel.map_or("none".to_owned(), |fuel| fuel.to_string());
        compare(OutcomePart::Fuel, fuel(recorded), fuel(now));
        compare(OutcomePart::Calls, recorded.calls.to_string(), now.calls.to_string());
    }
    found
}

fn result(outcome: &OutcomeRecord) -> String {
    match (&outcome.value, &outcome.error) {
        (_, Some(error)) => format!("{}: {}", error.reason, error.message),
        (Some(value), None) => value.clone(),
        (None, None) => "nothing".to_owned(),
    }
}
