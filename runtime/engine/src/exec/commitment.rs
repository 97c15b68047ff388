//! Limits the total memory of all programs of a runtime: commits memory to a program before each slice of its
//! execution, and makes the program wait when there is no room.
//!
//! A running program counts with what it holds plus what it may add in its quantum; any other counts with
//! what it holds. So any number of programs may have begun, and they grow only as far as there is room. When
//! there is none, one of them goes on until it ends, and the others wait.
//!
//! *The reserve*, an eighth of the total, is for small programs: those that hold almost nothing, as every
//! program does when it begins. A program that grows leaves the reserve with the quantum in which it grew,
//! and from then on waits for room in the rest. So small programs begin and end whatever large programs do.
//! Size decides, not age: on a busy machine every program is old before it ends.

use ptc_base::sync::Locked;
use std::sync::Mutex;

/// What a program may add in one quantum before its size is checked. A single bulk operation may add more, up
/// to the program's own limit; a worker can overdraw by that much at most.
const TURN_BYTES: u64 = 16 << 20;

/// The reserve for small programs is one part in this many of the total.
const RESERVE: u64 = 8;

/// A small program holds at most this, and at most [`SMALL_SHARE`]'s part of the reserve.
const SMALL_BYTES: u64 = 256 << 10;
const SMALL_SHARE: u64 = 16;

/// A small program commits at most one part in this many of the reserve for a quantum: most small programs
/// stay small.
const TURN_SHARE: u64 = 4;

/// The memory account of a runtime.
pub(crate) struct Commitments {
    sums: Mutex<Sums>,
}

struct Sums {
    total: u64,
    /// Committed for small programs.
    small: u64,
    /// Committed for all others except the one beyond the total.
    large: u64,
    /// Committed for the one program that may exceed the total.
    beyond: u64,
    /// One program exceeds the total.
    is_overdrawn: bool,
}

/// What is committed for one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commitment {
    bytes: u64,
    class: Class,
}

/// The sum to which a commitment belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Class {
    #[default]
    Small,
    Large,
    Beyond,
}

impl Commitments {
    /// An empty account.
    pub(crate) fn new(total: u64) -> Commitments {
        Commitments { sums: Mutex::new(Sums { total, small: 0, large: 0, beyond: 0, is_overdrawn: false }) }
    }

    /// Changes the total.
    pub(crate) fn set_total(&self, total: u64) {
        self.sums.locked().total = total;
    }

    /// Commits what a quantum of a program with this limit may need; false when it has to wait.
    pub(crate) fn begin_turn(&self, limit: u64, commitment: &mut Commitment) -> bool {
        let mut sums = self.sums.locked();
        let more = limit.saturating_sub(commitment.bytes).min(TURN_BYTES);
        let more = match commitment.class {
            Class::Small => more.min(sums.reserve() / TURN_SHARE).max(1),
            Class::Large | Class::Beyond => more,
        };
        let mut class = commitment.class;
        if class != Class::Beyond && !sums.has_room(more, class) {
            if sums.is_overdrawn {
                return false;
            }
            sums.is_overdrawn = true;
            class = Class::Beyond;
        }
        sums.change(commitment, commitment.bytes.saturating_add(more), class);
        true
    }

    /// After a quantum a program counts with what it holds. A program beyond the total joins the others once
    /// there is room for it.
    pub(crate) fn end_turn(&self, held: u64, commitment: &mut Commitment) {
        let mut sums = self.sums.locked();
        let was_beyond = commitment.class == Class::Beyond;
        let mut class = if held <= sums.small_bytes() { Class::Small } else { Class::Large };
        if was_beyond {
            sums.change(commitment, 0, Class::Beyond);
            sums.is_overdrawn = !sums.has_room(held, class);
            class = if sums.is_overdrawn { Class::Beyond } else { class };
        }
        sums.change(commitment, held, class);
    }

    /// A program that waits for its host does not keep others from exceeding the total, unless its own memory
    /// exceeds it. Otherwise each in turn would grow to its limit, and wait.
    pub(crate) fn rest(&self, commitment: &mut Commitment) {
        if commitment.class == Class::Beyond {
            let mut sums = self.sums.locked();
            if sums.sum() <= sums.total {
                sums.is_overdrawn = false;
                sums.change(commitment, commitment.bytes, Class::Large);
            }
        }
    }

    /// Removes a program that has ended.
    pub(crate) fn end(&self, mut commitment: Commitment) {
        let mut sums = self.sums.locked();
        if commitment.class == Class::Beyond {
            sums.is_overdrawn = false;
        }
        sums.change(&mut commitment, 0, Class::Small);
    }
}

impl Sums {
    fn reserve(&self) -> u64 {
        self.total / RESERVE
    }

    fn small_bytes(&self) -> u64 {
        SMALL_BYTES.min(self.reserve() / SMALL_SHARE)
    }

    fn sum(&self) -> u64 {
        self.small.saturating_add(self.large).saturating_add(self.beyond)
    }

    /// True when a program of this class may commit `more`. Programs that left the reserve may overfill the
    /// rest, and then nothing in it grows. Once they fill the total, nothing more begins either.
    fn has_room(&self, more: u64, class: Class) -> bool {
        let fits = |sum: u64, most: u64| sum.saturating_add(more) <= most;
        match class {
            Class::Small => {
                let is_reserved = fits(self.small, self.reserve()) && self.large <= self.total;
                is_reserved || fits(self.sum(), self.total)
            }
            Class::Large | Class::Beyond => {
                let large = self.large.saturating_add(self.beyond);
                fits(large, self.total - self.reserve()) && fits(self.sum(), self.total)
            }
        }
    }

