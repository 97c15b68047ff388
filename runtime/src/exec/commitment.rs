//! Memory that all programs of a runtime may hold together.
//!
//! A program that has a turn is counted with what it holds and what it may add in that turn, any other with what
//! it holds. So however many programs have begun, they grow only as far as there is room; when there is none, one
//! of them goes on until it ends, and the others wait for it.

use crate::exec::queue::RunId;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a program may add in one turn before anybody looks. A single bulk operation may add more, up to the
/// program's own limit; that is the most by which a worker can overdraw.
const TURN_BYTES: u64 = 16 << 20;

/// No run.
const NOBODY: u64 = u64::MAX;

/// The account of a runtime.
pub(crate) struct Commitments {
    total: AtomicU64,
    committed: AtomicU64,
    /// The run that may go beyond the total.
    overdrawing: AtomicU64,
}

/// What is committed for one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commitment(u64);

impl Commitments {
    /// An empty account.
    pub(crate) fn new(total: u64) -> Commitments {
        Commitments {
            total: AtomicU64::new(total),
            committed: AtomicU64::new(0),
            overdrawing: AtomicU64::new(NOBODY),
        }
    }

    /// Changes the total.
    pub(crate) fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Commits what a turn of a run with this limit may need; false when it has to wait.
    pub(crate) fn begin_turn(&self, run: RunId, limit: u64, commitment: &mut Commitment) -> bool {
        let more = limit.saturating_sub(commitment.0).min(TURN_BYTES);
        let total = self.total.load(Ordering::Relaxed);
        let add = |committed: u64| committed.checked_add(more).filter(|&sum| sum <= total);
        let fits = self.committed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if !fits {
            let claimed =
                self.overdrawing.compare_exchange(NOBODY, run.0, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_err_and(|holder| holder != run.0) {
                return false;
            }
            self.committed.fetch_add(more, Ordering::Relaxed);
        }
        commitment.0 += more;
        true
    }

    /// After a turn a run is counted with what it holds.
    pub(crate) fn end_turn(&self, held: u64, commitment: &mut Commitment) {
        let before = std::mem::replace(&mut commitment.0, held);
        if held > before {
            self.committed.fetch_add(held - before, Ordering::Relaxed);
        } else {
            self.committed.fetch_sub(before - held, Ordering::Relaxed);
        }
    }

    /// A run that has ended, or waits for its host, lets another one go beyond the total.
    pub(crate) fn rest(&self, run: RunId) {
        // Most runs never went beyond it.
        let _ = self.overdrawing.compare_exchange(run.0, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_grow_only_as_far_as_there_is_room() {
        let account = Commitments::new(100);
        let (mut first, mut second) = (Commitment::default(), Commitment::default());
        assert!(account.begin_turn(RunId(1), 80, &mut first));
        account.end_turn(60, &mut first);
        assert!(account.begin_turn(RunId(2), 80, &mut second));
        account.end_turn(50, &mut second);
        // The second goes beyond the total, so the first waits until it has ended.
        assert!(!account.begin_turn(RunId(1), 80, &mut first));
        assert!(account.begin_turn(RunId(2), 80, &mut second));
        account.end_turn(0, &mut second);
        account.rest(RunId(2));
        assert!(account.begin_turn(RunId(1), 80, &mut first));
        account.end_turn(0, &mut first);
        account.rest(RunId(1));
        assert_eq!(account.committed.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_program_always_may_run() {
        let account = Commitments::new(1);
        let mut commitment = Commitment::default();
        assert!(account.begin_turn(RunId(1), 1_000, &mut commitment));
        assert!(!account.begin_turn(RunId(2), 1_000, &mut Commitment::default()));
    }
}
