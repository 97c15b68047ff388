//! Limits the rate of log lines that one server can cause, so that it cannot flood the log.

use ptc_calls::tools::ServerText;
use std::time::{Duration, Instant};

/// How long a window lasts.
const WINDOW: Duration = Duration::from_secs(1);

/// Lines that pass in one window.
const LINES: u32 = 50;

/// Counts log lines and stops those beyond a rate.
#[derive(Default)]
pub(crate) struct Throttle {
    window: Option<Instant>,
    passed: u32,
    suppressed: u64,
}

/// What to do with a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Throttled {
    /// Log it; this many before it were left out.
    Pass {
        /// Lines left out since the last one that passed.
        suppressed: u64,
    },
    /// Leave it out.
    Suppress,
}

impl Throttle {
    /// Warns about something that a server has sent.
    pub(crate) fn warn(&mut self, upstream: &str, bytes: usize, what: &str) {
        if let Throttled::Pass { suppressed } = self.admit(Instant::now()) {
            tracing::warn!(upstream, bytes, suppressed, "{}", ServerText::new(what));
        }
    }

    /// Decides about a line that arrives `now`.
    pub(crate) fn admit(&mut self, now: Instant) -> Throttled {
        let begins = self.window.is_none_or(|begun| now.duration_since(begun) >= WINDOW);
        if begins {
            self.window = Some(now);
            self.passed = 0;
        }
        if self.passed == LINES {
            self.suppressed += 1;
            return Throttled::Suppress;
        }
        self.passed += 1;
        Throttled::Pass { suppressed: std::mem::take(&mut self.suppressed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let mut throttle = Throttle::default();
        let start = Instant::now();
        let passed = (0..1000).filter(|_| throttle.admit(start) != Throttled::Suppress).count();
        assert_eq!(passed, LINES as usize);
        assert_eq!(throttle.admit(start + WINDOW), Throttled::Pass { suppressed: 1000 - u64::from(LINES) });
        assert_eq!(throttle.admit(start + WINDOW), Throttled::Pass { suppressed: 0 });
    }
}
