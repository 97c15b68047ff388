//! Defines how much a tool's signature shows of deep levels and optional members, so that a long signature can be
//! shortened step by step.

/// Depth limit; deeper values are shown by their type only.
pub(super) const DEEPEST: usize = 8;

/// What is written of a value. Where something is left out, a mark `…` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    /// Nothing: its name stands at the end of the map.
    Named,
    /// Types, bounds and short constraints.
    Bare,
    /// The same with the required members of maps, and with longer constraints.
    Brief,
    /// Everything.
    Whole,
}

impl Content {
    /// Size limit of a pattern, a default or an excluded value, in bytes.
    pub(super) const fn fact_room(self) -> usize {
        match self {
            Content::Whole => 120,
            Content::Brief => 60,
            Content::Bare | Content::Named => 16,
        }
    }

    /// Size limit of an enumeration, in characters. Of a longer one the first values are written.
    pub(super) const fn values_room(self) -> usize {
        match self {
            Content::Whole => 400,
            Content::Brief => 120,
            Content::Bare | Content::Named => 40,
        }
    }
}

/// How much a signature says. Of the optional members of a map, in schema order, the first ones say more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    pub(super) levels: usize,
    /// How many of them are written whole.
    whole: usize,
    /// How many of them are written briefly or whole.
    brief: usize,
    /// How many of them are written at all; the others are only named.
    bare: usize,
    /// What only the description of a value says is written, too.
    pub(super) has_hints: bool,
}

impl Detail {
    /// Everything that the schema says.
    pub(super) const FULL: Detail =
        Detail { levels: DEEPEST, whole: usize::MAX, brief: usize::MAX, bare: usize::MAX, has_hints: false };

    /// Everything, on one line.
    pub(super) const LINE: Detail = Detail { has_hints: true, ..Detail::FULL };

    const fn line(whole: usize, brief: usize, bare: usize) -> Detail {
        Detail { whole, brief, bare, ..Detail::LINE }
    }

    /// True if some optional members are written whole.
    pub(super) fn has_whole(&self) -> bool {
        self.whole > 0
    }

    /// What is written of the optional member at this index, in schema order.
    pub(super) fn content(&self, at: usize) -> Content {
        let steps = [(self.whole, Content::Whole), (self.brief, Content::Brief), (self.bare, Content::Bare)];
        steps.into_iter().find(|(count, _)| at < *count).map_or(Content::Named, |(_, content)| content)
    }
}

const ALL: usize = usize::MAX;

/// Ways to write a long signature on one line, the most precise first.
pub(super) const SHORTER: [Detail; 13] = [
    Detail::line(8, ALL, ALL),
    Detail::line(4, ALL, ALL),
    Detail::line(2, ALL, ALL),
    Detail::line(0, ALL, ALL),
    Detail::line(0, 8, ALL),
    Detail::line(0, 4, ALL),
    Detail::line(0, 0, ALL),
    Detail::line(0, 0, 16),
    Detail::line(0, 0, 12),
    Detail::line(0, 0, 8),
    Detail::line(0, 0, 5),
    Detail::line(0, 0, 2),
    REQUIRED,
];

/// No optional member.
pub(super) const REQUIRED: Detail = Detail::line(0, 0, 0);

/// Fewer levels, for a line that is too long nevertheless.
pub(super) const FEWER_LEVELS: [Detail; 2] =
    [Detail { levels: 3, ..REQUIRED }, Detail { levels: 1, ..REQUIRED }];
