//! Builds dates from their parts (year, month, day), reads the parts of a date, and does calendar arithmetic such as
//! adding months.

use super::{DateTime, Duration, LocalDate, MICROS_PER_MILLI, MILLIS_PER_DAY, civil};
use jiff::Span;
use jiff::civil::Date;

/// Names of weekdays, Monday first, as Java spells them.
pub const WEEKDAYS: [&str; 7] =
    ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];

/// Names of months, as Java spells them.
pub const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];

impl LocalDate {
    /// The day of a year, month and day, if there is one.
    pub fn new(year: i64, month: i64, day: i64) -> Option<LocalDate> {
        let (year, month, day) = (year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?);
        LocalDate::from_civil(Date::new(year, month, day).ok()?)
    }

    /// The date with its parts.
    pub(crate) fn civil(self) -> Date {
        // Every valid day has a calendar form.
        civil(self.0).unwrap_or_default()
    }

    /// The day this many months later, or the last one of that month.
    pub fn plus_months(self, months: i64) -> Option<LocalDate> {
        let span = Span::new().try_months(months).ok()?;
        LocalDate::from_civil(civil(self.0)?.checked_add(span).ok()?)
    }
}

impl DateTime {
    /// Its day in UTC.
    pub fn date(self) -> LocalDate {
        // Instants are within the range of dates.
        LocalDate(self.millis().div_euclid(MILLIS_PER_DAY) as i32)
    }

    /// Milliseconds since midnight UTC.
    pub const fn millis_of_day(self) -> i64 {
        self.millis().rem_euclid(MILLIS_PER_DAY)
    }

    /// The instant this many milliseconds later.
    pub fn plus_millis(self, millis: i64) -> Option<DateTime> {
        let micros = self.0.checked_add(millis.checked_mul(MICROS_PER_MILLI)?)?;
        let instant = DateTime::from_millis(micros.div_euclid(MICROS_PER_MILLI))?;
        Some(DateTime(instant.0 + micros.rem_euclid(MICROS_PER_MILLI)))
    }

    /// The same time of day, on another day.
    pub fn on(self, date: LocalDate) -> Option<DateTime> {
        let days = date.epoch_day() - self.date().epoch_day();
        self.plus_millis(days.checked_mul(MILLIS_PER_DAY)?)
    }
}

impl Duration {
    /// A length of time.
    pub const fn from_millis(millis: i64) -> Duration {
        Duration(millis)
    }
}
