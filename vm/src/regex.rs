//! Regular expressions: compiled once per isolate and pattern.
//!
//! Patterns run on an engine that is linear in the text. Only those that look around or refer back run
//! on a backtracking one, with bounds on its steps and its input (decision 10).

mod translate;

use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::heap;
use crate::value::Value;
use smallvec::{SmallVec, smallvec};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Longest pattern in bytes (language.md 4.7).
pub const LONGEST_PATTERN: usize = 256;

/// Longest input of a pattern that backtracks, in bytes.
pub const LONGEST_BACKTRACKED: usize = 32_768;

/// Steps back of one search with a pattern that backtracks.
const MOST_STEPS: usize = 100_000;

/// Compiled patterns kept per isolate.
const CACHED: usize = 32;

/// Deepest nesting of groups: the engines recurse over it when they compile.
const MOST_NESTED: u32 = 32;

/// Deepest nesting of groups in a pattern that backtracks.
const MOST_NESTED_BACKTRACKED: u32 = 12;

/// Logical bytes of a compiled pattern beside its program.
const REGEX_BYTES: usize = 256;

/// Sizes of a program, tried in turn: engines do not tell how large a program became, so it counts as
/// the smallest of these that it fits.
const PROGRAM_BYTES: [usize; 3] = [32 << 10, 256 << 10, 2 << 20];

/// What a pattern that backtracks counts for, its parts each being limited to the middle size.
const BACKTRACKING_BYTES: usize = 512 << 10;

/// A pattern ready to search with.
enum Matcher {
    /// The pattern is the text itself.
    Literal(Box<memchr::memmem::Finder<'static>>),
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// The positions of a match and of its groups; group 0 is the whole match.
pub(crate) type Spans = SmallVec<[Option<(usize, usize)>; 4]>;

/// A compiled pattern.
pub struct RegexNode {
    pattern: Box<str>,
    matcher: Matcher,
    /// The same pattern tied to both ends of the text, made when first asked for.
    whole: OnceCell<Matcher>,
    /// Logical bytes of the programs.
    bytes: Cell<usize>,
}

impl RegexNode {
    fn new(pattern: &str) -> Result<Rc<RegexNode>, String> {
        let (matcher, bytes) = compile(pattern)?;
        let bytes = REGEX_BYTES + pattern.len() + bytes;
        heap::charge(bytes);
        Ok(Rc::new(RegexNode {
            pattern: pattern.into(),
            matcher,
            whole: OnceCell::new(),
            bytes: Cell::new(bytes),
        }))
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Number of groups that the pattern captures.
    pub(crate) fn groups(&self) -> usize {
        let all = match &self.matcher {
            Matcher::Literal(_) => 1,
            Matcher::Linear(regex) => regex.captures_len(),
            Matcher::Backtracking(regex) => regex.captures_len(),
        };
        all.saturating_sub(1)
    }

    /// The number of a named group.
    pub(crate) fn group_number(&self, name: &str) -> Option<usize> {
        match &self.matcher {
            Matcher::Literal(_) => None,
            Matcher::Linear(regex) => regex.capture_names().position(|group| group == Some(name)),
            Matcher::Backtracking(regex) => regex.capture_names().position(|group| group == Some(name)),
        }
    }

    /// The first match that begins at byte `at` or later.
    ///
    /// # Errors
    /// Fuel for each byte searched, deadline, cancellation; a pattern that takes too many steps.
    pub(crate) fn find(&self, cx: &mut Context, text: &str, at: usize) -> Result<Option<Spans>> {
        search(cx, &self.matcher, text, at)
    }

    /// A match as a value: its text, or a vector of its text and those of all groups.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn match_value(&self, cx: &mut Context, text: &str, spans: &Spans) -> Result<Value> {
        let mut part = |span: Option<(usize, usize)>| match span {
            Some((start, end)) => {
                cx.tick((end - start) as u64)?;
                cx.reserve(end - start)?;
                Ok(Value::string(&text[start..end]))
            }
            None => Ok(Value::Nil),
        };
        if self.groups() == 0 {
            return part(spans.first().copied().flatten());
        }
        let groups: Result<Vec<Value>> = spans.iter().map(|&span| part(span)).collect();
        groups.map(Value::vector)
    }

    /// The match of the whole text.
    ///
    /// # Errors
    /// As [`RegexNode::find`].
    pub(crate) fn match_whole(&self, cx: &mut Context, text: &str) -> Result<Option<Spans>> {
        let whole = match self.whole.get() {
            Some(whole) => whole,
            None => {
                let (matcher, bytes) =
                    compile(&format!("\\A(?:{})\\z", self.pattern)).map_err(Fault::runtime)?;
                heap::charge(bytes);
                self.bytes.set(self.bytes.get() + bytes);
                self.whole.get_or_init(|| matcher)
            }
        };
        search(cx, whole, text, 0)
    }
}

impl Drop for RegexNode {
    fn drop(&mut self) {
        heap::release(self.bytes.get());
    }
}

/// Where the search goes on after a match: an empty one is passed by a character.
pub(crate) fn after(text: &str, start: usize, end: usize) -> usize {
    if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) }
}

