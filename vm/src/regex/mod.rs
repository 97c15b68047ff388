//! Regular expressions with metered searches, which pay for their work as they go.
//!
//! ```text
//! text --translate--> parser's dialect --syntax--> tree with sets --program--> instructions
//! ```
//!
//! A [`Pattern`] is compiled once and shared; a [`RegexNode`] is a pattern in one isolate, with the state of its
//! searches.
//! One program serves four searches:
//!
//! | search | for |
//! |---|---|
//! | literal | patterns that are the text itself |
//! | `backtrack` | short texts, groups of short matches, and all patterns that look around or refer back |
//! | `dfa` | the position of a match in a long text |
//! | `pike` | the groups of a long match |
//!
//! The choice depends on the pattern, the text, and how much the run has searched with the pattern, and so does fuel.
//! Architecture invariant: no search makes more than a few thousand steps without paying. Only fuel and the memory
//! limit bound a search, and the limit of steps for patterns that backtrack.

mod alphabet;
mod backtrack;
mod class;
mod dfa;
mod first_bytes;
mod look;
mod pattern;
mod pike;
mod program;
mod syntax;
mod translate;

use crate::fault::{Fault, Result};
use crate::memory::{Meter, Run, account};
use alphabet::Alphabet;
use backtrack::{NOWHERE, Scratch, Search};
use class::Set;
use dfa::{Dfa, View};
use program::{Direction, Program};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use smallvec::{SmallVec, smallvec};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

pub use pattern::Pattern;
pub use syntax::PatternError;

/// Longest pattern in bytes.
pub const LONGEST_PATTERN: usize = 256;

/// Longest input for a pattern that backtracks, in bytes.
pub const LONGEST_BACKTRACKED: usize = 32_768;

/// Number of compiled patterns cached per isolate.
const CACHED: usize = 32;

/// Logical bytes of a pattern in an isolate.
const REGEX_BYTES: usize = 128;

/// Limits, in instructions times bytes, for backtracking with a program without look-around and back-references.
#[derive(Clone, Copy)]
pub(crate) struct BacktrackLimits {
    /// Below this limit it is faster than making an automaton.
    pub(crate) text: usize,
    /// The same for an automaton that other searches use as well.
    pub(crate) often: usize,
    /// The same for the groups of a match with known position.
    pub(crate) groups: usize,
}

const TRIED: BacktrackLimits = BacktrackLimits { text: 32 << 10, often: 256, groups: 256 << 10 };

/// Instructions times bytes that one run may spend on backtracking with one pattern before it makes an automaton.
const MOST_BACKTRACKING: usize = 256 << 10;

/// Bytes of a search for a literal between two payments.
const LITERAL_STEP: usize = 16 << 10;

/// The positions of a match and of its groups; group 0 is the whole match.
pub(crate) type Spans = SmallVec<[Option<(usize, usize)>; 4]>;

/// Memory of a search on the account of the isolate.
#[derive(Default)]
struct Charge(usize);

impl Charge {
    /// Charges up to `bytes` in all.
    ///
    /// # Errors
    /// `memory_exceeded`.
    fn grow(&mut self, meter: &mut Meter, bytes: usize) -> Result<()> {
        if bytes > self.0 {
            meter.reserve(bytes - self.0)?;
            account::charge(bytes - self.0);
            self.0 = bytes;
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        account::release(self.0);
    }
}

/// The automata of a pattern.
struct Automata {
    alphabet: Alphabet,
    forward: Dfa,
    /// The pattern from its end to its beginning.
    reversed: Program,
    backward: Dfa,
    _charge: Charge,
}

impl Automata {
    fn new(meter: &mut Meter, pattern: &Pattern) -> Result<Box<Automata>> {
        let reversed =
            Program::new(pattern.root(), 0, false, Direction::Backward, &mut |units| meter.tick(units));
        let reversed = reversed.map_err(fault)?;
        let words = word_sets(meter, pattern.program())?;
        let alphabet = Alphabet::new(meter, pattern.program(), pattern.sets(), &words)?;
        let mut charge = Charge::default();
        charge.grow(meter, size_of::<Automata>() + alphabet.bytes() + reversed.bytes())?;
        Ok(Box::new(Automata {
            forward: Dfa::new(Direction::Forward, &alphabet, pattern.first().are_few()),
            backward: Dfa::new(Direction::Backward, &alphabet, false),
            alphabet,
            reversed,
            _charge: charge,
        }))
    }

