//! Measures the time of a run for its deadline, without the time in which it waits for servers that start or for a
//! person.

use ptc_base::sync::Locked;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time that a run has used.
pub(super) struct RunClock {
    begun: Instant,
    pauses: Mutex<Pauses>,
    /// It has stood still; most runs never look at `pauses`.
    has_paused: AtomicBool,
}

/// Times in which the clock stood still. Overlapping waits count once.
#[derive(Default)]
struct Pauses {
    /// Waits under way.
    open: u32,
    /// When the first of them began.
    since: Option<Instant>,
    /// All pauses that are over.
    total: Duration,
}

impl RunClock {
    /// A clock that begins to run.
    pub(super) fn new() -> RunClock {
        RunClock { begun: Instant::now(), pauses: Mutex::default(), has_paused: AtomicBool::new(false) }
    }

    /// Wall clock time at `moment`, pauses included.
    pub(super) fn elapsed_at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.begun)
    }

    /// The time that the run had used at `moment`.
    pub(super) fn used_at(&self, moment: Instant) -> Duration {
        self.elapsed_at(moment).saturating_sub(self.paused_at(moment))
    }

    /// When `limit` is used up, if the clock does not stand still from now on; `None` beyond the range of clocks.
    pub(super) fn end_of(&self, limit: Duration) -> Option<Instant> {
        self.begun.checked_add(limit)?.checked_add(self.paused_at(Instant::now()))
    }

    fn paused_at(&self, moment: Instant) -> Duration {
        if !self.has_paused.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let pauses = self.pauses.locked();
        let open = pauses.since.map_or(Duration::ZERO, |since| moment.saturating_duration_since(since));
        pauses.total + open
    }

    pub(super) fn pause(&self) {
        let mut pauses = self.pauses.locked();
        pauses.open += 1;
        pauses.since.get_or_insert_with(Instant::now);
        self.has_paused.store(true, Ordering::Relaxed);
    }

    pub(super) fn go_on(&self) {
        let mut pauses = self.pauses.locked();
        pauses.open -= 1;
        if pauses.open == 0
            && let Some(since) = pauses.since.take()
        {
            pauses.total += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_that_overlap_count_once() {
        let clock = RunClock::new();
        let later = |seconds| clock.begun + Duration::from_secs(seconds);
        let limit = Duration::from_secs(10);
        assert_eq!((clock.used_at(later(9)), clock.end_of(limit)), (Duration::from_secs(9), Some(later(10))));
        clock.pause();
        clock.pause();
        clock.go_on();
        let before = clock.used_at(later(60));
        assert!(before < Duration::from_secs(5), "{before:?}");
        // It stands still for as long as a wait is under way.
        assert_eq!(clock.used_at(later(600)), before);
        clock.go_on();
        let running = clock.used_at(later(60));
        assert!(running > Duration::from_secs(50), "{running:?}");
        assert!(clock.end_of(limit) >= Some(later(10)));
    }
}
