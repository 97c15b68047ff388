//! Reads parts of a large result from the file that keeps it: its first, last or matching lines, the value at a JSON
//! path, or its size. It also computes what this costs of the program's work budget. Every answer is limited in size.

use super::form::{JsonPath, TopLevel};
use super::grep::{Grep, GrepMatches};
use super::store::{STRIDE, Spilled};
use crate::tasks::{StopFlag, read_blocking};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Default number of lines of a head or a tail.
pub const DEFAULT_LINES: u64 = 50;

/// Limit of context lines.
pub const MOST_CONTEXT: u64 = 100;

/// Length limit of a pattern or a path.
pub const LONGEST_PATTERN: usize = 4_096;

/// Base cost of a look, in fuel.
const FUEL: u64 = 100;

/// Bytes that are read per unit of fuel.
const BYTES: u64 = 64;

/// Size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub bytes: u64,
    /// Lines; a last line without a line break counts.
    pub lines: u64,
}

/// A part of a spilled result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillPart {
    /// The text; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// The part is longer than the text.
    pub truncated: bool,
    /// Number of its first line, from 1; for an empty part, one that is beyond the last line.
    pub from_line: u64,
}

/// A request to read a part of a spilled result.
#[derive(Clone, Debug)]
pub enum Look {
    /// Size and outermost value.
    Stat,
    /// The first lines.
    Head(u64),
    /// The last lines.
    Tail(u64),
    /// A range of lines, the end inclusive.
    Slice(u64, u64),
    /// Lines that match.
    Grep {
        /// A regular expression.
        pattern: String,
        /// Lines to show before and after each match.
        context: usize,
    },
    /// The first bytes.
    Read(usize),
    /// What a path matches.
    Path(JsonPath),
}

/// The result of a look.
#[derive(Clone, Debug)]
pub enum Looked {
    /// Size and outermost value.
    Size(Stat, TopLevel),
    /// Lines.
    Lines(SpillPart),
    /// The beginning.
    Beginning(SpillPart),
    /// Lines that match.
    Matches(GrepMatches),
    /// JSON text; `None` for no match.
    Json(Option<Vec<u8>>),
}

/// Why a look failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookError {
    /// The pattern is invalid.
    Pattern(String),
    /// The match is too large; its size in bytes.
    Large(u64),
    /// The result was evicted.
    Gone,
    /// The file cannot be read.
    Io(String),
}

impl std::fmt::Display for LookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LookError::Pattern(why) => write!(f, "the pattern is wrong: {why}"),
            LookError::Large(most) => write!(f, "it finds more than {most} bytes: ask for less"),
            LookError::Gone => f.write_str("the result had to go, for newer ones: make the call again"),
            LookError::Io(why) => write!(f, "the result cannot be read: {why}"),
        }
    }
}

impl From<io::Error> for LookError {
    fn from(error: io::Error) -> LookError {
        LookError::Io(error.to_string())
    }
}

impl Look {
    /// Cost in fuel for a result of this many bytes.
    pub fn fuel(&self, bytes: u64, most: usize) -> u64 {
        FUEL + self.work(bytes, most) / BYTES
    }

    /// Bytes that the look reads.
    fn work(&self, bytes: u64, most: usize) -> u64 {
        match self {
            Look::Stat => 0,
            Look::Head(_) | Look::Tail(_) | Look::Slice(..) | Look::Read(_) => {
                bytes.min((most + STRIDE) as u64)
            }
            Look::Grep { .. } | Look::Path(_) => bytes,
        }
    }
}

impl Spilled {
    /// The result of a look, unless the spilled result was evicted meanwhile, or its file was cut: then parts would be
    /// missing without a word.
    pub(super) fn unless_lost<T>(&self, looked: Result<T, LookError>) -> Result<T, LookError> {
        let length = self.file.metadata().map(|found| found.len());
        match length {
            // An evicted one is cut, too.
            _ if self.is_gone() => Err(LookError::Gone),
            Ok(length) if length != self.bytes => Err(LookError::Io(format!(
                "its file has {length} bytes of {}: make the call again",
                self.bytes
            ))),
            Ok(_) => looked,
            Err(error) => Err(error.into()),
        }
    }

    /// What a path such as `$.items[0].name` matches, as JSON text of at most `most_bytes`; `None` for
    /// nothing.
    ///
    /// # Errors
    /// The path is invalid, the match is longer, or the file cannot be read.
    pub fn json_path(&self, path: &str, most_bytes: usize) -> Result<Option<Vec<u8>>, LookError> {
        let path = JsonPath::read(path).map_err(LookError::Pattern)?;
        self.unless_lost(path.find(self, most_bytes, &StopFlag::default()))
    }