    /// The position of the first match that begins at `at` or later.
    fn find(
        &mut self,
        meter: &mut Meter,
        pattern: &Pattern,
        text: &str,
        at: usize,
    ) -> Result<Option<(usize, usize)>> {
        let (sets, alphabet) = (pattern.sets(), &self.alphabet);
        let view = View { program: pattern.program(), sets, alphabet };
        let Some(end) = self.forward.forward(meter, view, pattern.first(), text, at)? else {
            return Ok(None);
        };
        let view = View { program: &self.reversed, sets, alphabet };
        let start = self.backward.backward(meter, view, text, at, end)?;
        Ok(start.map(|start| (start, end)))
    }

    /// True when the whole text is a match.
    fn is_match(&mut self, meter: &mut Meter, pattern: &Pattern, text: &str) -> Result<bool> {
        let view = View { program: &self.reversed, sets: pattern.sets(), alphabet: &self.alphabet };
        Ok(self.backward.backward(meter, view, text, 0, text.len())? == Some(0))
    }
}

/// The sets of word characters, if a program has word assertions.
fn word_sets(meter: &mut Meter, program: &Program) -> Result<Vec<Set>> {
    let asks = program
        .code
        .iter()
        .any(|instruction| matches!(instruction, program::Instruction::Look(look::Look::Word(..))));
    if !asks {
        return Ok(Vec::new());
    }
    meter.tick(1_024)?;
    let hir = regex_syntax::parse(r"\w").map_err(|error| Fault::runtime(error.to_string()))?;
    let all = match hir.kind() {
        regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => class.clone(),
        _ => ClassUnicode::empty(),
    };
    let ascii = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    let ascii = ClassUnicode::new(ascii.map(|(start, end)| ClassUnicodeRange::new(start, end)));
    Ok(vec![Set::new(&all), Set::new(&ascii)])
}

/// The automata of a pattern: made by the first search of a long text, moved out during a search, and dropped at the
/// end of the run.
type CachedAutomata = RefCell<Option<Box<Automata>>>;

/// A pattern in an isolate.
pub struct RegexNode {
    pattern: Arc<Pattern>,
    automata: Rc<CachedAutomata>,
    /// The work of backtracking, and its run: it must not depend on earlier runs of the isolate.
    tried: Cell<(Run, usize)>,
    bytes: usize,
}

impl RegexNode {
    /// A node for a compiled pattern, paid for as if it was compiled here: the cost must not depend on where it was
    /// compiled.
    ///
    /// # Errors
    /// Fuel and memory.
    pub(crate) fn new(meter: &mut Meter, pattern: Arc<Pattern>) -> Result<Rc<RegexNode>> {
        meter.tick(pattern.units())?;
        RegexNode::paid(meter, pattern)
    }

    fn paid(meter: &mut Meter, pattern: Arc<Pattern>) -> Result<Rc<RegexNode>> {
        let bytes = REGEX_BYTES + pattern.bytes();
        meter.reserve(bytes)?;
        account::charge(bytes);
        Ok(Rc::new(RegexNode { pattern, automata: Rc::default(), tried: Cell::default(), bytes }))
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        self.pattern.text()
    }

