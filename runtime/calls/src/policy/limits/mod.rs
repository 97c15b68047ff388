//! Enforces the limits of a policy over many calls, such as calls a minute or the sum of an argument a day: parses
//! them, and counts what each call uses.
//!
//! # Layout
//! - this file: limits as they are written, and what one call uses of them; `book`: the uses of all calls
//! - `names`: names of sessions that outlive their process

mod book;
mod names;

pub(super) use book::{LimitBook, LimitRefusal};
pub(super) use names::SessionNames;

use super::condition::{Arguments, Found, Pointer};
use super::pattern::{Exactness, RulePattern};
use super::rules::Position;
use crate::run::client::asker::CallAsker;
use crate::tools::CallTarget;
use ptc_base::digest::{hex, sha256};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Parts of a sum's unit: sums are whole numbers of them, rounded up.
const PARTS: f64 = 1_000_000.0;

/// Bytes of a digest that name a limit.
const NAME_BYTES: usize = 16;

/// Over which calls a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Per {
    /// Those with one token; calls without one count together.
    Token,
    /// Those of one session, or of a run without a session.
    Session,
    /// All.
    #[default]
    All,
}

/// What is counted.
#[derive(Clone, Debug)]
enum Counted {
    Calls,
    Sum(Pointer),
}

/// A limit of a file.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) tools: Vec<(RulePattern, Position)>,
    pub(super) per: Per,
    counted: Counted,
    /// In parts of the unit for sums.
    most: i128,
    window: Duration,
    /// Its name in messages, with its place.
    pub(super) title: Arc<str>,
}

/// What is counted, how much of it is allowed, and in which time.
pub(super) struct LimitText {
    counted: Counted,
    most: i128,
    window: Duration,
}

const WINDOWS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)];

impl LimitText {
    /// Reads `calls <= 25 per minute` or `sum("/amount") <= 1000 per day`.
    ///
    /// # Errors
    /// What a limit looks like.
    pub(super) fn parse(text: &str) -> Result<LimitText, String> {
        let wrong = || {
            format!(
                "{text:?} is no limit: write 'calls <= 25 per minute' or 'sum(\"/amount\") <= 1000 per day'"
            )
        };
        let (counted, rest) = text.split_once("<=").ok_or_else(wrong)?;
        let (most, window) = rest.split_once(" per ").ok_or_else(wrong)?;
        let unit = WINDOWS.iter().find(|(name, _)| *name == window.trim()).ok_or_else(wrong)?;
        let most: f64 = most.trim().parse().map_err(|_| wrong())?;
        if !(most.is_finite() && most >= 0.0) {
            return Err(wrong());
        }
        let (counted, most) = match counted.trim() {
            "calls" if most.fract() == 0.0 => (Counted::Calls, whole(most)),
            sum => {
                let pointer = sum.strip_prefix("sum(\"").and_then(|rest| rest.strip_suffix("\")"));
                (Counted::Sum(Pointer::parse(pointer.ok_or_else(wrong)?)?), parts(most, f64::floor))
            }
        };
        Ok(LimitText { counted, most, window: Duration::from_secs(unit.1) })
    }

    pub(super) fn into_limit(self, tools: Vec<(RulePattern, Position)>, per: Per, title: Arc<str>) -> Limit {
        let LimitText { counted, most, window } = self;
        Limit { tools, per, counted, most, window, title }
    }
}

