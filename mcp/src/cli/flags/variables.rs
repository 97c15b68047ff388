//! Flags as environment variables: `--foo-bar` is also `PTC_RUNNER_MCP_FOO_BAR`.
//!
//! The flag wins; an empty variable is unset.

use crate::console::exit::Abort;

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

/// True when the variable of a flag is set to nothing that can be read.
pub fn is_empty(flag: &str) -> bool {
    std::env::var_os(name(flag)).is_some_and(|text| text.to_str().is_none_or(|text| text.trim().is_empty()))
}

/// The variable of a flag.
pub fn name(flag: &str) -> String {
    format!("PTC_RUNNER_MCP_{}", flag.replace('-', "_").to_ascii_uppercase())
}

/// A number of things, at least one.
pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("must be a positive integer, got: {text:?}")),
    }
}

/// `1 true yes on` or `0 false no off`.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("must be true or false, got: {text:?}")),
    }
}
