//! Builtins as programs and values know them: numbers, and what has to be known of one where the functions
//! themselves are not.

use super::arity::Arity;

/// Number of a builtin: its row in the table of builtins, which alone makes numbers, so that each has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BuiltinId(u16);

impl BuiltinId {
    /// The builtin of a row that is there.
    pub(crate) const fn new(row: u16) -> BuiltinId {
        BuiltinId(row)
    }

    /// Position in the table.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of builtins, for the text form of programs.
pub type Names = fn(BuiltinId) -> &'static str;

/// Builtins that others treat as what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// `cat`.
    Cat,
    /// `compare`.
    Compare,
    /// `dec`.
    Decrement,
    /// `>`.
    Greater,
    /// `identity`.
    Identity,
    /// `inc`.
    Increment,
    /// `<`.
    Less,
    /// `update`.
    Update,
}

/// What is known of a builtin without its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Name without namespace.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) usage: &'static str,
    /// Numbers of arguments.
    pub(crate) arity: Arity,
    /// It computes its value at once.
    pub(crate) is_plain: bool,
    /// Which one it is, where that matters.
    pub(crate) known: Option<Known>,
}

/// The facts of all builtins. Handed down from their table, which is above all that uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtins(&'static [Facts]);

impl Builtins {
    /// The facts by number.
    pub(crate) const fn new(rows: &'static [Facts]) -> Builtins {
        Builtins(rows)
    }

    /// The facts of one.
    #[inline]
    pub(crate) fn of(self, builtin: BuiltinId) -> &'static Facts {
        &self.0[builtin.index()]
    }
}
