//! One flag for each row of the limits table, so that a limit is declared in one place.

use super::variables;
use crate::console::exit::Abort;
use clap::{Arg, ArgMatches, Command};
use ptc_runtime::limits::{LimitRow, Limits, Unit};

/// Names that earlier releases gave to the same limits.
const ALIASES: &[(&str, &str)] = &[
    ("timeout", "program-timeout-ms"),
    ("memory", "program-memory-limit-bytes"),
    ("upstream-call-timeout", "upstream-call-timeout-ms"),
    ("max-upstream-calls", "max-upstream-calls-per-program"),
    ("max-catalog-ops", "max-catalog-ops-per-program"),
];

/// The limits given on the command line.
#[derive(Clone, Debug, Default)]
pub struct LimitFlags(Vec<(usize, u64)>);

impl LimitFlags {
    /// The limits of a command: defaults, then environment variables, then flags.
    pub fn limits(&self, upstreams: bool) -> Result<Limits, Abort> {
        let mut limits = if upstreams { Limits::with_upstreams() } else { Limits::default() };
        for (index, row) in Limits::TABLE.iter().enumerate() {
            let given = self.0.iter().find(|(row, _)| *row == index).map(|(_, value)| *value);
            let value = match given {
                Some(value) => Some(value),
                None => match alias(row.flag) {
                    Some(alias) => variables::read(alias, parser(row.unit))?,
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

impl clap::Args for LimitFlags {
    fn augment_args(command: Command) -> Command {
        Limits::TABLE.iter().fold(command, |command, row| {
            let arg = Arg::new(row.flag)
                .long(row.flag)
                .value_name(value_name(row.unit))
                .value_parser(parser(row.unit))
                .help_heading("Limits")
                .help(help(row));
            command.arg(match alias(row.flag) {
                Some(alias) => arg.alias(alias),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        LimitFlags::augment_args(command)
    }
}

impl clap::FromArgMatches for LimitFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LimitFlags, clap::Error> {
        let given = Limits::TABLE.iter().enumerate();
        Ok(LimitFlags(
            given.filter_map(|(index, row)| Some((index, *matches.get_one::<u64>(row.flag)?))).collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LimitFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

fn help(row: &LimitRow) -> String {
    let shown = |value: u64| match row.unit {
        Unit::Millis if value.is_multiple_of(1_000) => format!("{}s", value / 1_000),
        Unit::Millis => format!("{value}ms"),
        Unit::Bytes if value.is_multiple_of(1 << 20) => format!("{}M", value >> 20),
        Unit::Bytes | Unit::Count => value.to_string(),
    };
    let with = (row.get)(&Limits::with_upstreams());
    let with = if with == row.default { String::new() } else { format!("; {} with upstreams", shown(with)) };
    format!("{} [default: {}{with}]", row.help.trim().trim_end_matches('.'), shown(row.default))
}

const fn value_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "BYTES",
        Unit::Millis => "TIME",
        Unit::Count => "N",
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
                &[("ms", 1), ("s", 1_000), ("m", 60_000)],
                "a time like 500ms, 10s or 1m; a bare number is milliseconds",
            )
        },
        Unit::Count => |text| scaled(text, &[], "a whole number"),
    }
}

/// Reads a number with an optional unit suffix; the longest matching suffix comes first in the table.
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

    #[test]
    fn numbers_have_units() {
        let bytes = parser(Unit::Bytes);
        let millis = parser(Unit::Millis);
        assert_eq!(bytes("64k"), Ok(65_536));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert_eq!(millis("10s"), Ok(10_000));
        assert_eq!(millis("250ms"), Ok(250));
        assert_eq!(millis("1m"), Ok(60_000));
        assert_eq!(millis("1_500"), Ok(1_500));
        assert_eq!(parser(Unit::Count)("5"), Ok(5));
        for wrong in ["", "-1", "k", "1.5", "99999999999999999999"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_row_of_the_table_is_a_flag() {
        let command = <LimitFlags as clap::Args>::augment_args(Command::new("x"));
        for row in Limits::TABLE {
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(row.flag)), "{}", row.flag);
        }
        let matches = command.get_matches_from(["x", "--fuel", "7", "--program-timeout-ms", "20"]);
        let flags = <LimitFlags as clap::FromArgMatches>::from_arg_matches(&matches).expect("flags");
        let limits = flags.limits(false).expect("limits");
        assert_eq!((limits.fuel, limits.timeout_ms), (7, 20));
    }
}
