//! Searches a large result in a file for lines that match a regular expression, in time linear in its size.
//!
//! The search runs on a blocking thread that cannot be preempted, so its time must be linear in the bytes for
//! every pattern. Only patterns with a small automaton, forwards and backwards, are accepted; then no engine
//! falls back to simulating many threads.

use super::look::LookError;
use super::store::Spilled;
use crate::tasks::StopFlag;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use regex_automata::dfa::dense;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Length limit of a line, in bytes.
const LONGEST_LINE: usize = 16 << 20;

/// Size limit of a compiled pattern before it becomes an automaton.
const PROGRAM: usize = 256 << 10;

/// Size limit of the automaton, and of the work to build it.
const AUTOMATON: usize = 4 << 20;

/// A search.
#[derive(Clone, Debug)]
pub struct Grep {
    /// A regular expression; case is ignored.
    pub pattern: String,
    /// Lines to show before and after each match.
    pub context: usize,
    /// Size limit of the text.
    pub most_bytes: usize,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepMatches {
    /// `12:line` for a match, `13-line` for context; `--` between groups.
    pub text: String,
    /// Number of lines that match, including those that are not shown.
    pub matches: u64,
    /// Not all are shown.
    pub truncated: bool,
}

impl Spilled {
    /// Finds the lines that match, in one pass. The time is proportional to the bytes; the search stops early
    /// when its caller is gone.
    ///
    /// # Errors
    /// The pattern is invalid, its automaton or a line is too large, or the file cannot be read.
    pub fn grep(&self, grep: &Grep, stop: &StopFlag) -> Result<GrepMatches, LookError> {
        let matcher = linear_matcher(&grep.pattern)?;
        let mut searcher: Searcher = SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .before_context(grep.context)
            .after_context(grep.context)
            .heap_limit(Some(LONGEST_LINE))
            .build();
        let mut found =
            FoundLines { shown: GrepMatches::default(), most_bytes: grep.most_bytes, breaks: false, stop };
        let file = Reading { file: &self.file, place: 0, stop };
        let searched = searcher.search_reader(&matcher, file, &mut found).map_err(|error| {
            LookError::Io(format!("{error}; a line may have {LONGEST_LINE} bytes to be searched: use slice"))
        });
        self.unless_lost(searched)?;
        Ok(found.shown)
    }
}

/// A matcher that takes time proportional to the text, for every pattern. Case is ignored, and no match spans
/// lines.
///
/// # Errors
/// The pattern is invalid, or its automaton too large.
pub fn linear_matcher(pattern: &str) -> Result<RegexMatcher, LookError> {
    let pattern = ascii_boundaries(pattern);
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(true)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .size_limit(AUTOMATON)
        .dfa_size_limit(2 * AUTOMATON)
        .build(&pattern)
        .map_err(|error| LookError::Pattern(error.to_string()))?;
    let automaton = regex_automata::dfa::regex::Builder::new()
        .syntax(syntax::Config::new().case_insensitive(true).multi_line(true).utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(PROGRAM)))
        .dense(dense::Config::new().dfa_size_limit(Some(AUTOMATON)).determinize_size_limit(Some(AUTOMATON)))
        .build(&pattern);
    match automaton {
        Ok(_) => Ok(matcher),
        Err(_) => Err(LookError::Pattern(
            "searching for it takes too much memory: write shorter repetitions such as {1,9}, or fewer alternatives".to_owned(),
        )),
    }
}

/// The pattern with ASCII word boundaries: automata do not support those of Unicode.
fn ascii_boundaries(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        match escaped {
            Some('b') => text.push_str(r"(?-u:\b)"),
            Some('B') => text.push_str(r"(?-u:\B)"),
            Some(escaped) => text.extend([letter, escaped]),
            None => text.push(letter),
        }
    }
    text
}

/// Reads a file from an offset, with a position of its own.
struct Reading<'f> {
    file: &'f File,
    place: u64,
    stop: &'f StopFlag,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        let read = self.file.read_at(buffer, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

struct FoundLines<'s> {
    shown: GrepMatches,
    most_bytes: usize,
    breaks: bool,
    stop: &'s StopFlag,
}

impl FoundLines<'_> {
    fn show(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        let shown = &mut self.shown;
        if shown.truncated {
            return;
        }
        let before = shown.text.len();
        if std::mem::take(&mut self.breaks) && before > 0 {
            shown.text.push_str("--\n");
        }
        let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line));
        shown.text.push_str(&format!("{}{mark}{line}\n", number.unwrap_or_default()));
        if shown.text.len() > self.most_bytes {
            // If the first line is too long, its beginning is shown.
            let keep = if before == 0 { self.most_bytes } else { before };
            shown.text.truncate(shown.text.floor_char_boundary(keep));
            shown.truncated = true;
        }
    }
}

impl Sink for &mut FoundLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(0)..) {
            self.shown.matches += 1;
            self.show(Some(number), ':', line);
        }
        Ok(!self.stop.is_raised())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.show(line.line_number(), '-', line.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.breaks = true;
        Ok(true)
    }
}
