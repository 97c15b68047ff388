//! Limits how fast a server's unsolicited messages are read, so that a server that floods ptc is held back by its own
//! pipe.

use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Units that may arrive at once.
const BURST: f64 = 4_000.0;

/// Units a second. Beyond that the server is not read, so its own pipe holds it back.
const RATE: f64 = 20_000.0;

/// Bytes that cost as much as one more frame.
const UNIT: f64 = 4_096.0;

/// A bucket of units that fills with time.
pub(crate) struct Pace {
    left: f64,
    at: Instant,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { left: BURST, at: Instant::now() }
    }

    /// Counts a frame that was not requested, and waits while the server is ahead of its rate.
    pub(crate) async fn unasked(&mut self, bytes: u64) {
        let now = Instant::now();
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * RATE).min(BURST);
        self.at = now;
        #[expect(clippy::cast_precision_loss, reason = "a cost, not a count")]
        let cost = 1.0 + bytes as f64 / UNIT;
        self.left -= cost;
        if self.left < 0.0 {
            sleep_until(now + Duration::from_secs_f64(-self.left / RATE)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_its_rate() {
        let mut pace = Pace::new();
        let begun = Instant::now();
        for _ in 0..4_000 {
            pace.unasked(0).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..20_000 {
            pace.unasked(0).await;
        }
        let one = begun.elapsed().as_secs_f64();
        assert!((0.9..1.5).contains(&one), "{one}");
        pace.unasked(40 << 20).await;
        assert!(begun.elapsed().as_secs_f64() > one + 0.4);
    }
}
