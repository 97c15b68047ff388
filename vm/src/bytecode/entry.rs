//! How a function can be called without more ado.

/// The calls a function takes without more ado: with exactly this many arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Arguments; [`Entry::NONE`] where it takes more.
    pub(crate) arguments: u8,
    /// Whether it reads register 0 in the lowest bit; above it the number of its [`Leaf`], counted from one.
    ///
    /// [`Leaf`]: super::leaf::Leaf
    special: u8,
}

impl Entry {
    /// More arguments than a window has room for.
    const NO_COUNT: u8 = u8::MAX;
    /// No call is that simple.
    pub(crate) const NONE: Entry = Entry { arguments: Entry::NO_COUNT, special: 1 };

    /// Most functions of a program that have a leaf; further ones are called like others.
    pub(crate) const MOST_LEAVES: usize = 127;

    /// A function of fixed arguments. `leaf` is its number among those that have one, counted from one.
    pub(crate) fn new(arguments: u8, needs_closure: bool, leaf: Option<u8>) -> Entry {
        Entry { arguments, special: leaf.unwrap_or_default() << 1 | u8::from(needs_closure) }
    }

    /// A call needs the arguments in a window and nothing else.
    #[inline(always)]
    pub(crate) fn is_bare(self) -> bool {
        self.special == 0
    }

    /// The function reads register 0, so that a call must put the closure there.
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
