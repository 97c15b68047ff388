//! Parses JSON from a file in pieces, so that a large result is never in memory as a whole: visits members and items,
//! skips values, copies or decodes parts.

use crate::spill::store::SpillError;
use crate::tasks::StopFlag;
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PIECE: usize = 256 << 10;

/// Limit of nesting.
const DEEPEST: usize = 10_000;

/// A reader that begins at the start of the file and has its own position.
pub(super) struct Cursor<'f> {
    file: &'f File,
    piece: Vec<u8>,
    /// Offset of the piece in the file.
    begin: u64,
    /// Position of the next byte in the piece.
    at: usize,
    /// Stops reading when raised.
    pub(super) stop: StopFlag,
    /// The error that ended the reading, if any.
    pub(super) fault: Option<std::io::Error>,
}

impl<'f> Cursor<'f> {
    pub(super) fn new(file: &'f File) -> Cursor<'f> {
        Cursor::stopped_by(file, &StopFlag::default())
    }

    /// [`Cursor::new`] that reads until the flag is raised.
    pub(super) fn stopped_by(file: &'f File, stop: &StopFlag) -> Cursor<'f> {
        Cursor { file, piece: Vec::new(), begin: 0, at: 0, stop: stop.clone(), fault: None }
    }

    /// The offset of the next byte in the file.
    pub(super) fn place(&self) -> u64 {
        self.begin + self.at as u64
    }

    fn go_to(&mut self, place: u64) {
        let within = place.checked_sub(self.begin).and_then(|at| usize::try_from(at).ok());
        match within.filter(|&at| at < self.piece.len()) {
            Some(at) => self.at = at,
            None => {
                (self.begin, self.at) = (place, 0);
                self.piece.clear();
            }
        }
    }

    /// The rest of the piece, or the next piece.
    fn rest(&mut self) -> &[u8] {
        if self.at == self.piece.len() {
            self.begin += self.at as u64;
            self.at = 0;
            self.piece.resize(PIECE, 0);
            let read = loop {
                let read = self.stop.check().and_then(|()| self.file.read_at(&mut self.piece, self.begin));
                match read {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.fault = Some(error);
                        break 0;
                    }
                    Ok(read) => break read,
                }
            };
            self.piece.truncate(read);
        }
        &self.piece[self.at..]
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// The next byte that is no whitespace.
    pub(super) fn token(&mut self) -> Option<u8> {
        while self.peek()?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.peek()
    }

    /// Consumes this byte, after whitespace.
    pub(super) fn takes(&mut self, byte: u8) -> Option<()> {
        (self.token()? == byte).then(|| self.at += 1)
    }

    /// Skips a string; returns the range of its content.
    pub(super) fn string(&mut self) -> Option<Range<u64>> {
        self.takes(b'"')?;
        let start = self.place();
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return None;
            }
            match memchr::memchr2(b'"', b'\\', rest) {
                None => self.at = self.piece.len(),
                Some(found) => {
                    let is_end = rest[found] == b'"';
                    self.at += found;
                    if is_end {
                        let end = self.place();
                        self.at += 1;
                        return Some(start..end);
                    }
                    self.next()?;
                    self.next()?;
                }
            }
        }
    }

    /// Reads a key; returns a text that is no known key if it is long or has escapes.
    pub(super) fn name(&mut self) -> Option<String> {
        const LONGEST: u64 = 64;
        let place = self.string()?;
        let name = self.behind(place.start..place.end.min(place.start + LONGEST))?;
        Some(String::from_utf8_lossy(&name).into_owned())
    }

    /// Skips a string; true if its content is this text, in whatever escapes.
    pub(super) fn is_name(&mut self, text: &str) -> Option<bool> {
        /// Per byte of text.
        const LONGEST_ESCAPE: u64 = 6;
        let place = self.string()?;
        let (bytes, wanted) = (place.end - place.start, text.len() as u64);
        if bytes < wanted || bytes > wanted * LONGEST_ESCAPE {
            return Some(false);
        }
        let content = self.behind(place)?;
        if bytes == wanted {
            return Some(*content == *text.as_bytes());
        }
        let is_it = |quoted: &str| serde_json::from_str::<String>(quoted).is_ok_and(|name| name == text);
        Some(std::str::from_utf8(&content).is_ok_and(|content| is_it(&format!("\"{content}\""))))
    }

