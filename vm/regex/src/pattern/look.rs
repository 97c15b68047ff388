//! Decides whether an assertion (`^`, `$`, `\b` and others) holds at a position, from the characters on both sides.

use regex_syntax::ast::AssertionKind;
use regex_syntax::is_word_character;

/// What assertions can see of the character on one side of a position, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Side(u8);

impl Side {
    /// No character: the beginning or end of the text.
    pub(crate) const EDGE: Side = Side(1);
    const LINE_FEED: Side = Side(2);
    const CARRIAGE_RETURN: Side = Side(4);
    const WORD: Side = Side(8);
    const ASCII_WORD: Side = Side(16);
    const FINAL: Side = Side(32);
    /// The line feed that is the last character of the text.
    pub(crate) const FINAL_LINE_FEED: Side = Side(Side::LINE_FEED.0 | Side::FINAL.0);
    /// Number of different sides.
    pub(crate) const COUNT: usize = 64;

    fn has(self, bits: Side) -> bool {
        self.0 & bits.0 != 0
    }

    fn or(self, bits: Side) -> Side {
        Side(self.0 | bits.0)
    }

    /// The bits that the assertions of `mask` can distinguish.
    #[inline]
    pub(crate) fn seen_by(self, mask: Side) -> Side {
        Side(self.0 & mask.0)
    }

    /// The bits as a number below [`Side::COUNT`].
    #[inline]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Side {
        Side(bits)
    }

    /// The side with this character.
    #[inline]
    pub(crate) fn from_character(character: char) -> Side {
        match character {
            '\n' => Side::LINE_FEED,
            '\r' => Side::CARRIAGE_RETURN,
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Side(Side::WORD.0 | Side::ASCII_WORD.0),
            character if !character.is_ascii() && is_word_character(character) => Side::WORD,
            _ => Side(0),
        }
    }

    /// The side with the character before a position, or the edge of the text.
    #[inline]
    pub(crate) fn before(text: &str, at: usize) -> Side {
        text[..at].chars().next_back().map_or(Side::EDGE, Side::from_character)
    }

    /// The side with the character after a position, or the edge of the text.
    #[inline]
    pub(crate) fn after(text: &str, at: usize) -> Side {
        match &text[at..] {
            "\n" => Side::FINAL_LINE_FEED,
            rest => rest.chars().next().map_or(Side::EDGE, Side::from_character),
        }
    }

    /// Whether assertions with this mask distinguish the last line feed from others.
    pub(crate) fn sees_final(self) -> bool {
        self.has(Side::FINAL)
    }
}

/// An assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Start,
    End,
    /// The end, or before a line feed that is the last character.
    EndOrFinalLineFeed,
    StartLine,
    EndLine,
    /// Lines that end in `\r\n`, too.
    StartLineCrlf,
    EndLineCrlf,
    /// `true`: only ASCII characters are word characters.
    Word(WordEdge, bool),
}

/// Which edge of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordEdge {
    Any,
    None,
    Start,
    End,
    StartHalf,
    EndHalf,
}

impl Look {
    /// The assertion of a pattern under the flags `m`, `R` and `u`.
    pub(crate) fn new(kind: &AssertionKind, multi_line: bool, crlf: bool, unicode: bool) -> Look {
        let word = |edge| Look::Word(edge, !unicode);
        match kind {
            AssertionKind::StartText => Look::Start,
            AssertionKind::EndText => Look::End,
            AssertionKind::StartLine if !multi_line => Look::Start,
            AssertionKind::EndLine if !multi_line => Look::EndOrFinalLineFeed,
            AssertionKind::StartLine if crlf => Look::StartLineCrlf,
            AssertionKind::EndLine if crlf => Look::EndLineCrlf,
            AssertionKind::StartLine => Look::StartLine,
            AssertionKind::EndLine => Look::EndLine,
            AssertionKind::WordBoundary => word(WordEdge::Any),
            AssertionKind::NotWordBoundary => word(WordEdge::None),
            AssertionKind::WordBoundaryStart | AssertionKind::WordBoundaryStartAngle => word(WordEdge::Start),
            AssertionKind::WordBoundaryEnd | AssertionKind::WordBoundaryEndAngle => word(WordEdge::End),
            AssertionKind::WordBoundaryStartHalf => word(WordEdge::StartHalf),
            AssertionKind::WordBoundaryEndHalf => word(WordEdge::EndHalf),
        }
    }

    /// Whether the assertion holds between these sides.
    pub(crate) fn holds(self, before: Side, after: Side) -> bool {
        let line = Side::EDGE.or(Side::LINE_FEED);
        match self {
            Look::Start => before.has(Side::EDGE),
            Look::End => after.has(Side::EDGE),
            Look::EndOrFinalLineFeed => after.has(Side::EDGE.or(Side::FINAL)),
            // As in Java and Perl, no line begins at the end of the text.
            Look::StartLine => before.has(line) && !after.has(Side::EDGE),
            Look::EndLine => after.has(line),
            Look::StartLineCrlf => {
                let is_start =
                    before.has(line) || before.has(Side::CARRIAGE_RETURN) && !after.has(Side::LINE_FEED);
                is_start && !after.has(Side::EDGE)
            }
            Look::EndLineCrlf => {
                after.has(Side::EDGE.or(Side::CARRIAGE_RETURN))
                    || after.has(Side::LINE_FEED) && !before.has(Side::CARRIAGE_RETURN)
            }
            Look::Word(edge, ascii) => {
                let word = if ascii { Side::ASCII_WORD } else { Side::WORD };
                let (before, after) = (before.has(word), after.has(word));
                match edge {
                    WordEdge::Any => before != after,
                    WordEdge::None => before == after,
                    WordEdge::Start => !before && after,
                    WordEdge::End => before && !after,
                    WordEdge::StartHalf => !before,
                    WordEdge::EndHalf => !after,
                }
            }
        }
    }

    /// The bits that the assertion uses.
    pub(crate) fn mask(self) -> Side {
        match self {
            Look::Start | Look::End => Side::EDGE,
            Look::EndOrFinalLineFeed => Side::EDGE.or(Side::FINAL),
            Look::StartLine | Look::EndLine => Side::EDGE.or(Side::LINE_FEED),
            Look::StartLineCrlf | Look::EndLineCrlf => {
                Side::EDGE.or(Side::LINE_FEED).or(Side::CARRIAGE_RETURN)
            }
            Look::Word(_, false) => Side::WORD,
            Look::Word(_, true) => Side::ASCII_WORD,
        }
    }

    /// The bits that all assertions of a program use.
    pub(crate) fn masks(looks: impl Iterator<Item = Look>) -> Side {
        looks.fold(Side::default(), |mask, look| mask.or(look.mask()))
    }
}

/// The sides of the position before byte `at`.
pub(crate) fn sides(text: &str, at: usize) -> (Side, Side) {
    (Side::before(text, at), Side::after(text, at))
}
