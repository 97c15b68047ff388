//! Sets up logging to stderr only, since stdout carries the answers of the server.

use crate::redact::{self, Form, shapes};
use tracing_subscriber::EnvFilter;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFilter {
    /// Everything.
    Debug,
    /// Starts, stops and what upstream servers write to their stderr.
    Info,
    /// What needs attention.
    #[default]
    #[value(alias = "warning")]
    Warn,
    /// Only failures.
    Error,
}

impl LogFilter {
    const fn filter(self) -> &'static str {
        match self {
            LogFilter::Debug => "debug",
            LogFilter::Info => "info",
            LogFilter::Warn => "warn",
            LogFilter::Error => "error",
        }
    }
}

/// Starts logging: text on a terminal, JSON lines elsewhere. `RUST_LOG` wins over the flag.
pub fn init(level: LogFilter) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.filter()));
    let is_text = redact::stderr_is_terminal();
    let form = if is_text { Form::Text } else { Form::Json(&shapes::REPORT) };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || redact::stderr(form));
    // A second call keeps the first subscriber, which suits tests in one process.
    let _ = if is_text {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
