//! Reformats JSON into lines, so that a large result can be read and searched by line: each part that is short enough
//! gets one line. A list of rows gets one row per line.

use super::FormFault;
use crate::spill::store::SpillError;

/// Length limit of a list or an object on one line.
const LINE: usize = 1 << 10;

/// Depth limit: beyond it the indentation would be longer than the text.
const DEEPEST: usize = 200;

/// Limit of indentation.
const INDENTED: usize = 16;

/// Writes the laid-out text.
pub(super) type Write<'w> = dyn FnMut(&[u8]) -> Result<(), SpillError> + 'w;

/// An open list or object.
struct OpenPart {
    closes_with: u8,
    /// Its parts have lines of their own. The outermost lists and objects are spread first.
    is_spread: bool,
    /// Position of its bracket in the line, while it is not spread.
    start: usize,
    /// Positions of its parts in the line, except the first.
    splits: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Expects {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    Colon,
    CommaOrEnd,
    End,
}

#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    Text { escaped: bool, is_name: bool },
    Word,
}

/// Lays out one text that arrives in pieces. It stops at anything that is no JSON.
pub(super) struct Layout {
    line: Vec<u8>,
    open: Vec<OpenPart>,
    expects: Expects,
    within: Within,
    /// The word that is being read.
    word: Vec<u8>,
    /// Number of spread lists and objects.
    spread: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            line: Vec::with_capacity(LINE * 2),
            open: Vec::new(),
            expects: Expects::Value,
            within: Within::Nothing,
            word: Vec::new(),
            spread: 0,
        }
    }
}

impl Layout {
    pub(super) fn push(&mut self, mut part: &[u8], out: &mut Write<'_>) -> Result<(), FormFault> {
        while let Some(&byte) = part.first() {
            let taken = match self.within {
                Within::Text { escaped, is_name } => self.text(part, escaped, is_name),
                Within::Word if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => {
                    if self.word.len() > 64 && !byte.is_ascii_digit() {
                        return Err(FormFault::NotJson);
                    }
                    self.word.push(byte);
                    1
                }
                Within::Word => {
                    self.end_word()?;
                    0
                }
                Within::Nothing => {
                    self.token(byte, out)?;
                    1
                }
            };
            part = &part[taken..];
            if self.line.len() > LINE {
                self.spread(out)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut Write<'_>) -> Result<(), FormFault> {
        if self.within == Within::Word {
            self.end_word()?;
        }
        if self.expects != Expects::End || self.within != Within::Nothing {
            return Err(FormFault::NotJson);
        }
        self.line.push(b'\n');
        Ok(out(&self.line)?)
    }

    /// Consumes the available part of a string.
    fn text(&mut self, part: &[u8], escaped: bool, is_name: bool) -> usize {
        if escaped {
            self.line.push(part[0]);
            self.within = Within::Text { escaped: false, is_name };
            return 1;
        }
        // At most a line at once, so that little text waits.
        let part = &part[..part.len().min(LINE)];
        let end = memchr::memchr2(b'"', b'\\', part);
        let taken = end.map_or(part.len(), |end| end + 1);
        self.line.extend_from_slice(&part[..taken]);
        match end.map(|end| part[end]) {
            Some(b'"') => {
                self.within = Within::Nothing;
                self.expects = if is_name { Expects::Colon } else { self.after_value() };
            }
            Some(_) => self.within = Within::Text { escaped: true, is_name },
            None => {}
        }
        taken
    }

    fn token(&mut self, byte: u8, out: &mut Write<'_>) -> Result<(), FormFault> {
        use Expects::{Colon, CommaOrEnd, Name, NameOrEnd, Value, ValueOrEnd};
        let expects_value = matches!(self.expects, Value | ValueOrEnd);
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'"' if expects_value || matches!(self.expects, Name | NameOrEnd) => {
                self.line.push(byte);
                self.within = Within::Text { escaped: false, is_name: !expects_value };
            }
            b'{' | b'[' if expects_value && self.open.len() < DEEPEST => {
                let (closes_with, expects) =
                    if byte == b'{' { (b'}', NameOrEnd) } else { (b']', ValueOrEnd) };
                let start = self.line.len();
                self.open.push(OpenPart { closes_with, is_spread: false, start, splits: Vec::new() });
                self.line.push(byte);
                self.expects = expects;
            }
            b'}' | b']' if matches!(self.expects, CommaOrEnd | NameOrEnd | ValueOrEnd) => {
                let Some(open) = self.open.pop().filter(|open| open.closes_with == byte) else {
                    return Err(FormFault::NotJson);
                };
                if open.is_spread {
                    self.spread -= 1;
                    self.end_line(self.open.len(), out)?;
                }
                self.line.push(byte);
                self.expects = self.after_value();
            }
            b':' if self.expects == Colon => {
                self.line.push(byte);
                self.expects = Value;
            }
            b',' if self.expects == CommaOrEnd => {
                self.line.push(byte);
                let depth = self.open.len();
                let Some(open) = self.open.last_mut() else { return Err(FormFault::NotJson) };
                self.expects = if open.closes_with == b'}' { Name } else { Value };
                if open.is_spread {
                    self.end_line(depth, out)?;
                } else {
                    open.splits.push(self.line.len());
                }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' if expects_value => {
                self.word.push(byte);
                self.within = Within::Word;
            }
            _ => return Err(FormFault::NotJson),
        }
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), FormFault> {
        let is_json = match self.word[0] {
            b't' | b'f' | b'n' => matches!(&self.word[..], b"true" | b"false" | b"null"),
            _ => self.word.iter().skip(1).all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)),
        };
        if !is_json {
            return Err(FormFault::NotJson);
        }
        self.line.append(&mut self.word);
        self.within = Within::Nothing;
        self.expects = self.after_value();
        Ok(())
    }

    fn after_value(&self) -> Expects {
        if self.open.is_empty() { Expects::End } else { Expects::CommaOrEnd }
    }

    /// Writes the line, and begins another one at this depth.
    fn end_line(&mut self, depth: usize, out: &mut Write<'_>) -> Result<(), SpillError> {
        self.line.push(b'\n');
        out(&self.line)?;
        self.line.clear();
        self.line.resize(depth.min(INDENTED), b' ');
        Ok(())
    }

    /// The line is too long: the outermost list or object on it gets one line per part. Without one, a long
    /// text is written out.
    fn spread(&mut self, out: &mut Write<'_>) -> Result<(), FormFault> {
        while self.line.len() > LINE {
            let depth = self.spread;
            let Some(open) = self.open.get_mut(depth) else {
                out(&self.line)?;
                self.line.clear();
                return Ok(());
            };
            open.is_spread = true;
            self.spread += 1;
            let mut begin = 0;
            let ends = std::iter::once(open.start + 1).chain(std::mem::take(&mut open.splits));
            for end in ends {
                if begin > 0 {
                    out(&b" ".repeat((depth + 1).min(INDENTED)))?;
                }
                out(&self.line[begin..end])?;
                out(b"\n")?;
                begin = end;
            }
            let indent = (depth + 1).min(INDENTED);
            self.line.splice(..begin, std::iter::repeat_n(b' ', indent));
            for inner in &mut self.open[depth + 1..] {
                inner.start = inner.start - begin + indent;
                inner.splits.iter_mut().for_each(|split| *split = *split - begin + indent);
            }
        }
        Ok(())
    }
}