    /// Reads on a blocking thread; stops when the future is dropped. Texts have at most `most` bytes.
    ///
    /// # Errors
    /// See [`LookError`].
    pub async fn read_blocking(self: Arc<Spilled>, look: Look, most: usize) -> Result<Looked, LookError> {
        let looked = read_blocking(move |stop| self.look(look, most, stop)).await;
        looked.unwrap_or_else(|| Err(LookError::Io("its reader has failed".to_owned())))
    }

    fn look(&self, look: Look, most: usize, stop: &StopFlag) -> Result<Looked, LookError> {
        Ok(match look {
            Look::Stat => self.unless_lost(Ok(Looked::Size(self.stat(), self.top_level())))?,
            Look::Head(lines) => Looked::Lines(self.head(lines, most)?),
            Look::Tail(lines) => Looked::Lines(self.tail(lines, most)?),
            Look::Slice(from, to) => Looked::Lines(self.slice(from, to, most)?),
            Look::Grep { pattern, context } => {
                Looked::Matches(self.grep(&Grep { pattern, context, most_bytes: most }, stop)?)
            }
            Look::Read(bytes) => Looked::Beginning(self.read(bytes.min(most))?),
            Look::Path(path) => Looked::Json(self.unless_lost(path.find(self, most, stop))?),
        })
    }

    /// Its size.
    pub fn stat(&self) -> Stat {
        Stat { bytes: self.bytes, lines: self.lines }
    }

    /// The beginning, cut at a character boundary.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, most_bytes: usize) -> Result<SpillPart, LookError> {
        let (text, truncated) = self.unless_lost(self.bytes_at(0, self.bytes, most_bytes))?;
        Ok(SpillPart { text, truncated, from_line: 1 })
    }

    /// The first lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn head(&self, lines: u64, most_bytes: usize) -> Result<SpillPart, LookError> {
        self.slice(1, lines, most_bytes)
    }

    /// The last lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&self, lines: u64, most_bytes: usize) -> Result<SpillPart, LookError> {
        self.slice(self.lines.saturating_sub(lines) + 1, self.lines, most_bytes)
    }

    /// A range of lines, counted from 1, the end inclusive.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn slice(&self, from: u64, to: u64, most_bytes: usize) -> Result<SpillPart, LookError> {
        let read = || {
            let begin = self.line_start(from.max(1))?;
            let end = self.line_start(to.saturating_add(1))?;
            self.bytes_at(begin, end.max(begin), most_bytes)
        };
        let (text, truncated) = self.unless_lost(read())?;
        Ok(SpillPart { text, truncated, from_line: from.max(1) })
    }

    /// Offset of a line's beginning; beyond the last line, the end of the file.
    fn line_start(&self, line: u64) -> Result<u64, LookError> {
        let ends = line.saturating_sub(1);
        if ends == 0 {
            return Ok(0);
        }
        if line > self.lines {
            return Ok(self.bytes);
        }
        let stride = self.marks.partition_point(|&before| before < ends).saturating_sub(1);
        let mut left = ends - self.marks[stride];
        let mut place = (stride * STRIDE) as u64;
        let mut piece = vec![0; STRIDE];
        loop {
            let read = self.file.read_at(&mut piece, place)?;
            if read == 0 {
                return Ok(self.bytes);
            }
            for end in memchr::memchr_iter(b'\n', &piece[..read]) {
                left -= 1;
                if left == 0 {
                    return Ok(place + end as u64 + 1);
                }
            }
            place += read as u64;
        }
    }

    fn bytes_at(&self, begin: u64, end: u64, most: usize) -> Result<(String, bool), LookError> {
        let whole = usize::try_from(end - begin).unwrap_or(usize::MAX);
        let mut bytes = vec![0; whole.min(most)];
        self.file.read_exact_at(&mut bytes, begin)?;
        let truncated = whole > bytes.len();
        if truncated {
            cut(&mut bytes);
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok((text, truncated))
    }
}

/// Removes an incomplete character at the end.
fn cut(bytes: &mut Vec<u8>) {
    let tail = bytes.len().saturating_sub(3);
    let start = (tail..bytes.len()).rev().find(|&at| bytes[at] & 0xC0 != 0x80);
    if let Some(start) = start
        && std::str::from_utf8(&bytes[start..]).is_err()
    {
        bytes.truncate(start);
    }
}
