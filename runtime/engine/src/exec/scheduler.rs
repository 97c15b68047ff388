//! Chooses the next program of a worker: *multi-level feedback* by the time that programs have used, and
//! *stride scheduling* among the levels.
//!
//! A program begins young and grows older with every quantum. Levels share the worker by weight: a young
//! program never waits for old ones to end, and old ones still go on under any number of young ones. Within a
//! level it is first come, first served.

use ptc_calls::run::RunId;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The levels: programs that have used less than this time, and the level's share of the worker when all
/// levels have something to do.
const LEVELS: [(Duration, u64); 5] = [
    (Duration::from_millis(2), 16),
    (Duration::from_millis(10), 8),
    (Duration::from_millis(50), 4),
    (Duration::from_millis(250), 2),
    (Duration::MAX, 1),
];

/// The level of programs that have not begun.
const YOUNGEST: usize = 0;

/// The programs of one worker that can run.
#[derive(Default)]
pub(crate) struct Scheduler {
    levels: [FeedbackLevel; LEVELS.len()],
    /// Weighted time of the level that ran last.
    now: u64,
}

#[derive(Default)]
struct FeedbackLevel {
    /// Programs of the level that can run, with the time when they were queued.
    ready: VecDeque<(RunId, Instant)>,
    /// Weighted time that the level has used.
    used: u64,
    /// The level had something to do when the last quantum was given.
    was_active: bool,
}

/// The choice of the next program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRun {
    /// A program that has begun.
    Begun(RunId),
    /// The program that waits in the shared queue.
    New,
}

impl Scheduler {
    /// Puts a program that has used this much time, and was queued then, at the end of its level.
    pub(crate) fn push(&mut self, run: RunId, used: Duration, queued: Instant) {
        self.levels[level(used)].ready.push_back((run, queued));
    }

    /// Removes a program; true when it was there.
    pub(crate) fn remove(&mut self, run: RunId, used: Duration) -> bool {
        let ready = &mut self.levels[level(used)].ready;
        let place = ready.iter().position(|(ready, _)| *ready == run);
        place.and_then(|place| ready.remove(place)).is_some()
    }

    /// True when no program that has begun can run.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.ready.is_empty())
    }

    /// Takes the next program. `new`: when the program was queued that could begin; it is not taken here. A young
    /// program that was queued earlier goes first: its clock runs, and it soon ends or is young no longer.
    pub(crate) fn next(&mut self, new: Option<Instant>) -> Option<NextRun> {
        let mut first: Option<usize> = None;
        for index in 0..LEVELS.len() {
            let level = &mut self.levels[index];
            let is_active = !level.ready.is_empty() || (index == YOUNGEST && new.is_some());
            // A level that had nothing to do saves nothing up.
            if is_active && !level.was_active {
                level.used = level.used.max(self.now);
            }
            level.was_active = is_active;
            let used = level.used;
            if is_active && first.is_none_or(|first| used < self.levels[first].used) {
                first = Some(index);
            }
        }
        let first = first?;
        self.now = self.levels[first].used;
        let ready = &mut self.levels[first].ready;
        match (new, ready.front()) {
            (Some(new), Some((_, queued))) if first == YOUNGEST && new < *queued => Some(NextRun::New),
            (_, Some(_)) => ready.pop_front().map(|(run, _)| NextRun::Begun(run)),
            (_, None) => Some(NextRun::New),
        }
    }

    /// Charges a quantum to the level of a program that had used `used` before it.
    pub(crate) fn charge(&mut self, used: Duration, turn: Duration) {
        let index = level(used);
        let (_, weight) = LEVELS[index];
        let nanos = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
        let level = &mut self.levels[index];
        level.used = level.used.saturating_add(nanos.max(1).saturating_mul(LEVELS[YOUNGEST].1) / weight);
    }
}

fn level(used: Duration) -> usize {
    LEVELS.iter().position(|(below, _)| used < *below).unwrap_or(LEVELS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(1);
    const OLD: Duration = Duration::from_secs(1);

    /// Gives this many quanta of a millisecond, in which no program ends or ages; returns who got them.
    fn give(
        scheduler: &mut Scheduler,
        used: &[(u64, Duration)],
        new: Option<Instant>,
        count: usize,
    ) -> Vec<NextRun> {
        let used_by =
            |run: RunId| used.iter().find(|(id, _)| *id == run.0).map_or(Duration::ZERO, |(_, used)| *used);
        (0..count)
            .map(|_| {
                let next = scheduler.next(new).unwrap();
                match next {
                    NextRun::New => scheduler.charge(Duration::ZERO, TURN),
                    NextRun::Begun(run) => {
                        scheduler.charge(used_by(run), TURN);
                        scheduler.push(run, used_by(run), Instant::now());
                    }
                }
                next
            })
            .collect()
    }

    fn scheduler_of(used: &[(u64, Duration)]) -> Scheduler {
        let mut scheduler = Scheduler::default();
        for (id, used) in used {
            scheduler.push(RunId(*id), *used, Instant::now());
        }
        scheduler
    }

    #[test]
    fn programs_of_one_age_take_turns() {
        let used = [(1, OLD), (2, OLD), (3, OLD)];
        let given = give(&mut scheduler_of(&used), &used, None, 6);
        let expected = [1, 2, 3, 1, 2, 3].map(|id| NextRun::Begun(RunId(id)));
        assert_eq!(given, expected);
    }

    #[test]
    fn a_new_program_is_next_whatever_runs() {
        let used: Vec<_> = (0..1_000).map(|id| (id, OLD)).collect();
        let mut scheduler = scheduler_of(&used);
        give(&mut scheduler, &used, None, 5_000);
        assert_eq!(scheduler.next(Some(Instant::now())), Some(NextRun::New));
    }

    #[test]
    fn the_old_go_on_under_any_number_of_new_programs() {
        let used = [(1, OLD), (2, OLD)];
        let mut scheduler = scheduler_of(&used);
        let given = give(&mut scheduler, &used, Some(Instant::now()), 1_700);
        let old = |id| given.iter().filter(|next| **next == NextRun::Begun(RunId(id))).count();
        assert_eq!((old(1), old(2)), (50, 50), "one turn of seventeen");
    }

    #[test]
    fn a_level_that_had_nothing_to_do_saves_nothing_up() {
        let used = [(1, OLD), (2, Duration::ZERO)];
        let mut scheduler = scheduler_of(&used[..1]);
        give(&mut scheduler, &used, None, 10_000);
        scheduler.push(RunId(2), Duration::ZERO, Instant::now());
        let given = give(&mut scheduler, &used, None, 170);
        // The old one has just had its quantum.
        assert_eq!(given.iter().filter(|next| **next == NextRun::Begun(RunId(1))).count(), 9);
    }

    #[test]
    fn among_the_young_whoever_has_waited_longest_is_first() {
        let (early, late) = (Instant::now(), Instant::now() + TURN);
        let mut scheduler = Scheduler::default();
        scheduler.push(RunId(1), Duration::ZERO, late);
        assert_eq!(scheduler.next(Some(early)), Some(NextRun::New));
        assert_eq!(scheduler.next(Some(late + TURN)), Some(NextRun::Begun(RunId(1))));
        assert!(scheduler.is_empty());
    }

    #[test]
    fn a_program_that_was_removed_gets_no_turn() {
        let mut scheduler = scheduler_of(&[(1, OLD)]);
        assert!(scheduler.remove(RunId(1), OLD));
        assert!(!scheduler.remove(RunId(1), OLD));
        assert_eq!(scheduler.next(None), None);
    }
}
