//! Limits over many calls: how many a minute, and sums of an argument a day.
//!
//! Uses are kept in the state folder, under a lock, so all processes of a user share them and none is lost when a process
//! ends. Without a state folder they are kept in memory.

use super::condition::{Found, Pointer};
use super::pattern::{Exactness, RulePattern};
use super::rules::Position;
use crate::files::{self, FileAccess, LinkRule};
use crate::run::client::asker::CallAsker;
use crate::sync::Locked;
use crate::tools::CallTarget;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Parts of a sum's unit: sums are whole numbers of them, rounded up.
const PARTS: f64 = 1_000_000.0;

/// Uses of one limit that are kept one by one; beyond that, neighbours become one.
const MOST_USES: usize = 10_000;

/// Name of the file in the state folder.
const FILE: &str = "limits.json";

/// Name of its lock.
const LOCK: &str = "limits.lock";

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
                (Counted::Sum(Pointer::parse(pointer.ok_or_else(wrong)?)?), whole((most * PARTS).floor()))
            }
        };
        Ok(LimitText { counted, most, window: Duration::from_secs(unit.1) })
    }

    pub(super) fn into_limit(self, tools: Vec<(RulePattern, Position)>, per: Per, title: Arc<str>) -> Limit {
        let LimitText { counted, most, window } = self;
        Limit { tools, per, counted, most, window, title }
    }
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

    /// What one call uses of it.
    ///
    /// # Errors
    /// The argument is absent, or no number.
    fn amount(&self, arguments: &str) -> Result<i128, String> {
        let Counted::Sum(pointer) = &self.counted else { return Ok(1) };
        let wrong = || format!("the argument at {} is no number", pointer.text());
        let Found { values, is_blocked, is_incomplete, .. } = pointer.values(arguments).ok_or_else(wrong)?;
        if is_blocked {
            return Err(format!("the way to the argument at {} has a value of another type", pointer.text()));
        }
        if values.is_empty() || is_incomplete {
            return Err(format!("the argument at {} is absent", pointer.text()));
        }
        values.iter().try_fold(0_i128, |sum, value| {
            let number: Json = serde_json::from_str(value.get()).map_err(|_| wrong())?;
            // A negative amount gives nothing back.
            let number = number.as_f64().ok_or_else(wrong)?.abs();
            Ok(sum.saturating_add(whole((number * PARTS).ceil())))
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
}

impl LimitUse {
    /// What a call uses of a limit. `session` names its session, or its run.
    ///
    /// # Errors
    /// The rule that denies the call, and why.
    pub(super) fn new(
        limit: &Limit,
        arguments: &str,
        asker: &CallAsker<'_>,
        session: &str,
    ) -> Result<LimitUse, String> {
        let amount = limit.amount(arguments).map_err(|why| format!("{}: {why}", limit.title))?;
        let whose = match limit.per {
            Per::Token => asker.token().unwrap_or_default(),
            Per::Session => session,
            Per::All => "",
        };
        let key = format!("{}\n{whose}", limit.title);
        Ok(LimitUse { key, amount, most: limit.most, window: limit.window, title: limit.title.clone() })
    }
}

/// Uses within a window: milliseconds since 1970, and amounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Uses {
    window: u64,
    uses: VecDeque<(u64, i128)>,
}

impl Uses {
    fn expire(&mut self, now: u64) {
        let since = now.saturating_sub(self.window);
        while self.uses.front().is_some_and(|(at, _)| *at <= since) {
            self.uses.pop_front();
        }
        // A clock that was set back must not make uses last for ever.
        self.uses.iter_mut().for_each(|(at, _)| *at = (*at).min(now));
    }

    fn sum(&self) -> i128 {
        self.uses.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    fn add(&mut self, now: u64, amount: i128) {
        match self.uses.back_mut().filter(|(at, _)| *at == now) {
            Some((_, sum)) => *sum = sum.saturating_add(amount),
            None => self.uses.push_back((now, amount)),
        }
        if self.uses.len() > MOST_USES {
            // The older of two neighbours takes the time of the younger, so nothing expires early.
            if let (Some((_, old)), Some((_, next))) = (self.uses.pop_front(), self.uses.front_mut()) {
                *next = next.saturating_add(old);
            }
        }
    }
}

/// The uses of all limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Book(BTreeMap<String, Uses>);

impl Book {
    /// Takes all of these uses, or none.
    fn take(&mut self, uses: &[LimitUse], now: u64) -> Result<(), Arc<str>> {
        self.0.retain(|_, known| {
            known.expire(now);
            !known.uses.is_empty()
        });
        for used in uses {
            let before = self.0.get(&used.key).map_or(0, Uses::sum);
            if before.saturating_add(used.amount) > used.most {
                return Err(used.title.clone());
            }
        }
        for used in uses {
            let window = u64::try_from(used.window.as_millis()).unwrap_or(u64::MAX);
            let known = self.0.entry(used.key.clone()).or_default();
            known.window = window;
            known.add(now, used.amount);
        }
        Ok(())
    }
}

/// Where uses are kept.
pub(super) struct LimitBook {
    /// `None`: in memory.
    folder: Option<PathBuf>,
    memory: Mutex<Book>,
}

/// Why a call was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitRefusal {
    /// This limit is used up.
    UsedUp(Arc<str>),
    /// The uses cannot be read or written, so it is not known.
    Unknown(String),
}

impl LimitBook {
    pub(super) fn new(folder: Option<PathBuf>) -> LimitBook {
        LimitBook { folder, memory: Mutex::default() }
    }

    /// Takes all of these uses, or none. It may wait for the lock of another process, so it runs on a blocking thread.
    pub(super) fn take(&self, uses: &[LimitUse]) -> Result<(), LimitRefusal> {
        self.take_at(uses, milliseconds)
    }

    /// [`LimitBook::take`] with this clock. It is read under the lock: a time from before the wait would be older than
    /// the uses that others have taken meanwhile.
    fn take_at(&self, uses: &[LimitUse], clock: impl FnOnce() -> u64) -> Result<(), LimitRefusal> {
        // One process takes one at a time; the file lock is for the others.
        let mut memory = self.memory.locked();
        let Some(folder) = &self.folder else {
            return memory.take(uses, clock()).map_err(LimitRefusal::UsedUp);
        };
        let unknown = |error: io::Error| LimitRefusal::Unknown(error.to_string());
        take_in_file(folder, uses, clock).map_err(unknown)?.map_err(LimitRefusal::UsedUp)
    }
}

/// The time, in milliseconds since 1970.
fn milliseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn take_in_file(
    folder: &Path,
    uses: &[LimitUse],
    clock: impl FnOnce() -> u64,
) -> io::Result<Result<(), Arc<str>>> {
    files::private_folder(folder)?;
    let lock = files::open_to_lock(&folder.join(LOCK))?;
    lock.lock()?;
    let path = folder.join(FILE);
    let mut book = match files::read_text(&path) {
        Ok(text) => serde_json::from_str::<Book>(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Book::default(),
        Err(error) => return Err(error),
    };
    let taken = book.take(uses, clock());
    if taken.is_ok() {
        let text = serde_json::to_vec(&book)?;
        files::replace(&path, &text, LinkRule::Replace, FileAccess::Private)?;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        LimitText::parse(text).unwrap().into_limit(
            vec![(RulePattern::new("*"), (1, 1))],
            Per::All,
            "p:1".into(),
        )
    }

    fn used(limit: &Limit, arguments: &str) -> LimitUse {
        LimitUse::new(limit, arguments, &CallAsker::default(), "").unwrap()
    }

    #[test]
    fn windows_slide_and_amounts_add_up() {
        let (calls, sum) = (limit("calls <= 2 per minute"), limit("sum(\"/amount\") <= 0.3 per day"));
        let mut book = Book::default();
        let mut take = |limit: &Limit, arguments: &str, now: u64| {
            book.take(&[used(limit, arguments)], 1_000_000 + now).is_ok()
        };
        assert!(take(&calls, "{}", 0) && take(&calls, "{}", 30_000) && !take(&calls, "{}", 59_999));
        assert!(take(&calls, "{}", 60_000) && !take(&calls, "{}", 60_001));
        let mut book = Book::default();
        let mut take = |arguments: &str, now: u64| book.take(&[used(&sum, arguments)], now).is_ok();
        assert!(
            take("{\"amount\": 0.1}", 1)
                && take("{\"amount\": 0.2}", 1)
                && !take("{\"amount\": 0.000001}", 2)
        );
        // A negative amount gives nothing back, and a second one counts too.
        let mut book = Book::default();
        let mut take = |arguments: &str| book.take(&[used(&sum, arguments)], 1).is_ok();
        assert!(
            !take("{\"amount\": -1}")
                && !take("{\"amount\": 0.1, \"amount\": 0.3}")
                && take("{\"amount\": 0.3}")
        );
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let sum = limit("sum(\"/amount\") <= 5 per day");
        for arguments in ["{}", "{\"amount\": \"1\"}", "{\"amount\": null}", "[", "{\"amount\": 1e999}"] {
            assert!(LimitUse::new(&sum, arguments, &CallAsker::default(), "").is_err(), "{arguments}");
        }
        let nested = limit("sum(\"/items/*/amount\") <= 5 per day");
        for arguments in [
            "{\"items\": [{\"amount\": 1}, {}]}",
            "{\"items\": [{\"amount\": 1}, null]}",
            "{\"items\": [{\"amount\": 1}, \"x\"]}",
            "{\"items\": [{\"amount\": 1}, [9]]}",
            "{\"items\": 9}",
        ] {
            assert!(LimitUse::new(&nested, arguments, &CallAsker::default(), "").is_err(), "{arguments}");
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
    fn the_clock_is_read_under_the_lock() {
        let calls = limit("calls <= 1 per day");
        let book = LimitBook::new(None);
        let clock = || {
            assert!(book.memory.try_lock().is_err());
            1
        };
        assert_eq!(book.take_at(&[used(&calls, "{}")], clock), Ok(()));
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("limits");
        let book = LimitBook::new(Some(state.clone()));
        let clock = || {
            let other = files::open_to_lock(&state.join(LOCK)).unwrap();
            assert!(other.try_lock().is_err());
            1
        };
        assert_eq!(book.take_at(&[used(&calls, "{}")], clock), Ok(()));
    }

    #[test]
    fn a_shared_file_counts_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("limits");
        let calls = limit("calls <= 50 per day");
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    // Each has a book of its own, as each process has.
                    let (book, calls) = (LimitBook::new(Some(state.clone())), &calls);
                    scope.spawn(move || (0..25).filter(|_| book.take(&[used(calls, "{}")]).is_ok()).count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 50);
    }
}
