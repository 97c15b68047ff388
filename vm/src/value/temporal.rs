//! Dates, instants and durations as values: parsing, printing, conversion from and to numbers. They are scalars without
//! a heap node.
//!
//! There is no time zone data and no clock here: an offset in a text is applied, a text without one is UTC, and the
//! current time is a host call.
//!
//! Invariant: a [`LocalDate`] and a [`DateTime`] are always within the years that their texts can name, so printing
//! them cannot fail. An operation that would leave that range gives `None`.

pub mod calendar;

use jiff::civil::Date;
use jiff::fmt::rfc2822;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// Longest text that is parsed; every valid one is shorter.
const LONGEST_TEXT: usize = 64;

const MICROS_PER_MILLI: i64 = 1_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MILLIS_PER_SECOND: i64 = 1_000;
const MILLIS_PER_DAY: i64 = 86_400_000;

/// Integers below this are seconds since 1970, if both seconds and milliseconds are accepted.
const FIRST_MILLIS: u64 = 1_000_000_000_000;

const EPOCH: Date = Date::constant(1970, 1, 1);

/// A day of the calendar, as days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDate(i32);

/// A point of time, as microseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(i64);

/// A length of time in milliseconds; may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl LocalDate {
    /// Parses `YYYY-MM-DD`, and no other ISO 8601 form.
    pub fn parse(text: &str) -> Option<LocalDate> {
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let date = LocalDate::from_civil(text.parse().ok()?)?;
        // The library also accepts compact, week and annotated forms.
        (date.to_string() == text).then_some(date)
    }

    /// The day this many days after 1970-01-01.
    pub fn from_epoch_day(days: i64) -> Option<LocalDate> {
        let days = i32::try_from(days).ok()?;
        civil(days).map(|_| LocalDate(days))
    }

    fn from_civil(date: Date) -> Option<LocalDate> {
        let days = date.duration_since(EPOCH).as_hours() / 24;
        i32::try_from(days).ok().map(LocalDate)
    }

    /// Days since 1970-01-01.
    pub const fn epoch_day(self) -> i64 {
        self.0 as i64
    }

    /// The day this many days later.
    pub fn plus_days(self, days: i64) -> Option<LocalDate> {
        LocalDate::from_epoch_day(self.epoch_day().checked_add(days)?)
    }

    /// Midnight UTC of the day.
    pub fn midnight(self) -> Option<DateTime> {
        DateTime::from_millis(self.epoch_day() * MILLIS_PER_DAY)
    }
}

/// The calendar form of days since 1970-01-01.
fn civil(days: i32) -> Option<Date> {
    EPOCH.checked_add(SignedDuration::from_hours(i64::from(days) * 24)).ok()
}

impl DateTime {
    /// Parses `YYYY-MM-DDTHH:MM:SS` with an optional fraction and offset; without an offset it is UTC.
    pub fn parse(text: &str) -> Option<DateTime> {
        // A zone in brackets would need zone data.
        if text.len() > LONGEST_TEXT || text.contains('[') {
            return None;
        }
        LocalDate::parse(text.split_once('T')?.0)?;
        let pieces = Pieces::parse(text).ok()?;
        let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
        DateTime::from_timestamp(offset.to_timestamp(pieces.date().to_datetime(pieces.time()?)).ok()?)
    }

    /// Parses the date of a mail header, `Wed, 8 Jan 2026 14:30:00 +0000`; without an offset it is UTC, and the day
    /// of the week is not checked.
    pub fn parse_mail(text: &str) -> Option<DateTime> {
        const PARSER: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let timestamp = PARSER
            .parse_timestamp(text)
            .or_else(|_| PARSER.parse_timestamp(format!("{} +0000", text.trim_end())))
            .ok()?;
        DateTime::from_timestamp(timestamp)
    }

    /// The instant this many milliseconds after 1970.
    pub fn from_millis(millis: i64) -> Option<DateTime> {
        DateTime::from_timestamp(Timestamp::from_millisecond(millis).ok()?)
    }

    /// The instant of an integer that is either seconds or milliseconds since 1970: small ones are seconds.
    pub fn from_seconds_or_millis(number: i64) -> Option<DateTime> {
        let is_seconds = number.unsigned_abs() < FIRST_MILLIS;
        DateTime::from_millis(number.checked_mul(if is_seconds { MILLIS_PER_SECOND } else { 1 })?)
    }

    fn from_timestamp(timestamp: Timestamp) -> Option<DateTime> {
        let micros = timestamp.as_nanosecond().div_euclid(1_000);
        i64::try_from(micros).ok().map(DateTime)
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(MICROS_PER_MILLI)
    }

    /// The length of time from `self` to `end`.
    pub const fn until(self, end: DateTime) -> Duration {
        // Both are within 20,000 years of each other, which is far from overflow.
        Duration((end.0 - self.0) / MICROS_PER_MILLI)
    }

    /// Microseconds since 1970.
    pub(crate) const fn micros(self) -> i64 {
        self.0
    }
}

impl Duration {
    /// Milliseconds.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole days, cut towards zero.
    pub const fn days(self) -> i64 {
        self.0 / MILLIS_PER_DAY
    }
}

/// `YYYY-MM-DD`.
impl fmt::Display for LocalDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match civil(self.0) {
            Some(date) => date.fmt(f),
            None => Err(fmt::Error),
        }
    }
}

/// `YYYY-MM-DDTHH:MM:SSZ`, with a fraction of three or six digits if there is one.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(timestamp) = Timestamp::from_microsecond(self.0) else { return Err(fmt::Error) };
        if self.0 % MICROS_PER_SECOND == 0 {
            write!(f, "{timestamp:.0}")
        } else if self.0 % MICROS_PER_MILLI == 0 {
            write!(f, "{timestamp:.3}")
        } else {
            write!(f, "{timestamp:.6}")
        }
    }
}

/// `#duration[…ms]`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#duration[{}ms]", self.0)
    }
}