/// A number in parts. Where its decimals have no exact binary form, as those of 2.01, the nearest part is meant; other
/// numbers are rounded in this direction.
fn parts(number: f64, round: fn(f64) -> f64) -> i128 {
    let parts = number * PARTS;
    let nearest = parts.round();
    whole(if (parts - nearest).abs() <= nearest.abs() * f64::EPSILON { nearest } else { round(parts) })
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn whole(number: f64) -> i128 {
    number as i128
}

impl Limit {
    /// True when it counts calls of this target.
    pub(super) fn names(&self, server: &str, target: &CallTarget) -> bool {
        let label = target.label();
        self.tools.iter().any(|(pattern, _)| pattern.matches(server, label, Exactness::Loose))
    }

    /// The pointer of a sum.
    pub(super) fn pointer(&self) -> Option<&Pointer> {
        match &self.counted {
            Counted::Calls => None,
            Counted::Sum(pointer) => Some(pointer),
        }
    }

    /// A digest of what it counts: tools, callers, argument and window. An edit elsewhere in the file, or of the highest
    /// number, leaves it the same limit, so the uses before the edit count.
    fn name(&self) -> String {
        let mut tools: Vec<&str> = self.tools.iter().map(|(pattern, _)| pattern.text()).collect();
        tools.sort_unstable();
        tools.dedup();
        let per = match self.per {
            Per::Token => "token",
            Per::Session => "session",
            Per::All => "all",
        };
        let pointer = self.pointer().map(Pointer::text);
        let identity = json!([tools, per, pointer, self.window.as_secs()]).to_string();
        hex(&sha256(identity.as_bytes())[..NAME_BYTES])
    }

    /// What one call uses of it.
    ///
    /// # Errors
    /// The argument is absent, or no number.
    fn amount(&self, arguments: &Arguments<'_>) -> Result<i128, String> {
        let Counted::Sum(pointer) = &self.counted else { return Ok(1) };
        let wrong = || format!("the argument at {} is no number", pointer.text());
        let Found { values, is_exact, is_blocked, is_incomplete, .. } =
            arguments.find(pointer).ok_or_else(wrong)?;
        if is_blocked {
            return Err(format!("the way to the argument at {} has a value of another type", pointer.text()));
        }
        if values.is_empty() || is_incomplete {
            return Err(format!("the argument at {} is absent", pointer.text()));
        }
        if !is_exact {
            return Err(format!("the argument at {} is written in another case", pointer.text()));
        }
        values.iter().try_fold(0_i128, |sum, value| {
            // A negative amount gives nothing back.
            let number = value.json().and_then(|value| value.as_f64()).ok_or_else(wrong)?.abs();
            Ok(sum.saturating_add(parts(number, f64::ceil)))
        })
    }
}

/// One use of a limit by one call.
#[derive(Clone, Debug)]
pub(super) struct LimitUse {
    /// The limit, and over whose calls it counts.
    key: String,
    amount: i128,
    most: i128,
    window: Duration,
    title: Arc<str>,
    /// Only this process counts it: a run, or a session that is stored nowhere, belongs to one process.
    is_local: bool,
}

/// What calls count for, where a limit counts those of one session.
#[derive(Clone, Debug)]
pub(super) enum CountedSession {
    /// A session that outlives its process: its name is the same in every process.
    Stored(Arc<str>),
    /// One of this process, or a run without a session: no other process has this name.
    Local(String),
}

impl LimitUse {
    /// What a call uses of a limit. `session` is its session, or its run.
    ///
    /// # Errors
    /// The rule that denies the call, and why.
    pub(super) fn new(
        limit: &Limit,
        arguments: &Arguments<'_>,
        asker: &CallAsker<'_>,
        session: &CountedSession,
    ) -> Result<LimitUse, String> {
        let amount = limit.amount(arguments).map_err(|why| format!("{}: {why}", limit.title))?;
        let (whose, is_local) = match limit.per {
            Per::Token => (asker.token().unwrap_or_default(), false),
            Per::Session => match session {
                CountedSession::Stored(name) => (&**name, false),
                CountedSession::Local(name) => (&**name, true),
            },
            Per::All => ("", false),
        };
        let key = format!("{}\n{whose}", limit.name());
        let (most, window, title) = (limit.most, limit.window, limit.title.clone());
        Ok(LimitUse { key, amount, most, window, title, is_local })
    }

    /// One use of each limit: limits that count the same share their uses, and the lowest one decides.
    pub(super) fn merged(mut uses: Vec<LimitUse>) -> Vec<LimitUse> {
        uses.sort_by(|one, other| (&one.key, one.most).cmp(&(&other.key, other.most)));
        uses.dedup_by(|next, first| next.key == first.key);
        uses
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::RuleFile;
    use super::*;

    fn limit(text: &str) -> Limit {
        LimitText::parse(text).unwrap().into_limit(
            vec![(RulePattern::new("*"), (1, 1))],
            Per::All,
            "p:1".into(),
        )
    }

    fn of_no_session() -> CountedSession {
        CountedSession::Local(String::new())
    }

    fn used(limit: &Limit, arguments: &str) -> LimitUse {
        LimitUse::new(limit, &Arguments::new(arguments), &CallAsker::default(), &of_no_session()).unwrap()
    }

    /// Decimals have no exact binary form.
    #[test]
    fn a_sum_of_exactly_the_limit_is_allowed() {
        for cents in 0..100_000_u32 {
            let amount = format!("{}.{:02}", cents / 100, cents % 100);
            let sum = limit(&format!("sum(\"/amount\") <= {amount} per day"));
            let used = used(&sum, &format!("{{\"amount\": {amount}}}"));
            assert_eq!((used.amount, used.most), (i128::from(cents) * 10_000, i128::from(cents) * 10_000));
        }
        let sum = limit("sum(\"/amount\") <= 1 per day");
        assert_eq!(used(&sum, "{\"amount\": 0.0000001}").amount, 1);
        assert_eq!(used(&sum, "{\"amount\": 1.0000001}").amount, 1_000_001);
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let sum = limit("sum(\"/amount\") <= 5 per day");
        for arguments in ["{}", "{\"amount\": \"1\"}", "{\"amount\": null}", "[", "{\"amount\": 1e999}"] {
            assert!(
                LimitUse::new(&sum, &Arguments::new(arguments), &CallAsker::default(), &of_no_session())
                    .is_err(),
                "{arguments}"
            );
        }
        let nested = limit("sum(\"/items/*/amount\") <= 5 per day");
        for arguments in [
            "{\"items\": [{\"amount\": 1}, {}]}",
            "{\"items\": [{\"amount\": 1}, null]}",
            "{\"items\": [{\"amount\": 1}, \"x\"]}",
            "{\"items\": [{\"amount\": 1}, [9]]}",
            "{\"items\": 9}",
        ] {
            assert!(
                LimitUse::new(&nested, &Arguments::new(arguments), &CallAsker::default(), &of_no_session())
                    .is_err(),
                "{arguments}"
            );
        }
        assert_eq!(used(&nested, "{\"items\": [{\"amount\": 1}, {\"amount\": 2}]}").amount, 3_000_000);
        for text in [
            "calls < 5 per day",
            "calls <= 5",
            "calls <= x per day",
            "sum(/a) <= 5 per day",
            "calls <= 1.5 per day",
        ] {
            assert!(LimitText::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_the_same_until_what_it_counts_changes() {
        let parse = |file: &str, text: &str| {
            let text = format!("[[limit]]\n{text}\n");
            let limit = RuleFile::parse(file, &text).unwrap().limits.remove(0);
            limit.name()
        };
        let name = parse("p.toml", "tools = [\"a/*\", \"b/x\"]\nlimit = 'calls <= 5 per day'");
        for same in [
            "# A line above.\ntools = [\"a/*\", \"b/x\"]\nlimit = 'calls <= 5 per day'",
            "tools = [\"b/x\", \"a/*\"]\nlimit = 'calls <= 500 per day'",
            "tools = [\"a/*\", \"b/x\"]\nlimit = 'calls  <=  5 per day '\nper = \"all\"",
        ] {
            assert_eq!(parse("other.toml", same), name, "{same}");
        }
        for other in [
            "tools = [\"a/*\"]\nlimit = 'calls <= 5 per day'",
            "tools = [\"a/*\", \"b/x\"]\nlimit = 'calls <= 5 per hour'",
            "tools = [\"a/*\", \"b/x\"]\nlimit = 'sum(\"/n\") <= 5 per day'",
            "tools = [\"a/*\", \"b/x\"]\nper = \"token\"\nlimit = 'calls <= 5 per day'",
        ] {
            assert_ne!(parse("p.toml", other), name, "{other}");
        }
    }

    #[test]
    fn limits_that_count_the_same_share_their_uses() {
        let (low, high) = (limit("calls <= 2 per day"), limit("calls <= 3 per day"));
        let merged = LimitUse::merged(vec![used(&high, "{}"), used(&low, "{}")]);
        assert_eq!(merged.iter().map(|used| used.most).collect::<Vec<_>>(), [2]);
    }
}