    /// Replaces a commitment.
    fn change(&mut self, commitment: &mut Commitment, bytes: u64, class: Class) {
        let before = self.committed(commitment.class);
        *before = before.saturating_sub(commitment.bytes);
        *commitment = Commitment { bytes, class };
        let after = self.committed(class);
        *after = after.saturating_add(bytes);
    }

    fn committed(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::Small => &mut self.small,
            Class::Large => &mut self.large,
            Class::Beyond => &mut self.beyond,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const LIMIT: u64 = 100 * MIB;
    const TINY: u64 = 20 << 10;

    /// A program on an account.
    struct Program<'a> {
        account: &'a Commitments,
        commitment: Commitment,
    }

    impl<'a> Program<'a> {
        fn new(account: &'a Commitments) -> Program<'a> {
            Program { account, commitment: Commitment::default() }
        }

        /// Gives it a quantum after which it holds this much; false when it has to wait.
        fn turn(&mut self, held: u64) -> bool {
            let begins = self.account.begin_turn(LIMIT, &mut self.commitment);
            if begins {
                self.account.end_turn(held, &mut self.commitment);
            }
            begins
        }

        fn rest(&mut self) {
            self.account.rest(&mut self.commitment);
        }

        fn end(self) {
            self.account.end(self.commitment);
        }
    }

    /// Programs that grow by 8 MiB a quantum until only one of them can go on.
    fn hoarders(account: &Commitments) -> Vec<Program<'_>> {
        let mut hoarders: Vec<_> = (0..40).map(|_| Program::new(account)).collect();
        for turn in 1..=12 {
            hoarders.iter_mut().for_each(|hoarder| {
                hoarder.turn(turn * 8 * MIB);
            });
        }
        hoarders
    }

    fn sums(account: &Commitments) -> (u64, u64, bool) {
        let sums = account.sums.locked();
        (sums.small, sums.large, sums.is_overdrawn)
    }

    #[test]
    fn programs_grow_only_as_far_as_there_is_room() {
        let account = &Commitments::new(64 * MIB);
        let new = || Program::new(account);
        let (mut first, mut second) = (new(), new());
        assert!(first.turn(30 * MIB) && second.turn(30 * MIB));
        // The second exceeds the total, so the first waits until it has ended.
        assert!(second.turn(60 * MIB));
        assert!(!first.turn(31 * MIB));
        assert!(second.turn(90 * MIB) && !first.turn(31 * MIB));
        second.end();
        assert!(first.turn(40 * MIB));
        first.end();
        assert_eq!(sums(account), (0, 0, false));
    }

    #[test]
    fn one_program_always_may_run() {
        let account = &Commitments::new(1);
        let new = || Program::new(account);
        let (mut first, mut second) = (new(), new());
        assert!(first.turn(TINY) && second.turn(TINY) && !first.turn(TINY) && second.turn(90 * MIB));
        second.end();
        assert!(first.turn(TINY));
    }

    #[test]
    fn small_programs_begin_and_end_though_others_hold_everything() {
        let account = &Commitments::new(1 << 30);
        let new = || Program::new(account);
        let hoarders = hoarders(account);
        let (_, large, beyond) = sums(account);
        assert!(beyond && large > (1 << 30) * 6 / 8, "{large}");
        // Any number of programs, one after the other, and many that wait for their hosts.
        for _ in 0..10_000 {
            let mut tiny = new();
            assert!(tiny.turn(TINY) && tiny.turn(TINY));
            tiny.end();
        }
        let mut waiting: Vec<_> = (0..1_000).map(|_| new()).collect();
        assert!(waiting.iter_mut().all(|tiny| tiny.turn(TINY)));
        waiting.into_iter().chain(hoarders).for_each(Program::end);
        assert_eq!(sums(account), (0, 0, false));
    }

    #[test]
    fn who_has_grown_leaves_the_reserve_and_waits() {
        let account = &Commitments::new(1 << 30);
        let new = || Program::new(account);
        let mut hoarders = hoarders(account);
        // Each in turn begins small, grows, and has to stop.
        for _ in 0..20 {
            let mut next = new();
            assert!(next.turn(4 * MIB) && !next.turn(5 * MIB));
            let (small, large, _) = sums(account);
            assert!(small == 0 && large <= 1 << 30, "{small} {large}");
            hoarders.push(next);
            let mut tiny = new();
            assert!(tiny.turn(TINY));
            tiny.end();
        }
        // The sum of what they hold is bounded: in the end small ones wait as well.
        let more = (0..20).take_while(|_| new().turn(8 * MIB)).count();
        assert!(more < 20, "{more}");
        hoarders.into_iter().for_each(Program::end);
        assert!(new().turn(TINY));
    }

    #[test]
    fn programs_that_wait_do_not_go_beyond_the_total_one_after_the_other() {
        let account = &Commitments::new(64 * MIB);
        let new = || Program::new(account);
        let (mut first, mut second, mut third) = (new(), new(), new());
        assert!(first.turn(30 * MIB) && second.turn(30 * MIB) && third.turn(8 * MIB));
        assert!(second.turn(60 * MIB));
        second.rest();
        assert!(!first.turn(60 * MIB) && !third.turn(60 * MIB), "the second holds 60 MiB while it waits");
        second.end();
        assert!(third.turn(20 * MIB) && first.turn(40 * MIB) && !third.turn(30 * MIB));
        first.rest();
        assert!(third.turn(30 * MIB), "what they hold fits");
    }
}
