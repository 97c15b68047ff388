//! Implements the builtins, mostly named as in Java, that make dates, times and durations from numbers, read parts of
//! them (year, hour), and add weeks, months or hours. Most builtins for parsing and comparing, and those for adding
//! days, are in `dates`.

use super::dates::{date_time, duration, expected, local_date, now_as, out_of_range, parse, read_date};
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::Known;
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::value::Value;
use crate::value::temporal::calendar::{MONTHS, WEEKDAYS};
use crate::value::temporal::{DateTime, Duration, LocalDate};
use jiff::civil::Date;

const INTEROP: Category = Category::Interop;
const CORE: Category = Category::Core;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("parse-date", CORE, "1", "(parse-date text)", "The LocalDate or DateTime that the text is, or nil.", parse_date),
    direct("inst?", CORE, "1", "(inst? x)", "True for a DateTime.", |_cx, a| Ok(Value::Bool(matches!(a[0], Value::DateTime(_))))).total(),
    direct("inst-ms", CORE, "1", "(inst-ms date-time)", "Milliseconds since 1970.", |_cx, a| millis(a, "inst-ms", 1)),
    direct("iso-week", CORE, "1", "(iso-week date)", "The week of ISO 8601, 1 to 53.", |_cx, a| part(a, "iso-week", |day| day.iso_week_date().week())),
    direct("iso-week-year", CORE, "1", "(iso-week-year date)", "The year that the week of ISO 8601 belongs to.", |_cx, a| part(a, "iso-week-year", |day| day.iso_week_date().year())),
    direct("LocalDate/of", INTEROP, "3", "(LocalDate/of year month day)", "The LocalDate of three numbers.", local_date_of),
    direct("LocalDate/ofEpochDay", INTEROP, "1", "(LocalDate/ofEpochDay days)", "The LocalDate so many days after 1970-01-01.", |_cx, a| made(LocalDate::from_epoch_day(number(a, 0, "LocalDate/ofEpochDay")?).map(Value::LocalDate), "LocalDate/ofEpochDay")),
    callback("LocalDate/now", INTEROP, "0", "(LocalDate/now)", "Today in UTC.", |_cx, _a| Ok(now_as(Some(Known::ToLocalDate)))),
    callback("Instant/now", INTEROP, "0", "(Instant/now)", "The DateTime of now, the same during a whole program.", |_cx, _a| Ok(now_as(None))),
    direct("Instant/ofEpochMilli", INTEROP, "1", "(Instant/ofEpochMilli millis)", "The DateTime of milliseconds since 1970.", |_cx, a| instant(a, "Instant/ofEpochMilli", 1)),
    direct("Instant/ofEpochSecond", INTEROP, "1", "(Instant/ofEpochSecond seconds)", "The DateTime of seconds since 1970.", |_cx, a| instant(a, "Instant/ofEpochSecond", SECOND)),
    direct("OffsetDateTime/parse", INTEROP, "1", "(OffsetDateTime/parse text)", "The same as `parse`: the DateTime in UTC.", parse),
    direct("ZonedDateTime/parse", INTEROP, "1", "(ZonedDateTime/parse text)", "The same as `parse`, of a text with an offset.", parse),
    direct("LocalDateTime/parse", INTEROP, "1", "(LocalDateTime/parse text)", "The same as `parse`: without an offset it is UTC.", parse),
    direct("Duration/ofMillis", INTEROP, "1", "(Duration/ofMillis n)", "The Duration of n milliseconds.", |_cx, a| length(a, "Duration/ofMillis", 1)),
    direct("Duration/ofSeconds", INTEROP, "1", "(Duration/ofSeconds n)", "The Duration of n seconds.", |_cx, a| length(a, "Duration/ofSeconds", SECOND)),
    direct("Duration/ofMinutes", INTEROP, "1", "(Duration/ofMinutes n)", "The Duration of n minutes.", |_cx, a| length(a, "Duration/ofMinutes", MINUTE)),
    direct("Duration/ofHours", INTEROP, "1", "(Duration/ofHours n)", "The Duration of n hours.", |_cx, a| length(a, "Duration/ofHours", HOUR)),
    direct("Duration/ofDays", INTEROP, "1", "(Duration/ofDays n)", "The Duration of n days.", |_cx, a| length(a, "Duration/ofDays", DAY)),
    direct(".getYear", INTEROP, "1", "(.getYear date)", "The year.", |_cx, a| part(a, ".getYear", Date::year)),
    direct(".getMonthValue", INTEROP, "1", "(.getMonthValue date)", "The month, 1 to 12.", |_cx, a| part(a, ".getMonthValue", Date::month)),
    direct(".getMonth", INTEROP, "1", "(.getMonth date)", "The month as text, \"JANUARY\".", |cx, a| name(cx, a, ".getMonth", Date::month, &MONTHS)),
    direct(".getDayOfMonth", INTEROP, "1", "(.getDayOfMonth date)", "The day of the month.", |_cx, a| part(a, ".getDayOfMonth", Date::day)),
    direct(".getDayOfYear", INTEROP, "1", "(.getDayOfYear date)", "The day of the year, 1 to 366.", |_cx, a| part(a, ".getDayOfYear", Date::day_of_year)),
    direct(".getDayOfWeek", INTEROP, "1", "(.getDayOfWeek date)", "The weekday as text, \"MONDAY\"; `.getValue` gives its number.", |cx, a| name(cx, a, ".getDayOfWeek", |day| day.weekday().to_monday_one_offset(), &WEEKDAYS)),
    direct(".getValue", INTEROP, "1", "(.getValue weekday-or-month)", "The number of a weekday (Monday is 1) or month.", value_of_name),
    direct(".lengthOfMonth", INTEROP, "1", "(.lengthOfMonth date)", "Days of its month.", |_cx, a| part(a, ".lengthOfMonth", Date::days_in_month)),
    direct(".isLeapYear", INTEROP, "1", "(.isLeapYear date)", "Whether its year has 366 days.", |_cx, a| Ok(Value::Bool(day_of(a, ".isLeapYear")?.civil().in_leap_year()))),
    direct(".withDayOfMonth", INTEROP, "2", "(.withDayOfMonth date day)", "The date with another day of the month.", with_day_of_month),
    direct(".getHour", INTEROP, "1", "(.getHour date-time)", "The hour in UTC.", |_cx, a| clock(a, ".getHour", HOUR, 24)),
    direct(".getMinute", INTEROP, "1", "(.getMinute date-time)", "The minute.", |_cx, a| clock(a, ".getMinute", MINUTE, 60)),
    direct(".getSecond", INTEROP, "1", "(.getSecond date-time)", "The second.", |_cx, a| clock(a, ".getSecond", SECOND, 60)),
    direct(".toEpochMilli", INTEROP, "1", "(.toEpochMilli date-time)", "Milliseconds since 1970.", |_cx, a| millis(a, ".toEpochMilli", 1)),
    direct(".getEpochSecond", INTEROP, "1", "(.getEpochSecond date-time)", "Seconds since 1970.", |_cx, a| millis(a, ".getEpochSecond", SECOND)),
    direct(".toEpochSecond", INTEROP, "1", "(.toEpochSecond date-time)", "Seconds since 1970.", |_cx, a| millis(a, ".toEpochSecond", SECOND)),
    direct(".toLocalDate", INTEROP, "1", "(.toLocalDate date-time)", "Its LocalDate in UTC.", |_cx, a| Ok(Value::LocalDate(day_of(a, ".toLocalDate")?))).known(Known::ToLocalDate),
    direct(".toInstant", INTEROP, "1", "(.toInstant date-time)", "The same DateTime.", |_cx, a| Ok(Value::DateTime(date_time(a, 0, ".toInstant")?))),
    direct(".atStartOfDay", INTEROP, "1", "(.atStartOfDay date)", "The DateTime of midnight UTC.", |_cx, a| made(local_date(a, ".atStartOfDay")?.midnight().map(Value::DateTime), ".atStartOfDay")),
    direct(".isEqual", INTEROP, "2", "(.isEqual date other)", "Whether two dates of one type are the same.", |_cx, a| Ok(Value::Bool(match (&a[0], &a[1]) {
        (Value::LocalDate(a), Value::LocalDate(b)) => a == b,
        (Value::DateTime(a), Value::DateTime(b)) => a == b,
        (a, _) => return Err(expected(".isEqual", "two dates of one type", a)),
    }))),
    direct(".plusWeeks", INTEROP, "2", "(.plusWeeks date n)", "The date n weeks later.", |_cx, a| later(a, ".plusWeeks", LocalDate::plus_days, 7)),
    direct(".minusWeeks", INTEROP, "2", "(.minusWeeks date n)", "The date n weeks earlier.", |_cx, a| later(a, ".minusWeeks", LocalDate::plus_days, -7)),
    direct(".plusMonths", INTEROP, "2", "(.plusMonths date n)", "The date n months later, or the last day of that month.", |_cx, a| later(a, ".plusMonths", LocalDate::plus_months, 1)),
    direct(".minusMonths", INTEROP, "2", "(.minusMonths date n)", "The date n months earlier.", |_cx, a| later(a, ".minusMonths", LocalDate::plus_months, -1)),
    direct(".plusYears", INTEROP, "2", "(.plusYears date n)", "The date n years later.", |_cx, a| later(a, ".plusYears", LocalDate::plus_months, 12)),
    direct(".minusYears", INTEROP, "2", "(.minusYears date n)", "The date n years earlier.", |_cx, a| later(a, ".minusYears", LocalDate::plus_months, -12)),
    direct(".plusHours", INTEROP, "2", "(.plusHours date-time n)", "The DateTime n hours later.", |_cx, a| plus_time(a, ".plusHours", HOUR)),
    direct(".minusHours", INTEROP, "2", "(.minusHours date-time n)", "The DateTime n hours earlier.", |_cx, a| plus_time(a, ".minusHours", -HOUR)),
    direct(".plusMinutes", INTEROP, "2", "(.plusMinutes date-time n)", "The DateTime n minutes later.", |_cx, a| plus_time(a, ".plusMinutes", MINUTE)),
    direct(".minusMinutes", INTEROP, "2", "(.minusMinutes date-time n)", "The DateTime n minutes earlier.", |_cx, a| plus_time(a, ".minusMinutes", -MINUTE)),
    direct(".plusSeconds", INTEROP, "2", "(.plusSeconds date-time n)", "The DateTime n seconds later.", |_cx, a| plus_time(a, ".plusSeconds", SECOND)),
    direct(".minusSeconds", INTEROP, "2", "(.minusSeconds date-time n)", "The DateTime n seconds earlier.", |_cx, a| plus_time(a, ".minusSeconds", -SECOND)),
    direct(".plusMillis", INTEROP, "2", "(.plusMillis date-time n)", "The DateTime n milliseconds later.", |_cx, a| plus_time(a, ".plusMillis", 1)),
    direct(".minusMillis", INTEROP, "2", "(.minusMillis date-time n)", "The DateTime n milliseconds earlier.", |_cx, a| plus_time(a, ".minusMillis", -1)),
    direct(".plus", INTEROP, "2", "(.plus date-time duration)", "The DateTime later by a Duration.", |_cx, a| plus_duration(a, ".plus", 1)),
    direct(".minus", INTEROP, "2", "(.minus date-time duration)", "The DateTime earlier by a Duration.", |_cx, a| plus_duration(a, ".minus", -1)),
    direct(".toHours", INTEROP, "1", "(.toHours duration)", "The whole hours of a Duration.", |_cx, a| whole(a, ".toHours", HOUR)),
    direct(".toMinutes", INTEROP, "1", "(.toMinutes duration)", "The whole minutes of a Duration.", |_cx, a| whole(a, ".toMinutes", MINUTE)),
    direct(".toSeconds", INTEROP, "1", "(.toSeconds duration)", "The whole seconds of a Duration.", |_cx, a| whole(a, ".toSeconds", SECOND)),
    direct(".getSeconds", INTEROP, "1", "(.getSeconds duration)", "The whole seconds of a Duration.", |_cx, a| whole(a, ".getSeconds", SECOND)),
];

