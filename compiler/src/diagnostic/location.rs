//! Resolves a span of a source text to line, column and surrounding text, for error messages.

use ptc_vm::Span;

/// Characters of a source line that are shown.
const WIDEST_LINE: usize = 160;
/// Characters of the covered text that are shown.
const LONGEST_EXCERPT: usize = 80;

/// A position in the source, counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// A span of the source with the text needed to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The first character.
    pub start: Position,
    /// The position after the last character.
    pub end: Position,
    /// The line of the first character, cut if it is long.
    pub line_text: String,
    /// Characters of `line_text` before the first covered one.
    pub indent: usize,
    /// Covered characters on that line, at least 1.
    pub width: usize,
    /// The covered text on one line, shortened.
    pub excerpt: String,
}

impl Location {
    /// Resolves a span. Spans beyond the text are cut.
    pub fn resolve(source: &str, span: Span) -> Location {
        let mut lines = Lines::new(source);
        let (line, column) = lines.position(span.start);
        let text = lines.line_text();
        let (end_line, end_column) = lines.position(span.end.max(span.start));
        let before = column as usize - 1;
        let skip = (before + 1).saturating_sub(WIDEST_LINE / 2);
        let line_text: String =
            text.chars().skip(skip).take(WIDEST_LINE).map(|c| if c == '\t' { ' ' } else { c }).collect();
        let covered = source.get(span.start as usize..span.end as usize).unwrap_or("");
        let on_line = covered.lines().next().unwrap_or("").chars().take(WIDEST_LINE).count();
        let room = line_text.chars().count().saturating_sub(before - skip).max(1);
        Location {
            start: Position { line, column },
            end: Position { line: end_line, column: end_column },
            line_text,
            indent: before - skip,
            width: on_line.clamp(1, room),
            excerpt: excerpt(covered),
        }
    }
}

/// The text with each run of blanks as one, shortened.
fn excerpt(covered: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    // Only the shown part is read: a form may be as long as the program.
    for word in covered.split_ascii_whitespace() {
        let gap = usize::from(!out.is_empty());
        let room = LONGEST_EXCERPT.saturating_sub(count + gap);
        if gap == 1 {
            out.push(' ');
        }
        let length = word.chars().take(room + 1).count();
        if length > room {
            out.extend(word.chars().take(room));
            out.push('…');
            return out;
        }
        out.push_str(word);
        count += gap + length;
    }
    out
}

/// Line and column of a byte offset, both from 1; the column counts characters.
pub fn line_column(source: &str, offset: u32) -> (u32, u32) {
    Lines::new(source).position(offset)
}

/// Looks up lines and columns of one text, starting from the last look-up: look-ups in the order of the text read it
/// once in total.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines<'s> {
    source: &'s str,
    offset: usize,
    /// Start of the line of `offset`.
    line_start: usize,
    line: u32,
    column: u32,
}

impl<'s> Lines<'s> {
    pub(crate) fn new(source: &'s str) -> Lines<'s> {
        Lines { source, offset: 0, line_start: 0, line: 1, column: 1 }
    }

    /// Line and column of a byte offset, both from 1; the column counts characters.
    pub(crate) fn position(&mut self, offset: u32) -> (u32, u32) {
        let offset = self.source.floor_char_boundary(offset as usize);
        if offset < self.offset {
            *self = Lines::new(self.source);
        }
        let between = &self.source[self.offset..offset];
        if let Some(newline) = between.rfind('\n') {
            self.line += between.bytes().filter(|&byte| byte == b'\n').count() as u32;
            self.line_start = self.offset + newline + 1;
            self.column = 1;
        }
        let counted = self.offset.max(self.line_start);
        self.column += self.source[counted..offset].chars().count() as u32;
        self.offset = offset;
        (self.line, self.column)
    }

    /// The text of the line of the last look-up.
    fn line_text(&self) -> &'s str {
        self.source[self.line_start..].lines().next().unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_cut_long_texts() {
        let source = "(str \"äö\")\n  (foo\n    1)";
        let location = Location::resolve(source, Span::new(15, 26));
        assert_eq!(
            (location.start, location.end),
            (Position { line: 2, column: 3 }, Position { line: 3, column: 7 })
        );
        assert_eq!((location.line_text.as_str(), location.indent, location.width), ("  (foo", 2, 4));
        assert_eq!(location.excerpt, "(foo 1)");
        let long = format!("(+ {})", "1 ".repeat(500));
        let location = Location::resolve(&long, Span::new(900, 901));
        assert!(location.line_text.chars().count() <= WIDEST_LINE && location.indent < WIDEST_LINE);
        assert!(Location::resolve(&long, Span::new(0, 900)).excerpt.ends_with('…'));
        assert_eq!(Location::resolve("", Span::new(7, 9)).width, 1);
    }
}
