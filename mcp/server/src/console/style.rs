//! Colours text for standard output and standard error, if the stream is a terminal and the variable `NO_COLOR` is not
//! set.

use crate::redact;
use ptc_calls::outcome::Palette;

/// Colours text for one stream.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    enabled: bool,
}

impl Style {
    /// For standard output.
    pub fn stdout() -> Style {
        Style { enabled: allowed() && redact::stdout_is_terminal() }
    }

    /// For standard error.
    pub fn stderr() -> Style {
        Style { enabled: allowed() && redact::stderr_is_terminal() }
    }

    /// True if colours are on.
    pub fn is_enabled(self) -> bool {
        self.enabled
    }

    /// Headings.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Secondary remarks.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Success.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Warnings.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Errors.
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Source code and names.
    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Palette for rendered errors.
    pub fn palette(self) -> Palette {
        if self.enabled { Palette::COLOUR } else { Palette::PLAIN }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.enabled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
