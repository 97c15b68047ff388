//! Makes a command-line flag for each limit that a table declares (memory, time, counts), and reads the limits from
//! flags, environment variables and defaults. So a limit is declared in one place.

use super::variables;
use clap::{Arg, ArgMatches, Command};
use ptc_calls::limits::{LimitRow, LimitTable, Limits, Unit};
use ptc_server::console::Abort;
use std::marker::PhantomData;

/// Names of the same limits in earlier releases.
pub(in crate::cli) const ALIASES: &[(&str, &str)] = &[
    ("timeout", "program-timeout-ms"),
    ("memory", "program-memory-limit-bytes"),
    ("upstream-call-timeout", "upstream-call-timeout-ms"),
    ("max-upstream-calls", "max-upstream-calls-per-program"),
    ("max-catalog-ops", "max-catalog-ops-per-program"),
    ("max-concurrent", "max-concurrent-calls"),
    ("http-request-timeout", "http-request-timeout-ms"),
    ("http-shutdown-grace", "http-shutdown-grace-ms"),
    ("http-session-ttl", "http-session-ttl-ms"),
    ("http-session-idle-timeout", "http-session-idle-timeout-ms"),
    ("http-max-in-flight-per-owner", "http-max-in-flight-per-session"),
    ("http-auth-rate-limit-window", "http-auth-rate-limit-window-ms"),
    ("http-auth-rate-limit-block", "http-auth-rate-limit-block-ms"),
    ("session-ttl", "session-ttl-ms"),
    ("agentic-task-timeout", "agentic-task-timeout-ms"),
    ("agentic-planner-timeout", "agentic-planner-timeout-ms"),
    ("session-idle-timeout", "session-idle-timeout-ms"),
];

/// A limit table with flags.
pub trait FlagTable: LimitTable {
    /// The defaults of programs that may call upstreams.
    fn with_upstreams() -> Self {
        Self::default()
    }
}

impl FlagTable for Limits {
    fn with_upstreams() -> Limits {
        Limits::with_upstreams()
    }
}

/// The limits of a table given on the command line.
#[derive(Clone, Debug)]
pub struct LimitFlags<L = Limits> {
    given: Vec<(usize, u64)>,
    table: PhantomData<fn() -> L>,
}

impl<L: FlagTable> LimitFlags<L> {
    /// The limits of a command: defaults, then environment variables, then flags.
    pub fn limits(&self, upstreams: bool) -> Result<L, Abort> {
        self.over(if upstreams { L::with_upstreams() } else { L::default() })
    }

    /// Whether this limit was set by its flag or its variable.
    pub fn is_given(&self, flag: &str) -> Result<bool, Abort> {
        let Some(index) = L::TABLE.iter().position(|row| row.flag == flag) else { return Ok(false) };
        let unit = L::TABLE[index].unit;
        let read = |name, parse: fn(&str) -> _| {
            variables::read(name, parse).map(|value: Option<u64>| value.is_some())
        };
        Ok(self.given.iter().any(|(row, _)| *row == index)
            || read(flag, parser(unit))?
            || alias(flag).map(|alias| read(alias, earlier(unit))).transpose()?.unwrap_or(false))
    }

    /// A limit that the command line gives, by the name of its flag.
    pub fn first_given(&self) -> Option<&'static str> {
        self.given.first().map(|(index, _)| L::TABLE[*index].flag)
    }

    /// Whether the command line gives this limit.
    pub fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|(index, _)| L::TABLE[*index].flag == flag)
    }

    /// The limits over these defaults: environment variables, then flags.
    pub fn over(&self, defaults: L) -> Result<L, Abort> {
        let mut limits = defaults;
        for (index, row) in L::TABLE.iter().enumerate() {
            let given = self.given.iter().find(|(row, _)| *row == index).map(|(_, value)| *value);
            let value = match given {
                Some(value) => Some(value),
                None => match alias(row.flag) {
                    Some(alias) => variables::read(alias, earlier(row.unit))?,
                    None => None,
                }
                .or(variables::read(row.flag, parser(row.unit))?),
            };
            if let Some(value) = value {
                (row.set)(&mut limits, value);
            }
        }
        Ok(limits)
    }
}

fn alias(flag: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(name, _)| *name == flag).map(|(_, alias)| *alias)
}

