//! Tests of dates, instants and durations.

use super::with_context;
use crate::json::{Keys, encode};
use crate::print;
use crate::value::Value;
use crate::value::relation::{equal, hash, order};
use crate::value::temporal::{DateTime, Duration, LocalDate};

fn date(text: &str) -> Option<String> {
    LocalDate::parse(text).map(|date| date.to_string())
}

fn date_time(text: &str) -> Option<String> {
    DateTime::parse(text).map(|instant| instant.to_string())
}

#[test]
fn dates_have_one_form() {
    for text in ["2026-01-01", "2024-02-29", "1969-12-31", "0000-01-01", "9999-12-31"] {
        assert_eq!(date(text).as_deref(), Some(text));
    }
    for text in [
        "",
        "nope",
        "2026-1-1",
        "20260101",
        "2026-02-29",
        "2026-13-01",
        "2026-W01-1",
        "2026-01-01T00:00",
        "2026-01-01 ",
        "2026-01-01[UTC]",
        "12026-01-01",
        "２０２６-01-01",
    ] {
        assert_eq!(date(text), None, "{text}");
    }
    assert_eq!(LocalDate::parse(&"2".repeat(1 << 20)), None);
}

#[test]
fn days_are_counted_from_1970_and_end_with_the_calendar() {
    for (text, days) in
        [("1970-01-01", 0), ("1969-12-31", -1), ("2024-01-02", 19_724), ("0000-01-01", -719_528)]
    {
        assert_eq!(LocalDate::parse(text).map(LocalDate::epoch_day), Some(days));
        assert_eq!(LocalDate::from_epoch_day(days).map(|date| date.to_string()).as_deref(), Some(text));
    }
    let last = LocalDate::parse("9999-12-31").unwrap();
    assert_eq!(last.plus_days(1), None);
    assert_eq!(last.plus_days(i64::MAX), None);
    assert_eq!(LocalDate::from_epoch_day(i64::MIN), None);
    // Values at the limits print and read back.
    let early = LocalDate::parse("0000-01-01").unwrap().plus_days(-1).unwrap();
    assert_eq!(LocalDate::parse(&early.to_string()), Some(early));
}

#[test]
fn instants_are_utc() {
    for (text, expected) in [
        ("2026-01-01T08:15:00", "2026-01-01T08:15:00Z"),
        ("2026-01-01T08:15:00Z", "2026-01-01T08:15:00Z"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00-0530", "2026-01-01T05:30:00Z"),
        ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.500Z"),
        ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(date_time(text).as_deref(), Some(expected), "{text}");
    }
    for text in [
        "2026-13-99T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01",
        "T",
        "20260101T000000Z",
        "2026-01-01T00:00:00[Europe/Berlin]",
        "2026-01-01T00:00:00+02:00[Europe/Berlin]",
        "2026-01-01Tnoon",
    ] {
        assert_eq!(date_time(text), None, "{text}");
    }
}

#[test]
fn milliseconds_round_down() {
    assert_eq!(DateTime::parse("1969-12-31T23:59:59.9995Z").map(DateTime::millis), Some(-1));
    assert_eq!(
        DateTime::from_millis(-1).map(|instant| instant.to_string()).as_deref(),
        Some("1969-12-31T23:59:59.999Z")
    );
    assert_eq!(DateTime::from_millis(i64::MAX), None);
    assert_eq!(DateTime::from_seconds_or_millis(i64::MIN), None);
    assert_eq!(DateTime::from_seconds_or_millis(999_999_999_999), None);
}

#[test]
fn mail_dates_are_read() {
    for (text, expected) in [
        ("Wed, 8 Jan 2026 14:30:00 +0000", Some("2026-01-08T14:30:00Z")),
        ("Wed, 8 Jan 2026 14:30:00", Some("2026-01-08T14:30:00Z")),
        ("8 Jan 2026 14:30 +0200", Some("2026-01-08T12:30:00Z")),
        ("Thu, 8 Jan 2026 14:30:00 GMT", Some("2026-01-08T14:30:00Z")),
        ("not-a-date", None),
        ("((((((((((((((((((((((((((((((((((", None),
    ] {
        let read = DateTime::parse_mail(text).map(|instant| instant.to_string());
        assert_eq!(read.as_deref(), expected, "{text}");
    }
}

#[test]
fn lengths_of_time_cut_towards_zero() {
    let between = |from: &str, to: &str| -> Duration {
        DateTime::parse(from).unwrap().until(DateTime::parse(to).unwrap())
    };
    let back = between("2026-05-04T12:00:00Z", "2026-05-02T00:00:00Z");
    assert_eq!((back.days(), back.millis()), (-2, -216_000_000));
    assert_eq!(between("2026-05-02T00:00:00.0005Z", "2026-05-02T00:00:00Z").millis(), 0);
    assert_eq!(back.to_string(), "#duration[-216000000ms]");
}

#[test]
fn values_order_by_time_and_are_keys() {
    with_context(|cx| {
        let day = |text| Value::LocalDate(LocalDate::parse(text).unwrap());
        let time = |text| Value::DateTime(DateTime::parse(text).unwrap());
        let second = DateTime::from_millis(0).unwrap().until(DateTime::from_millis(1_000).unwrap());
        // By the fields of a date, or as texts, some of these would be in a different order.
        let ascending = [
            Value::Int(1),
            cx.keyword("k"),
            day("2023-12-31"),
            day("2024-01-15"),
            day("2024-02-01"),
            time("2024-01-01T01:00:00+02:00"),
            time("2024-01-01T00:00:00Z"),
            Value::Duration(second),
            Value::string("1970-01-01"),
        ];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(order::compare(cx, a, b).unwrap(), at.cmp(&other));
                assert_eq!(equal::equal(cx, a, b).unwrap(), at == other);
            }
        }
        let same = [time("2024-01-01T02:00:00+02:00"), time("2024-01-01T00:00:00Z")];
        assert!(equal::same_key(cx, &same[0], &same[1]).unwrap());
        assert_eq!(hash::hash_value(cx, &same[0]), hash::hash_value(cx, &same[1]));
    });
}

#[test]
fn dates_are_texts_in_json() {
    with_context(|cx| {
        let second = DateTime::from_millis(0).unwrap().until(DateTime::from_millis(1_000).unwrap());
        let value = Value::vector(vec![
            Value::LocalDate(LocalDate::parse("2024-01-02").unwrap()),
            Value::DateTime(DateTime::from_millis(1).unwrap()),
            Value::Duration(second),
        ]);
        let json = encode(cx, &value, Keys::Names, 1_000).unwrap();
        assert_eq!(json.as_deref(), Ok(r#"["2024-01-02","1970-01-01T00:00:00.001Z",1000]"#));
        let printed = print::pr_str(cx, &value, 1_000).unwrap().text;
        assert_eq!(printed, r#"["2024-01-02" "1970-01-01T00:00:00.001Z" #duration[1000ms]]"#);
    });
}
