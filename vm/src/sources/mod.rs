//! Tracks, while a program runs, which answers of the host (servers' data) and which entries of the input data each
//! value may depend on, for data-flow rules. These are the *sources* of the value.
//!
//! A set of sources is one word. The host names sources; names beyond the room of a word are one source together. A
//! value has a *shadow*: the sources of the value itself, and those of its parts, as far as these differ. Shadows lie
//! at the places of values (registers, names), not in values, so that a run that does not ask for sources pays
//! nothing.

mod parts;
mod shadow;
mod tracker;

pub use parts::{CallSources, PartSources};
pub(crate) use shadow::{MOST_PARTS, Shadow, key_name};
pub(crate) use tracker::Tracker;

/// A set of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources(u64);

/// Sources with a bit of their own.
const NAMED: usize = 62;

impl Sources {
    /// No source: the program's own text.
    pub const NONE: Sources = Sources(0);
    /// Any answer so far.
    pub const ANSWERED: Sources = Sources(1 << 63);
    /// Anything, whether it was an answer or not.
    pub const ANYTHING: Sources = Sources(1 << 62);

    /// The source of this number.
    pub(crate) fn only(number: usize) -> Sources {
        if number < NAMED { Sources(1 << number) } else { Sources::ANYTHING }
    }

    /// The sources of both.
    #[must_use]
    pub fn union(self, other: Sources) -> Sources {
        Sources(self.0 | other.0)
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(self, other: Sources) -> Sources {
        Sources(self.0 & !other.0)
    }

    /// True when there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when all of them are in another set.
    pub fn is_within(self, other: Sources) -> bool {
        self.0 & !other.0 == 0
    }

    /// True when both have a source.
    pub fn meets(self, other: Sources) -> bool {
        self.0 & other.0 != 0
    }

    /// The numbers of its named sources.
    pub(crate) fn numbers(self) -> impl Iterator<Item = usize> {
        (0..NAMED).filter(move |number| self.0 >> number & 1 == 1)
    }
}