fn search(cx: &mut Context, matcher: &Matcher, text: &str, at: usize) -> Result<Option<Spans>> {
    // One search may look at much more text than its match covers.
    cx.fuel.poll()?;
    let found: Option<Spans> = match matcher {
        Matcher::Literal(finder) => text.as_bytes().get(at..).and_then(|rest| {
            let start = at + finder.find(rest)?;
            Some(smallvec![Some((start, start + finder.needle().len()))])
        }),
        Matcher::Linear(regex) if regex.captures_len() == 1 => {
            regex.find_at(text, at).map(|found| std::iter::once(Some((found.start(), found.end()))).collect())
        }
        Matcher::Linear(regex) => regex.captures_at(text, at).map(|groups| {
            groups.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
        }),
        Matcher::Backtracking(regex) => {
            if text.len() > LONGEST_BACKTRACKED {
                return Err(Fault::type_error(format_args!(
                    "text of {} bytes is too long for a regex with look-around, back-references or possessive \
                     quantifiers: the limit is {LONGEST_BACKTRACKED} bytes",
                    text.len()
                ))
                .hint("Split the text first, or write the pattern without look-around and back-references."));
            }
            regex
                .captures_from_pos(text, at)
                .map_err(|_| Fault::type_error("Regex complexity limit exceeded (ReDoS protection)"))?
                .map(|groups| {
                    groups.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
                })
        }
    };
    let reached = match &found {
        Some(spans) => spans.first().copied().flatten().map_or(at, |(_, end)| end),
        None => text.len(),
    };
    cx.tick(reached.saturating_sub(at) as u64 + 1)?;
    Ok(found)
}

/// The compiled patterns of an isolate, the latest used last.
#[derive(Default)]
pub struct RegexCache {
    rows: Vec<Rc<RegexNode>>,
}

impl RegexCache {
    /// The compiled form of a pattern.
    ///
    /// # Errors
    /// A pattern that is too long or does not compile.
    pub fn compile(&mut self, pattern: &str) -> Result<Rc<RegexNode>> {
        if let Some(row) = self.rows.iter().rposition(|row| &*row.pattern == pattern) {
            self.rows[row..].rotate_left(1);
            return Ok(self.rows[self.rows.len() - 1].clone());
        }
        check_length(pattern).map_err(Fault::runtime)?;
        let node = RegexNode::new(pattern).map_err(Fault::runtime)?;
        if self.rows.len() >= CACHED {
            self.rows.remove(0);
        }
        self.rows.push(node.clone());
        Ok(node)
    }
}

fn check_length(pattern: &str) -> Result<(), String> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(format!("Regex pattern exceeds maximum length of {LONGEST_PATTERN} bytes"));
    }
    Ok(())
}

/// Checks a pattern; the error is one line without the pattern's own rendering. The compiler calls this
/// for regex literals.
///
/// # Errors
/// What is wrong with the pattern.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    check_length(pattern)?;
    compile(pattern).map(|_| ())
}

/// The pattern as the matching engine gets it, and whether that is the backtracking one: for tests.
#[doc(hidden)]
pub fn translated(pattern: &str) -> (String, bool) {
    let translated = translate::translate(pattern);
    (translated.pattern, translated.backtracking)
}

/// A matcher and the logical bytes of its program.
fn compile(pattern: &str) -> Result<(Matcher, usize), String> {
    let translated = translate::translate(pattern);
    // The pattern of a whole match is nested once more.
    let most_nested = 1 + if translated.backtracking { MOST_NESTED_BACKTRACKED } else { MOST_NESTED };
    if nesting(pattern) > most_nested {
        return Err(format!("Invalid regex: groups nest deeper than {} levels", most_nested - 1));
    }
    if translated.backtracking {
        return fancy_regex::RegexBuilder::new(&translated.pattern)
            .backtrack_limit(MOST_STEPS)
            .delegate_size_limit(PROGRAM_BYTES[1])
            .delegate_dfa_size_limit(PROGRAM_BYTES[1])
            .build()
            .map(|regex| (Matcher::Backtracking(Box::new(regex)), BACKTRACKING_BYTES))
            .map_err(|error| format!("Invalid regex: {}", one_line(&error.to_string())));
    }
    if let Some(literal) = literal(&translated.pattern) {
        let finder = memchr::memmem::Finder::new(&literal).into_owned();
        return Ok((Matcher::Literal(Box::new(finder)), PROGRAM_BYTES[0]));
    }
    for bytes in PROGRAM_BYTES {
        let built = regex::RegexBuilder::new(&translated.pattern)
            .size_limit(bytes)
            .dfa_size_limit(PROGRAM_BYTES[1])
            .nest_limit(MOST_NESTED * 4)
            .build();
        match built {
            Ok(regex) => return Ok((Matcher::Linear(regex), bytes)),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => return Err(format!("Invalid regex: {}", one_line(&error.to_string()))),
        }
    }
    Err("Invalid regex: the pattern repeats too much".to_owned())
}

/// The text that a pattern without groups, classes and repetitions stands for.
fn literal(pattern: &str) -> Option<Box<[u8]>> {
    // The parser recurses over groups, which no literal has.
    if pattern.contains(['(', '[']) {
        return None;
    }
    match regex_syntax::parse(pattern).ok()?.into_kind() {
        regex_syntax::hir::HirKind::Literal(literal) => Some(literal.0),
        _ => None,
    }
}

/// An upper bound on how deep groups and classes nest.
fn nesting(pattern: &str) -> u32 {
    let (mut depth, mut deepest) = (0u32, 0);
    for byte in pattern.bytes() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn one_line(message: &str) -> &str {
    let last = message.lines().last().unwrap_or("bad pattern").trim();
    last.strip_prefix("error: ").unwrap_or(last)
}

#[cfg(test)]
mod tests;