    /// The pattern, compiled.
    pub(crate) fn compiled(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Number of groups that the pattern captures.
    pub(crate) fn groups(&self) -> usize {
        self.pattern.groups()
    }

    /// The number of a named group.
    pub(crate) fn group_number(&self, name: &str) -> Option<usize> {
        self.pattern.group_number(name)
    }

    /// The first match that begins at byte `at` or later.
    ///
    /// # Errors
    /// Fuel for each step, memory, deadline, cancellation; a pattern that takes too many steps.
    pub(crate) fn find(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        at: usize,
    ) -> Result<Option<Spans>> {
        self.find_within(meter, cache, text, at, TRIED)
    }

    pub(crate) fn find_within(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        at: usize,
        tried: BacktrackLimits,
    ) -> Result<Option<Spans>> {
        let pattern = &*self.pattern;
        if pattern.is_backtracking() {
            check_backtracked(text)?;
            return self.try_all(meter, cache, text, BacktrackSearch { at, anchored: false, whole: false });
        }
        if let Some(finder) = pattern.literal() {
            return literal(meter, finder, text, at);
        }
        if self.may_backtrack(meter, text.len() - at, tried) {
            return self.try_all(meter, cache, text, BacktrackSearch { at, anchored: false, whole: false });
        }
        let find = |meter: &mut Meter, automata: &mut Automata| automata.find(meter, pattern, text, at);
        match self.with_automata(meter, cache, find)? {
            None => Ok(None),
            Some(span) => self.with_groups(meter, cache, text, span, false, tried).map(Some),
        }
    }

    /// The match of the whole text.
    ///
    /// # Errors
    /// As [`RegexNode::find`].
    pub(crate) fn match_whole(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
    ) -> Result<Option<Spans>> {
        self.match_whole_within(meter, cache, text, TRIED)
    }

    pub(crate) fn match_whole_within(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        tried: BacktrackLimits,
    ) -> Result<Option<Spans>> {
        let pattern = &*self.pattern;
        if pattern.is_backtracking() {
            check_backtracked(text)?;
        }
        if pattern.is_backtracking() || self.may_backtrack(meter, text.len(), tried) {
            return self.try_all(meter, cache, text, BacktrackSearch { at: 0, anchored: true, whole: true });
        }
        let is_match = |meter: &mut Meter, automata: &mut Automata| automata.is_match(meter, pattern, text);
        if !self.with_automata(meter, cache, is_match)? {
            return Ok(None);
        }
        self.with_groups(meter, cache, text, (0, text.len()), true, tried).map(Some)
    }

    /// Whether a text of this length is searched by backtracking.
    fn may_backtrack(&self, meter: &Meter, bytes: usize, limits: BacktrackLimits) -> bool {
        let work = bytes.saturating_mul(self.pattern.program().code.len());
        let (run, before) = self.tried.get();
        let before = if run == meter.run { before } else { 0 };
        let limit = if before > MOST_BACKTRACKING { limits.often } else { limits.text };
        if work > limit {
            return false;
        }
        self.tried.set((meter.run, before + work.min(MOST_BACKTRACKING)));
        true
    }

    fn with_automata<T>(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        search: impl FnOnce(&mut Meter, &mut Automata) -> Result<T>,
    ) -> Result<T> {
        let kept = self.automata.borrow_mut().take();
        let mut automata = match kept {
            Some(automata) => automata,
            None => {
                cache.note(&self.automata);
                Automata::new(meter, &self.pattern)?
            }
        };
        let found = search(meter, &mut automata);
        *self.automata.borrow_mut() = Some(automata);
        found
    }

    fn try_all(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        what: BacktrackSearch,
    ) -> Result<Option<Spans>> {
        let search = Search {
            program: self.pattern.program(),
            sets: self.pattern.sets(),
            text,
            at: what.at,
            anchored: what.anchored,
            whole: what.whole,
            bounded: !self.pattern.is_backtracking(),
            first: self.pattern.first(),
        };
        let mut scratch = std::mem::take(&mut cache.scratch);
        let found = search.run(meter, &mut scratch);
        if scratch.is_small() {
            cache.scratch = scratch;
        }
        Ok(found?.map(|slots| self.spans(&slots)))
    }

    /// The groups of the match at a known position.
    fn with_groups(
        &self,
        meter: &mut Meter,
        cache: &mut RegexCache,
        text: &str,
        (start, end): (usize, usize),
        whole: bool,
        tried: BacktrackLimits,
    ) -> Result<Spans> {
        let nothing_else: Spans = smallvec![Some((start, end))];
        if self.groups() == 0 {
            return Ok(nothing_else);
        }
        let program = self.pattern.program();
        if program.code.len().saturating_mul(end - start) <= tried.groups {
            let found =
                self.try_all(meter, cache, text, BacktrackSearch { at: start, anchored: true, whole })?;
            return Ok(found.unwrap_or(nothing_else));
        }
        let groups = pike::Groups { program, sets: self.pattern.sets(), text };
        Ok(groups.find(meter, start, whole)?.map_or(nothing_else, |slots| self.spans(&slots)))
    }

    fn spans(&self, slots: &[usize]) -> Spans {
        let groups = slots.chunks_exact(2).take(self.groups() + 1);
        groups
            .map(|places| (places[0] != NOWHERE && places[1] != NOWHERE).then(|| (places[0], places[1])))
            .collect()
    }
}

impl Drop for RegexNode {
    fn drop(&mut self) {
        account::release(self.bytes);
    }
}

/// Parameters of a backtracking search.
#[derive(Clone, Copy)]
struct BacktrackSearch {
    at: usize,
    anchored: bool,
    whole: bool,
}

fn check_backtracked(text: &str) -> Result<()> {
    if text.len() <= LONGEST_BACKTRACKED {
        return Ok(());
    }
    Err(Fault::type_error(format_args!(
        "text of {} bytes is too long for a regex with look-around, back-references or possessive \
         quantifiers: the limit is {LONGEST_BACKTRACKED} bytes",
        text.len()
    ))
    .hint("Split the text first, or write the pattern without look-around and back-references."))
}

fn literal(
    meter: &mut Meter,
    finder: &memchr::memmem::Finder<'_>,
    text: &str,
    at: usize,
) -> Result<Option<Spans>> {
    let bytes = text.as_bytes();
    let length = finder.needle().len();
    let mut at = at;
    loop {
        let end = bytes.len().min(at + LITERAL_STEP + length);
        let found = finder.find(&bytes[at..end]);
        meter.tick(found.unwrap_or(end - at) as u64 + 1)?;
        match found {
            Some(found) => return Ok(Some(smallvec![Some((at + found, at + found + length))])),
            None if end == bytes.len() => return Ok(None),
            // A match may begin in the last bytes.
            None => at = end - length + 1,
        }
    }
}

/// Where the search continues after a match; an empty match is skipped by one character.
pub(crate) fn after(text: &str, start: usize, end: usize) -> usize {
    if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) }
}

