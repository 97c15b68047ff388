//! Logs go to stderr, and nowhere else: stdout belongs to answers.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
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

impl LogLevel {
    const fn filter(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// Starts logging: text on a terminal, JSON lines elsewhere. `RUST_LOG` wins over the flag.
pub fn init(level: LogLevel) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.filter()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call keeps the first subscriber, which is what tests in one process want.
    let _ = if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