fn made(value: Option<Value>, name: &str) -> Result<Value> {
    value.ok_or_else(|| out_of_range(name))
}

fn number(arguments: &[Value], index: usize, name: &str) -> Result<i64> {
    match &arguments[index] {
        Value::Int(number) => Ok(*number),
        Value::BigInt(_) => Err(out_of_range(name)),
        other => Err(expected(name, "an integer", other)),
    }
}

/// The day of a date, or of an instant in UTC.
fn day_of(arguments: &[Value], name: &str) -> Result<LocalDate> {
    match &arguments[0] {
        Value::LocalDate(date) => Ok(*date),
        Value::DateTime(date_time) => Ok(date_time.date()),
        other => Err(expected(name, "LocalDate or DateTime", other)),
    }
}

fn parse_date(cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    Ok(match &arguments[0] {
        date @ (Value::LocalDate(_) | Value::DateTime(_)) => date.clone(),
        Value::Str(node) => read_date(cx.read(node)?).unwrap_or_default(),
        _ => Value::Nil,
    })
}

/// A number that is part of a date.
fn part<N: Into<i64>>(arguments: &[Value], name: &str, of: fn(Date) -> N) -> Result<Value> {
    Ok(Value::Int(of(day_of(arguments, name)?.civil()).into()))
}

