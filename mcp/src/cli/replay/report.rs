//! Formats the report of a replay as text: whether the run went as recorded, and otherwise the differences.

use ptc_calls::journal::Difference;
use ptc_engine::Replayed;
use ptc_server::console::Style;

/// Most calls of one kind that are listed.
const LISTED: usize = 10;

/// Most characters of a value.
const SHOWN: usize = 400;

/// The result of one replay in a few lines. `is_edited`: the program or a prelude is not the recorded one.
pub(super) fn replayed(replayed: &Replayed, is_edited: bool) -> String {
    let style = Style::stderr();
    if replayed.is_same() {
        let calls = count(replayed.answered, "call");
        let cost = if is_edited || replayed.record.fuel.is_none() { "" } else { ", and fuel" };
        return style.green(&format!(
            "same result and prints as recorded{cost}; {calls} answered from the recording"
        ));
    }
    let mut lines = differences(replayed);
    if is_edited {
        lines.push(format!("{} answered from the recording", count(replayed.answered, "call")));
    }
    lines.join("\n")
}

/// Everything that differs, some lines each.
pub(super) fn differences(replayed: &Replayed) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(replayed.divergence.as_ref().map(|divergence| format!("diverged at {divergence}")));
    lines.extend(replayed.differences.iter().map(difference));
    lines.extend(listed("calls that are not in the recording", '+', &replayed.unknown));
    if replayed.divergence.is_none() {
        lines.extend(listed("recorded calls that were not made", '-', &replayed.unused));
    }
    lines
}

fn difference(difference: &Difference) -> String {
    let Difference { what, recorded, now } = difference;
    let (recorded, now) = window(recorded, now);
    format!("{what} differs:\n  - {recorded}\n  + {now}")
}

fn listed(title: &str, sign: char, calls: &[String]) -> Option<String> {
    let mut text = format!("{title}: {}", calls.len());
    for call in calls.iter().take(LISTED) {
        text.push_str(&format!("\n  {sign} {call}"));
    }
    if calls.len() > LISTED {
        text.push_str(&format!("\n  … and {} more", calls.len() - LISTED));
    }
    (!calls.is_empty()).then_some(text)
}

/// Two texts around the place where they begin to differ, if they are long.
fn window(left: &str, right: &str) -> (String, String) {
    const BEFORE: usize = 40;
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let skip =
        if left.chars().count().max(right.chars().count()) > SHOWN { same.saturating_sub(BEFORE) } else { 0 };
    let part = |text: &str| {
        let (begin, rest) = (if skip > 0 { "…" } else { "" }, text.chars().skip(skip));
        let mut part: String = rest.clone().take(SHOWN).collect();
        if rest.count() > SHOWN {
            part.push('…');
        }
        format!("{begin}{}", part.replace('\n', "\n    "))
    };
    (part(left), part(right))
}

/// `1 call`, `2 calls`.
fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
