//! Defines two bit sets for the data-flow analysis: the data sources that a value may depend on, and the functions and
//! effects that may run when the value is called.

/// A set of sources of a [`super::FlowPlan`], by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceSet([u64; 4]);

impl SourceSet {
    /// The empty set.
    pub const EMPTY: SourceSet = SourceSet([0; 4]);

    /// The most sources that a plan can tell apart.
    pub(super) const MOST: usize = 256;

    /// The set of one source.
    pub(super) const fn only(source: u8) -> SourceSet {
        let mut words = [0; 4];
        words[(source >> 6) as usize] = 1 << (source & 63);
        SourceSet(words)
    }

    /// True when there are none.
    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// True when it has this source.
    pub fn has(self, source: usize) -> bool {
        self.0.get(source >> 6).is_some_and(|word| word >> (source & 63) & 1 == 1)
    }

    /// The sources of both.
    #[must_use]
    pub fn union(self, other: SourceSet) -> SourceSet {
        SourceSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Its sources without those of another.
    #[must_use]
    pub fn minus(self, other: SourceSet) -> SourceSet {
        SourceSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Adds the sources of another; true when some were not there.
    pub(super) fn grow(&mut self, other: SourceSet) -> bool {
        let grows = !other.is_within(*self);
        *self = self.union(other);
        grows
    }

    /// True when all of its sources are in another.
    pub fn is_within(self, other: SourceSet) -> bool {
        self.minus(other).is_empty()
    }

    /// The numbers of its sources, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..SourceSet::MOST).filter(move |source| self.has(*source))
    }
}

/// What a value may do when it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Callables([u64; 2]);

impl Callables {
    /// It cannot be called.
    pub(super) const NONE: Callables = Callables([0; 2]);
    /// It may read data, or run a builtin: no more than its arguments say.
    pub(super) const DATA: Callables = Callables([1, 0]);
    /// It may call a tool.
    pub(super) const HOST: Callables = Callables([2, 0]);
    /// It may call anything: a function of an earlier program or of a prelude.
    pub(super) const UNKNOWN: Callables = Callables([4, 0]);
    /// It may define names of the session, and call functions under them: a function of an earlier program.
    pub(super) const DEFINES: Callables = Callables([64, 0]);
    /// It may print.
    pub(super) const PRINTS: Callables = Callables([8, 0]);
    /// It may give what the analysis does not know: the budget, stored results, texts about tools.
    pub(super) const READS: Callables = Callables([16, 0]);
    /// When and how often it calls the functions in it is decided elsewhere: endless sequences call them where they are
    /// read, and memoized functions only for what is new.
    pub(super) const ELSEWHERE: Callables = Callables([32, 0]);
    /// It may end the program, if it may do anything.
    pub(super) const ENDS: Callables = Callables([128, 0]);
    /// The most functions of a program that are told apart.
    pub(super) const MOST: usize = 128 - FIRST;

    /// A function of the program, by number.
    pub(super) fn function(number: usize) -> Callables {
        let bit = number + FIRST;
        let mut words = [0; 2];
        words[bit >> 6] = 1 << (bit & 63);
        Callables(words)
    }

    pub(super) const fn union(self, other: Callables) -> Callables {
        Callables([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    pub(super) fn has(self, other: Callables) -> bool {
        self.0[0] & other.0[0] != 0 || self.0[1] & other.0[1] != 0
    }

    /// What both have.
    pub(super) fn both(self, other: Callables) -> Callables {
        Callables([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// True when a call of it does no more than read data.
    pub(super) fn is_data(self) -> bool {
        self.0[0] & !1 == 0 && self.0[1] == 0
    }

    /// The functions of the program, by number.
    pub(super) fn functions(self) -> impl Iterator<Item = usize> {
        let all = u128::from(self.0[1]) << 64 | u128::from(self.0[0]);
        let mut left = all >> FIRST;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(number)
        })
    }
}

/// Bits before those of functions.
const FIRST: usize = 8;
