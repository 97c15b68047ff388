//! Holds the time limit of a tool call with the setting that it comes from, so that a timeout message names the flag or
//! key to change. It names the whole limit, never a remainder.

use std::fmt;
use std::time::Duration;

/// What sets the time limit of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitSource {
    /// `--upstream-call-timeout`.
    Flag,
    /// `request_timeout_ms` of the server.
    Server,
    /// The tool of the host.
    HostTool,
    /// The program, which has this much time.
    Program(Duration),
}

/// The time limit of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimit {
    /// Wall clock of the whole call.
    pub(super) whole: Duration,
    pub(super) source: LimitSource,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Shown(self.whole);
        match self.source {
            LimitSource::Flag => write!(f, "no answer within {whole} (--upstream-call-timeout)"),
            LimitSource::Server => write!(f, "no answer within {whole} (request_timeout_ms of the server)"),
            LimitSource::HostTool => write!(f, "no answer within {whole}"),
            LimitSource::Program(time) => {
                write!(f, "no answer before the end of the program's time (--timeout {})", Shown(time))
            }
        }
    }
}

/// A duration for people: whole seconds as such, others in milliseconds.
pub(super) struct Shown(pub(super) Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms > 0 && ms % 1_000 == 0 => write!(f, "{} s", ms / 1_000),
            ms => write!(f, "{ms} ms"),
        }
    }
}
