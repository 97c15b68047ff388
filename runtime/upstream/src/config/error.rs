//! Defines the error about a configuration file, with file, line and column of the mistake.

use jsonc_parser::errors::ParseError;
use std::fmt;

/// A configuration error with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// File name as given by the caller.
    pub file: String,
    /// Line and column from 1; `None` when the file could not be read.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
}

impl ConfigError {
    pub(super) fn unreadable(file: &str, error: &std::io::Error) -> ConfigError {
        ConfigError { file: file.to_owned(), position: None, message: format!("upstreams config: {error}") }
    }

    pub(super) fn json(file: &str, error: &ParseError) -> ConfigError {
        ConfigError {
            file: file.to_owned(),
            position: Some((error.line_display(), error.column_display())),
            message: format!("upstreams config JSON decode failed: {}", error.kind()),
        }
    }

    /// The reader's message is not quoted in full: it shows lines of the file, which may hold secrets.
    pub(super) fn yaml(file: &str, error: &serde_saphyr::Error) -> ConfigError {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let position = error.location().map(|place| (number(place.line()), number(place.column())));
        let why = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { .. } => "a key is given twice",
            _ => "it is not YAML",
        };
        ConfigError {
            file: file.to_owned(),
            position: Some(position.unwrap_or((1, 1))),
            message: format!("upstreams config YAML decode failed: {why}"),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for ConfigError {}
