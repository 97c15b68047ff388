//! Reads the environment variable that stands in for a flag which was not given, such as `PTC_FOO_BAR` for `--foo-bar`,
//! and parses its value. Older names of variables ([`names`]) count too.
//!
//! The flag wins; an empty variable is unset. Clap's own `env` reads variables differently: an empty one counts as
//! given, it wins over what a configuration file says of limits, and its names would stand in every line of the help.

use clap::ValueEnum;
use ptc_server::console::Abort;
use ptc_upstream::config::names;
use std::ffi::OsString;
use std::path::PathBuf;

/// Reads the variable of a flag.
pub fn read<T>(flag: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Abort> {
    let Some((name, value)) = set(flag) else { return Ok(None) };
    match value.to_str().map(str::trim) {
        Some(text) if !text.is_empty() => match parse(text) {
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

/// The name of a flag's variable if it is set to an empty or unreadable value.
pub fn empty(flag: &str) -> Option<String> {
    let (name, value) = set(flag)?;
    value.to_str().is_none_or(|text| text.trim().is_empty()).then_some(name)
}

/// The name of a flag's variable.
pub fn name(flag: &str) -> String {
    format!("{}{}", names::VARIABLE.new, suffix(flag))
}

/// The variable of a flag, if it is set: its name and its value.
fn set(flag: &str) -> Option<(String, OsString)> {
    names::variable(&suffix(flag))
}

fn suffix(flag: &str) -> String {
    flag.replace('-', "_").to_ascii_uppercase()
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