    /// A part of the file that was skipped, from the current piece if that contains it.
    fn behind(&self, place: Range<u64>) -> Option<Cow<'_, [u8]>> {
        if let Some(begin) = place.start.checked_sub(self.begin) {
            let (begin, end) = (usize::try_from(begin).ok()?, usize::try_from(place.end - self.begin).ok()?);
            if let Some(part) = self.piece.get(begin..end) {
                return Some(part.into());
            }
        }
        let mut part = vec![0; usize::try_from(place.end - place.start).ok()?];
        self.file.read_exact_at(&mut part, place.start).ok()?;
        Some(part.into())
    }

    /// Skips a value; returns its range.
    pub(super) fn value(&mut self) -> Option<Range<u64>> {
        self.value_within(u64::MAX)
    }

    /// [`Cursor::value`], unless the value ends after `end`.
    pub(super) fn value_within(&mut self, end: u64) -> Option<Range<u64>> {
        let first = self.token()?;
        let start = self.place();
        match first {
            b'"' => {
                let content = self.string()?;
                return Some(start..content.end + 1);
            }
            b'{' | b'[' => {
                let mut depth = 0;
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                    if depth > DEEPEST || self.begin > end {
                        return None;
                    }
                }
            }
            _ => {
                while !matches!(self.peek(), None | Some(b',' | b'}' | b']'))
                    && !self.peek()?.is_ascii_whitespace()
                {
                    self.at += 1;
                }
            }
        }
        Some(start..self.place())
    }

    /// Goes through the members of an object; `member` consumes the value of each.
    pub(super) fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.members(Cursor::name, |cursor, name| member(cursor, &name))
    }

    /// Goes through the members of an object: `name` consumes the name of each, `member` the value.
    pub(super) fn members<N>(
        &mut self,
        mut name: impl FnMut(&mut Self) -> Option<N>,
        mut member: impl FnMut(&mut Self, N) -> Option<()>,
    ) -> Option<()> {
        self.sequence([b'{', b'}'], |cursor| {
            let name = name(cursor)?;
            cursor.takes(b':')?;
            member(cursor, name)
        })
    }

    /// Goes through the items of a list; `item` consumes each.
    pub(super) fn list(&mut self, item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.sequence([b'[', b']'], item)
    }

    fn sequence(
        &mut self,
        [open, close]: [u8; 2],
        mut part: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.takes(open)?;
        if self.token()? == close {
            return self.takes(close);
        }
        loop {
            part(self)?;
            if self.takes(b',').is_none() {
                return self.takes(close);
            }
        }
    }

    /// Copies a part of the file.
    pub(super) fn copy<E: From<SpillError>>(
        &mut self,
        place: Range<u64>,
        mut out: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.go_to(place.start);
        while self.place() < place.end {
            let left = usize::try_from(place.end - self.place()).unwrap_or(usize::MAX);
            let rest = self.rest();
            let part = &rest[..rest.len().min(left)];
            if part.is_empty() {
                return Err(self.cut_short().into());
            }
            out(part)?;
            self.at += part.len();
        }
        Ok(())
    }

    /// Copies the content of a string with its escapes decoded.
    pub(super) fn decode<E: From<SpillError>>(
        &mut self,
        place: Range<u64>,
        mut out: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.go_to(place.start);
        // Written in pieces: escapes may be everywhere.
        let mut text: Vec<u8> = Vec::with_capacity(PIECE + 8);
        let mut surrogate = None;
        while self.place() < place.end {
            if text.len() >= PIECE {
                out(&text)?;
                text.clear();
            }
            let left = usize::try_from(place.end - self.place()).unwrap_or(usize::MAX);
            let rest = self.rest();
            let rest = &rest[..rest.len().min(left)];
            if rest.is_empty() {
                return Err(self.cut_short().into());
            }
            let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            if plain > 0 {
                if surrogate.take().is_some() {
                    text.extend_from_slice("\u{fffd}".as_bytes());
                }
                text.extend_from_slice(&rest[..plain]);
                self.at += plain;
                continue;
            }
            let Some(characters) = self.escape(&mut surrogate) else { return Err(self.cut_short().into()) };
            for character in characters.into_iter().flatten() {
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        if surrogate.is_some() {
            text.extend_from_slice("\u{fffd}".as_bytes());
        }
        out(&text)
    }

    /// Reads an escape; the first half of a surrogate pair waits in `surrogate`. Invalid characters become
    /// U+FFFD.
    fn escape(&mut self, surrogate: &mut Option<u32>) -> Option<[Option<char>; 2]> {
        const NONE: char = '\u{fffd}';
        self.next()?;
        let waiting = surrogate.take();
        let plain = match self.next()? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    unit = unit * 16 + char::from(self.next()?).to_digit(16)?;
                }
                return Some(match (waiting, unit) {
                    (Some(high), 0xDC00..0xE000) => {
                        let both = 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                        [char::from_u32(both), None]
                    }
                    (waiting, 0xD800..0xDC00) => {
                        *surrogate = Some(unit);
                        [waiting.map(|_| NONE), None]
                    }
                    (waiting, unit) => [waiting.map(|_| NONE), Some(char::from_u32(unit).unwrap_or(NONE))],
                });
            }
            other => char::from(other),
        };
        Some([waiting.map(|_| NONE), Some(plain)])
    }

    fn cut_short(&mut self) -> SpillError {
        match self.fault.take() {
            Some(error) => error.into(),
            None => SpillError::Io("it ends early".to_owned()),
        }
    }
}
