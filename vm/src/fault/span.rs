//! Defines spans, the ranges of source text by which errors and compiled code name their places in a program.

/// A half-open range of byte offsets into the source of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A range.
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// Whether the other span lies inside.
    pub const fn covers(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
