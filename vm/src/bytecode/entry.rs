//! Holds what the interpreter must know about a function to call it fast: its argument count, whether it needs its
//! closure, and whether it is a single operation to compute inline.

/// The fast calls of a function: those with exactly this many arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Number of arguments; [`Entry::NONE`] has a number that no call has.
    pub(crate) arguments: u8,
    /// The lowest bit: the function reads register 0. The bits above: the number of its [`Leaf`], counted from one.
    ///
    /// [`Leaf`]: super::leaf::Leaf
    special: u8,
}

impl Entry {
    /// More arguments than a window can hold.
    const NO_COUNT: u8 = u8::MAX;
    /// The function has no fast call.
    pub(crate) const NONE: Entry = Entry { arguments: Entry::NO_COUNT, special: 1 };

    /// Maximal number of leaf functions of a program; further ones are called normally.
    pub(crate) const MOST_LEAVES: usize = 127;

    /// A function of fixed arguments. `leaf` is its number among the leaf functions, counted from one.
    pub(crate) fn new(arguments: u8, needs_closure: bool, leaf: Option<u8>) -> Entry {
        Entry { arguments, special: leaf.unwrap_or_default() << 1 | u8::from(needs_closure) }
    }

    /// A call needs only the arguments in a window.
    #[inline(always)]
    pub(crate) fn is_bare(self) -> bool {
        self.special == 0
    }

    /// The function reads register 0, so a call must put the closure there.
    #[inline(always)]
    pub(crate) fn needs_closure(self) -> bool {
        self.special & 1 == 1
    }

    /// The number of its leaf, counted from one.
    #[inline(always)]
    pub(crate) fn leaf(self) -> u8 {
        self.special >> 1
    }

    /// The function takes a fixed number of arguments, as they are in the window.
    #[inline]
    pub(crate) fn has_fixed_arity(self) -> bool {
        self.arguments != Entry::NO_COUNT
    }
}
