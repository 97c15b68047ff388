//! Tracks which flags are in force at a position of a pattern (ignore case, multi-line, dot matches newline and
//! others), and applies the changes that the pattern makes.

use regex_syntax::ast::{Flag, Flags as AstFlags};

/// The flags in force at a position of the pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub(crate) ignore_case: bool,
    pub(crate) multi_line: bool,
    pub(crate) dot_all: bool,
    pub(crate) swap_greed: bool,
    pub(crate) unicode: bool,
    pub(crate) crlf: bool,
}

impl Flags {
    pub(crate) const DEFAULT: Flags = Flags {
        ignore_case: false,
        multi_line: false,
        dot_all: false,
        swap_greed: false,
        unicode: true,
        crlf: false,
    };

    /// Sets and clears the flags that the pattern names.
    pub(crate) fn change(&mut self, flags: &AstFlags) {
        let set = |place: &mut bool, flag: Flag| {
            if let Some(on) = flags.flag_state(flag) {
                *place = on;
            }
        };
        set(&mut self.ignore_case, Flag::CaseInsensitive);
        set(&mut self.multi_line, Flag::MultiLine);
        set(&mut self.dot_all, Flag::DotMatchesNewLine);
        set(&mut self.swap_greed, Flag::SwapGreed);
        set(&mut self.unicode, Flag::Unicode);
        set(&mut self.crlf, Flag::CRLF);
    }

    /// Whether both flags have the same effect on a class.
    pub(crate) fn same(self, other: Flags) -> bool {
        (self.ignore_case, self.dot_all, self.unicode, self.crlf)
            == (other.ignore_case, other.dot_all, other.unicode, other.crlf)
    }
}
