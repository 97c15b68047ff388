//! Environment variables for flags: `--foo-bar` is also `PTC_RUNNER_MCP_FOO_BAR`.
//!
//! The flag wins; an empty variable is unset. Clap's own `env` reads variables differently: an empty one counts as
//! given, it wins over what a configuration file says of limits, and its names would stand in every line of the help.

use crate::console::exit::Abort;
use clap::ValueEnum;
use std::path::PathBuf;

/// Reads the variable of a flag.
pub fn read<T>(flag: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Abort> {
    let name = name(flag);
    match std::env::var(&name) {
        Ok(text) if !text.trim().is_empty() => match parse(text.trim()) {
            Ok(value) => Ok(Some(value)),
            Err(reason) => Err(Abort::usage(format!("--{flag} / {name}: {reason}"))),
        },
        _ => Ok(None),
    }
}

/// The value of a flag, or else of its variable.
pub fn given_or_read<T>(
    given: Option<T>,
    flag: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Abort> {
    if given.is_some() { Ok(given) } else { read(flag, parse) }
}

/// Whether a switch is on.
pub fn switch(given: bool, flag: &str) -> Result<bool, Abort> {
    Ok(given || read(flag, boolean)?.unwrap_or(false))
}

/// Whether the variable of a flag is set to an empty or unreadable value.
pub fn is_empty(flag: &str) -> bool {
    std::env::var_os(name(flag)).is_some_and(|text| text.to_str().is_none_or(|text| text.trim().is_empty()))
}

/// The name of a flag's variable.
pub fn name(flag: &str) -> String {
    format!("PTC_RUNNER_MCP_{}", flag.replace('-', "_").to_ascii_uppercase())
}

/// Accepts any text.
pub fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Accepts any path.
pub fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

/// Parses one of the values of an enumeration.
pub fn word<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true)
}

/// Parses a positive integer.
pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("must be a positive integer, got: {text:?}")),
    }
}

/// Parses `1 true yes on` or `0 false no off`.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("must be true or false, got: {text:?}")),
    }
}
