//! Parts of a result that is kept. Whatever is asked for, an answer has a bound.

use super::form::{JsonPath, TopLevel};
use super::grep::{Grep, GrepMatches};
use super::store::{STRIDE, Spilled};
use crate::tasks::{StopFlag, look_aside};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Lines of a head and a tail that do not say how many.
pub const DEFAULT_LINES: u64 = 50;

/// Lines of context that may be asked for.
pub const MOST_CONTEXT: u64 = 100;

/// Longest pattern or path.
pub const LONGEST_PATTERN: usize = 4_096;

/// Fuel of any look.
const FUEL: u64 = 100;

/// Bytes that are looked at for a unit of fuel.
const BYTES: u64 = 64;

/// Size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub bytes: u64,
    /// Lines; a last one without its end counts.
    pub lines: u64,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPart {
    /// The text, bytes that are no UTF-8 replaced.
    pub text: String,
    /// The part goes on beyond the text.
    pub truncated: bool,
    /// Its first line, from 1; beyond the last one for a part without any.
    pub from_line: u64,
}

/// A look into a result.
#[derive(Clone, Debug)]
pub enum Look {
    /// Its size, and what it is at its top.
    Stat,
    /// The first lines.
    Head(u64),
    /// The last lines.
    Tail(u64),
    /// Lines, the last one included.
    Slice(u64, u64),
    /// Lines that match.
    Grep {
        /// A regular expression.
        pattern: String,
        /// Lines to show before and after each.
        context: usize,
    },
    /// The first bytes.
    Read(usize),
    /// What a path finds.
    Path(JsonPath),
}

/// What it has found.
#[derive(Clone, Debug)]
pub enum Looked {
    /// Its size, and what it is at its top.
    Size(Stat, TopLevel),
    /// Lines.
    Lines(KeptPart),
    /// The beginning.
    Beginning(KeptPart),
    /// Lines that match.
    Matches(GrepMatches),
    /// JSON text, if there is any.
    Json(Option<Vec<u8>>),
}

/// Why a result cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookError {
    /// The pattern is wrong.
    Pattern(String),
    /// More was found than may be given, so many bytes.
    Large(u64),
    /// It had to go.
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
    /// What it costs in a result of so many bytes, in fuel.
    pub fn fuel(&self, bytes: u64, most: usize) -> u64 {
        FUEL + self.work(bytes, most) / BYTES
    }

    /// Bytes that are looked at.
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
    /// What was looked at, unless it went meanwhile.
    pub(super) fn still<T>(&self, looked: Result<T, LookError>) -> Result<T, LookError> {
        if self.is_gone() { Err(LookError::Gone) } else { looked }
    }

    /// What a path such as `$.items[0].name` finds, as JSON text of at most so many bytes; `None` for nothing.
    ///
    /// # Errors
    /// The path is wrong, or finds more than that; the file cannot be read.
    pub fn json_path(&self, path: &str, most_bytes: usize) -> Result<Option<Vec<u8>>, LookError> {
        let path = JsonPath::read(path).map_err(LookError::Pattern)?;
        self.still(path.find(self, most_bytes, &StopFlag::default()))
    }

    /// Looks, on a thread where it may block, as long as somebody waits for it; texts have at most so many bytes.
    ///
    /// # Errors
    /// See [`LookError`].
    pub async fn look_aside(self: Arc<Spilled>, look: Look, most: usize) -> Result<Looked, LookError> {
        let looked = look_aside(move |stop| self.look(look, most, stop)).await;
        looked.unwrap_or_else(|| Err(LookError::Io("its reader has failed".to_owned())))
    }

    fn look(&self, look: Look, most: usize, stop: &StopFlag) -> Result<Looked, LookError> {
        Ok(match look {
            Look::Stat => self.still(Ok(Looked::Size(self.stat(), self.top_level())))?,
            Look::Head(lines) => Looked::Lines(self.head(lines, most)?),
            Look::Tail(lines) => Looked::Lines(self.tail(lines, most)?),
            Look::Slice(from, to) => Looked::Lines(self.slice(from, to, most)?),
            Look::Grep { pattern, context } => {
                Looked::Matches(self.grep(&Grep { pattern, context, most_bytes: most }, stop)?)
            }
            Look::Read(bytes) => Looked::Beginning(self.read(bytes.min(most))?),
            Look::Path(path) => Looked::Json(self.still(path.find(self, most, stop))?),
        })
    }

    /// Its size.
    pub fn stat(&self) -> Stat {
        Stat { bytes: self.bytes, lines: self.lines }
    }

    /// The beginning, cut before a character that does not fit.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, most_bytes: usize) -> Result<KeptPart, LookError> {
        let (text, truncated) = self.still(self.bytes_at(0, self.bytes, most_bytes))?;
        Ok(KeptPart { text, truncated, from_line: 1 })
    }

    /// The first lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn head(&self, lines: u64, most_bytes: usize) -> Result<KeptPart, LookError> {
        self.slice(1, lines, most_bytes)
    }

    /// The last lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&self, lines: u64, most_bytes: usize) -> Result<KeptPart, LookError> {
        self.slice(self.lines.saturating_sub(lines) + 1, self.lines, most_bytes)
    }

    /// Lines, counted from 1, the last one included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn slice(&self, from: u64, to: u64, most_bytes: usize) -> Result<KeptPart, LookError> {
        let read = || {
            let begin = self.line_start(from.max(1))?;
            let end = self.line_start(to.saturating_add(1))?;
            self.bytes_at(begin, end.max(begin), most_bytes)
        };
        let (text, truncated) = self.still(read())?;
        Ok(KeptPart { text, truncated, from_line: from.max(1) })
    }

    /// Where a line begins; the end of the file beyond the last.
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

/// Takes the beginning of a character off the end.
fn cut(bytes: &mut Vec<u8>) {
    let tail = bytes.len().saturating_sub(3);
    let start = (tail..bytes.len()).rev().find(|&at| bytes[at] & 0xC0 != 0x80);
    if let Some(start) = start
        && std::str::from_utf8(&bytes[start..]).is_err()
    {
        bytes.truncate(start);
    }
}