fn name(
    cx: &mut Context,
    arguments: &[Value],
    name: &str,
    number: fn(Date) -> i8,
    names: &[&'static str],
) -> Result<Value> {
    let number = number(day_of(arguments, name)?.civil());
    let name = usize::try_from(number - 1).ok().and_then(|at| names.get(at));
    cx.copy_text(name.copied().unwrap_or_default())
}

fn value_of_name(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    let text = match &arguments[0] {
        Value::Str(node) => node.preview(),
        _ => "",
    };
    let place = |names: &[&str]| names.iter().position(|name| *name == text);
    let found = place(&WEEKDAYS).or_else(|| place(&MONTHS));
    let number = found.map(|at| Value::Int(at as i64 + 1));
    number.ok_or_else(|| expected(".getValue", "the name of a weekday or month", &arguments[0]))
}

fn local_date_of(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    const NAME: &str = "LocalDate/of";
    let [year, month, day] = [0, 1, 2].map(|at| number(arguments, at, NAME));
    let (year, month, day) = (year?, month?, day?);
    day_in(NAME, year, month, day).map(Value::LocalDate)
}

fn day_in(name: &str, year: i64, month: i64, day: i64) -> Result<LocalDate> {
    LocalDate::new(year, month, day).ok_or_else(|| {
        Fault::type_error(format_args!("{name}: there is no day {day} of month {month} in the year {year}"))
    })
}

fn with_day_of_month(_cx: &mut Context, arguments: &mut [Value]) -> Result<Value> {
    const NAME: &str = ".withDayOfMonth";
    let (date, day) = (day_of(arguments, NAME)?, number(arguments, 1, NAME)?);
    let civil = date.civil();
    let changed = day_in(NAME, civil.year().into(), civil.month().into(), day)?;
    on_day(&arguments[0], Some(changed), NAME)
}

/// The same date, or the same time of day, on another day.
fn on_day(like: &Value, date: Option<LocalDate>, name: &str) -> Result<Value> {
    made(
        match like {
            Value::DateTime(instant) => date.and_then(|date| instant.on(date)).map(Value::DateTime),
            _ => date.map(Value::LocalDate),
        },
        name,
    )
}

/// The date that `step` finds `n * unit` days or months later.
pub(super) fn later(
    arguments: &[Value],
    name: &str,
    step: fn(LocalDate, i64) -> Option<LocalDate>,
    unit: i64,
) -> Result<Value> {
    let date = day_of(arguments, name)?;
    let count = number(arguments, 1, name)?.checked_mul(unit);
    on_day(&arguments[0], count.and_then(|count| step(date, count)), name)
}

fn plus_time(arguments: &[Value], name: &str, unit: i64) -> Result<Value> {
    let instant = date_time(arguments, 0, name)?;
    let millis = number(arguments, 1, name)?.checked_mul(unit);
    made(millis.and_then(|millis| instant.plus_millis(millis)).map(Value::DateTime), name)
}

fn plus_duration(arguments: &[Value], name: &str, sign: i64) -> Result<Value> {
    let instant = date_time(arguments, 0, name)?;
    let Value::Duration(length) = &arguments[1] else {
        return Err(expected(name, "Duration", &arguments[1]));
    };
    made(instant.plus_millis(sign * length.millis()).map(Value::DateTime), name)
}

fn clock(arguments: &[Value], name: &str, unit: i64, of: i64) -> Result<Value> {
    Ok(Value::Int(date_time(arguments, 0, name)?.millis_of_day() / unit % of))
}

fn millis(arguments: &[Value], name: &str, unit: i64) -> Result<Value> {
    Ok(Value::Int(date_time(arguments, 0, name)?.millis().div_euclid(unit)))
}

fn instant(arguments: &[Value], name: &str, unit: i64) -> Result<Value> {
    let millis = number(arguments, 0, name)?.checked_mul(unit);
    made(millis.and_then(DateTime::from_millis).map(Value::DateTime), name)
}

fn length(arguments: &[Value], name: &str, unit: i64) -> Result<Value> {
    /// Far beyond the range of dates, and far from overflow.
    const LONGEST: i64 = 1 << 53;
    let millis = number(arguments, 0, name)?.checked_mul(unit);
    let length = millis.filter(|millis| (-LONGEST..=LONGEST).contains(millis));
    made(length.map(|millis| Value::Duration(Duration::from_millis(millis))), name)
}

fn whole(arguments: &[Value], name: &str, unit: i64) -> Result<Value> {
    Ok(Value::Int(duration(arguments, name)?.millis() / unit))
}