fn fault(wrong: PatternError<Box<Fault>>) -> Box<Fault> {
    match wrong {
        PatternError::Pattern(message) => Fault::runtime(message),
        PatternError::Stopped(fault) => fault,
    }
}

/// The compiled patterns of an isolate, the most recently used last.
#[derive(Default)]
pub struct RegexCache {
    rows: Vec<Rc<RegexNode>>,
    scratch: Scratch,
    /// The automata of this run; their patterns may be gone.
    automata: Vec<Weak<CachedAutomata>>,
}

impl RegexCache {
    fn note(&mut self, automata: &Rc<CachedAutomata>) {
        if self.automata.len() == self.automata.capacity() {
            self.automata.retain(|automata| automata.strong_count() > 0);
        }
        self.automata.push(Rc::downgrade(automata));
    }

    /// Drops the run's search state, so that neither fuel nor memory of the next run depends on it.
    pub(crate) fn end_run(&mut self) {
        self.rows.clear();
        while let Some(automata) = self.automata.pop() {
            if let Some(automata) = automata.upgrade() {
                automata.take();
            }
        }
    }
}

/// The regex of a pattern made at run time. The cost is the same whether the isolate has it cached or not.
///
/// # Errors
/// A pattern that is too long or does not compile; fuel, memory, deadline, cancellation.
pub(crate) fn compile(meter: &mut Meter, cache: &mut RegexCache, pattern: &str) -> Result<Rc<RegexNode>> {
    let rows = &mut cache.rows;
    if let Some(row) = rows.iter().rposition(|row| row.pattern() == pattern) {
        rows[row..].rotate_left(1);
        let node = rows[rows.len() - 1].clone();
        meter.tick(node.pattern.units())?;
        return Ok(node);
    }
    let compiled = Pattern::new(pattern, &mut |units| meter.tick(units)).map_err(fault)?;
    let node = RegexNode::paid(meter, Arc::new(compiled))?;
    let rows = &mut cache.rows;
    if rows.len() >= CACHED {
        rows.remove(0);
    }
    rows.push(node.clone());
    Ok(node)
}

/// Checks a pattern, without metering; the error is one line without the pattern's own rendering.
///
/// # Errors
/// What is wrong with the pattern.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    match Pattern::new(pattern, &mut |_| Ok::<(), std::convert::Infallible>(())) {
        Ok(_) => Ok(()),
        Err(PatternError::Pattern(message)) => Err(message),
        Err(PatternError::Stopped(never)) => match never {},
    }
}

/// For tests: the pattern as the parser gets it, and whether it needs the backtracking search.
#[doc(hidden)]
pub fn translated(pattern: &str) -> (String, bool) {
    let translated = translate::translate(pattern);
    let backtracking = translated.kinds.iter().any(|kind| *kind != translate::Kind::Capture);
    (translated.pattern, backtracking)
}