impl<L: FlagTable> clap::Args for LimitFlags<L> {
    fn augment_args(command: Command) -> Command {
        L::TABLE.iter().fold(command, |command, row| {
            let arg = Arg::new(row.flag)
                .long(row.flag)
                .value_name(value_name(row.unit))
                .value_parser(parser(row.unit))
                .help_heading("Limits")
                .help(help(row));
            let command = command.arg(arg);
            match alias(row.flag) {
                Some(alias) => command.arg(
                    Arg::new(alias)
                        .long(alias)
                        .value_parser(earlier(row.unit))
                        .hide(true)
                        .conflicts_with(row.flag),
                ),
                None => command,
            }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<L: FlagTable> clap::FromArgMatches for LimitFlags<L> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let rows = L::TABLE.iter().enumerate();
        let given = rows.filter_map(|(index, row)| Some((index, *given(matches, row.flag)?))).collect();
        Ok(LimitFlags { given, table: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn given<'m>(matches: &'m ArgMatches, flag: &str) -> Option<&'m u64> {
    matches.get_one(flag).or_else(|| matches.get_one(alias(flag)?))
}

fn help<L: FlagTable>(row: &LimitRow<L>) -> String {
    let shown = |value: u64| match row.unit {
        Unit::Millis if value.is_multiple_of(1_000) => format!("{}s", value / 1_000),
        Unit::Millis => format!("{value}ms"),
        Unit::Bytes if value > 0 && value.is_multiple_of(1 << 20) => format!("{}M", value >> 20),
        Unit::Bytes | Unit::Count | Unit::Positive => value.to_string(),
    };
    let [default, with] = [L::default(), L::with_upstreams()].map(|limits| (row.get)(&limits));
    let with = if with == default { String::new() } else { format!("; {} with upstreams", shown(with)) };
    format!("{} [default: {}{with}]", row.help.trim().trim_end_matches('.'), shown(default))
}

const fn value_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "BYTES",
        Unit::Millis => "TIME",
        Unit::Count | Unit::Positive => "N",
    }
}

/// Reads a number of the given unit.
pub fn parser(unit: Unit) -> fn(&str) -> Result<u64, String> {
    match unit {
        Unit::Bytes => |text| {
            scaled(text, &[("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)], "a size like 64k, 10M or 1G")
        },
        Unit::Millis => |text| {
            scaled(
                text,
                &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)],
                "a time with its unit, like 500ms, 10s, 1m, 12h or 7d",
            )
            .and_then(|millis| match text.bytes().last() {
                Some(b'0'..=b'9') if millis > 0 => Err(format!(
                    "{text} has no unit: write {text}s for seconds, or {text}ms for milliseconds"
                )),
                _ => Ok(millis),
            })
        },
        Unit::Count => |text| scaled(text, &[], "a whole number"),
        Unit::Positive => |text| variables::positive(text).map(|number| number as u64),
    }
}

/// [`parser`] for the names of earlier releases, some of which say that they take milliseconds.
fn earlier(unit: Unit) -> fn(&str) -> Result<u64, String> {
    match unit {
        Unit::Millis => |text| match text.parse() {
            Ok(millis) => Ok(millis),
            Err(_) => parser(Unit::Millis)(text),
        },
        unit => parser(unit),
    }
}

/// Parses a number with an optional unit suffix. The longest matching suffix comes first in the table.
fn scaled(text: &str, suffixes: &[(&str, u64)], expected: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase().replace('_', "");
    let (digits, scale) = suffixes
        .iter()
        .find_map(|(suffix, scale)| Some((lower.strip_suffix(suffix)?, *scale)))
        .unwrap_or((lower.as_str(), 1));
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(scale))
        .ok_or_else(|| format!("expected {expected}, got: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags::server::ServerLimits;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn numbers_have_units() {
        let bytes = parser(Unit::Bytes);
        let millis = parser(Unit::Millis);
        assert_eq!(bytes("64k"), Ok(65_536));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert_eq!(millis("10s"), Ok(10_000));
        assert_eq!(millis("250ms"), Ok(250));
        assert_eq!(millis("1m"), Ok(60_000));
        assert_eq!(millis("12h"), Ok(43_200_000));
        assert_eq!(millis("7d"), Ok(604_800_000));
        assert_eq!(millis("0"), Ok(0));
        assert_eq!(earlier(Unit::Millis)("1500"), Ok(1_500));
        assert!(millis("20").unwrap_err().contains("20s"), "a bare number is refused");
        assert_eq!(parser(Unit::Count)("5"), Ok(5));
        for wrong in ["", "-1", "k", "1.5", "99999999999999999999"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_row_of_the_table_is_a_flag() {
        fn shows_all<L: FlagTable>() {
            let help = LimitFlags::<L>::augment_args(Command::new("x")).render_long_help().to_string();
            for row in L::TABLE {
                assert!(help.contains(&format!("--{} <{}>", row.flag, value_name(row.unit))), "{help}");
                assert!(help.contains("[default: "), "{help}");
                assert_eq!(help.matches(&format!("--{} ", row.flag)).count(), 1, "{}", row.flag);
            }
            // Each row reads and writes a number of its own.
            let mut limits = L::default();
            for (number, row) in (900..).zip(L::TABLE) {
                (row.set)(&mut limits, number);
            }
            let read: Vec<u64> = L::TABLE.iter().map(|row| (row.get)(&limits)).collect();
            assert_eq!(read, (900..).take(L::TABLE.len()).collect::<Vec<_>>());
        }
        shows_all::<Limits>();
        shows_all::<ServerLimits>();
        let command = LimitFlags::<Limits>::augment_args(Command::new("x"));
        let matches = command.get_matches_from(["x", "--fuel", "7", "--program-timeout-ms", "20"]);
        let flags = LimitFlags::<Limits>::from_arg_matches(&matches).expect("flags");
        let limits = flags.limits(false).expect("limits");
        assert_eq!((limits.fuel, limits.timeout_ms), (7, 20));
    }
}
