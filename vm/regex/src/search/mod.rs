//! Searches texts with a compiled pattern: chooses one of four kinds of search, and caches the automata that they make.
//!
//! One program serves four searches:
//!
//! | search | for |
//! |---|---|
//! | `literal` | patterns that are the text itself |
//! | `backtrack` | short texts, groups of short matches, and all patterns that look around or refer back |
//! | `automata` | the position of a match in a long text: two of `dfa`, over an `alphabet` |
//! | `pike` | the groups of a long match |
//!
//! The choice depends on the pattern, the text, and how much was searched with the pattern, and so does the work.
//! Architecture invariant: no search makes more than a few thousand steps without paying. Only the meter bounds a
//! search, and the limits of steps and text for patterns that backtrack.

mod alphabet;
mod automata;
mod backtrack;
mod dfa;
mod pike;

use crate::error::{LONGEST_BACKTRACKED, SearchError};
use crate::meter::Meter;
use crate::pattern::Pattern;
use automata::Automata;
use backtrack::{NOWHERE, Scratch, Search};
use memchr::memmem::Finder;
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

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

const LIMITS: BacktrackLimits = BacktrackLimits { text: 32 << 10, often: 256, groups: 256 << 10 };

/// Instructions times bytes that may be spent on backtracking with one pattern before it gets an automaton.
const MOST_BACKTRACKING: usize = 256 << 10;

/// Bytes of a search for a literal between two payments.
const LITERAL_STEP: usize = 16 << 10;

/// The positions of a match and of its groups; group 0 is the whole match.
pub type Spans = SmallVec<[Option<(usize, usize)>; 4]>;

/// The automata of a pattern, if they were made; moved out during a search.
type CachedAutomata<M> = Cell<Option<Box<Automata<M>>>>;

/// What searches share, also those with different patterns: scratch memory, and a list of the automata that they made.
pub struct Searches<M: Meter> {
    scratch: Scratch,
    /// Their patterns may be gone.
    automata: Vec<Weak<CachedAutomata<M>>>,
    /// Number of ends.
    generation: u32,
}

impl<M: Meter> Default for Searches<M> {
    fn default() -> Searches<M> {
        Searches { scratch: Scratch::default(), automata: Vec::new(), generation: 0 }
    }
}

impl<M: Meter> Searches<M> {
    /// Forgets the searches so far and releases their memory: later searches cost as much as the first ones.
    pub fn end(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        while let Some(automata) = self.automata.pop() {
            if let Some(automata) = automata.upgrade() {
                automata.take();
            }
        }
    }

    fn note(&mut self, automata: &Rc<CachedAutomata<M>>) {
        if self.automata.len() == self.automata.capacity() {
            self.automata.retain(|automata| automata.strong_count() > 0);
        }
        self.automata.push(Rc::downgrade(automata));
    }
}

/// A pattern with its automata. They are made for a long text, or after many searches, which must all be given the same
/// [`Searches`].
pub struct Regex<M: Meter> {
    pattern: Arc<Pattern>,
    automata: Rc<CachedAutomata<M>>,
    /// The work of backtracking, and its generation of searches.
    backtracked: Cell<(u32, usize)>,
}

impl<M: Meter> Regex<M> {
    /// A pattern that was not searched for yet.
    pub fn new(pattern: Arc<Pattern>) -> Regex<M> {
        Regex { pattern, automata: Rc::default(), backtracked: Cell::default() }
    }

    /// The pattern.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The first match that begins at byte `at` or later; none if no character begins there.
    ///
    /// # Errors
    /// Refused by the meter; a text that is too long, or too many steps, for a pattern that backtracks.
    pub fn find(
        &self,
        meter: &mut M,
        searches: &mut Searches<M>,
        text: &str,
        at: usize,
    ) -> Result<Option<Spans>, M::Error> {
        Finding { regex: self, searches, text, limits: &LIMITS }.first(meter, at)
    }

    /// The match of the whole text.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub fn match_whole(
        &self,
        meter: &mut M,
        searches: &mut Searches<M>,
        text: &str,
    ) -> Result<Option<Spans>, M::Error> {
        Finding { regex: self, searches, text, limits: &LIMITS }.whole(meter)
    }
}

/// A search with its inputs.
pub(crate) struct Finding<'s, M: Meter> {
    pub(crate) regex: &'s Regex<M>,
    pub(crate) searches: &'s mut Searches<M>,
    pub(crate) text: &'s str,
    pub(crate) limits: &'s BacktrackLimits,
}

/// Which matches a backtracking search is for.
#[derive(Clone, Copy)]
struct Wanted {
    at: usize,
    anchored: bool,
    whole: bool,
}

impl<M: Meter> Finding<'_, M> {
    /// The first match that begins at `at` or later.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub(crate) fn first(&mut self, meter: &mut M, at: usize) -> Result<Option<Spans>, M::Error> {
        let (pattern, text) = (&*self.regex.pattern, self.text);
        if !text.is_char_boundary(at) {
            return Ok(None);
        }
        let wanted = Wanted { at, anchored: false, whole: false };
        if pattern.is_backtracking() {
            check_backtracked(text)?;
            return self.try_all(meter, wanted);
        }
        if let Some(finder) = &pattern.literal {
            return literal(meter, finder, text, at);
        }
        if self.may_backtrack(text.len() - at) {
            return self.try_all(meter, wanted);
        }
        let find = |meter: &mut M, automata: &mut Automata<M>| automata.find(meter, pattern, text, at);
        match self.with_automata(meter, find)? {
            None => Ok(None),
            Some(span) => self.with_groups(meter, span, false).map(Some),
        }
    }

    /// The match of the whole text.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub(crate) fn whole(&mut self, meter: &mut M) -> Result<Option<Spans>, M::Error> {
        let (pattern, text) = (&*self.regex.pattern, self.text);
        if pattern.is_backtracking() {
            check_backtracked(text)?;
        }
        if pattern.is_backtracking() || self.may_backtrack(text.len()) {
            return self.try_all(meter, Wanted { at: 0, anchored: true, whole: true });
        }
        let is_match = |meter: &mut M, automata: &mut Automata<M>| automata.is_match(meter, pattern, text);
        if !self.with_automata(meter, is_match)? {
            return Ok(None);
        }
        self.with_groups(meter, (0, text.len()), true).map(Some)
    }

    /// Whether a text of this length is searched by backtracking.
    fn may_backtrack(&self, bytes: usize) -> bool {
        let work = bytes.saturating_mul(self.regex.pattern.program.code.len());
        let (generation, before) = self.regex.backtracked.get();
        let before = if generation == self.searches.generation { before } else { 0 };
        let limit = if before > MOST_BACKTRACKING { self.limits.often } else { self.limits.text };
        if work > limit {
            return false;
        }
        self.regex.backtracked.set((self.searches.generation, before + work.min(MOST_BACKTRACKING)));
        true
    }

    /// Searches with the automata, which are made now if no search has needed them before.
    fn with_automata<T>(
        &mut self,
        meter: &mut M,
        search: impl FnOnce(&mut M, &mut Automata<M>) -> Result<T, M::Error>,
    ) -> Result<T, M::Error> {
        let mut automata = match self.regex.automata.take() {
            Some(automata) => automata,
            None => {
                self.searches.note(&self.regex.automata);
                Automata::new(meter, &self.regex.pattern)?
            }
        };
        let found = search(meter, &mut automata);
        self.regex.automata.set(Some(automata));
        found
    }

    fn try_all(&mut self, meter: &mut M, wanted: Wanted) -> Result<Option<Spans>, M::Error> {
        let Wanted { at, anchored, whole } = wanted;
        let search = Search { pattern: &self.regex.pattern, text: self.text, at, anchored, whole };
        let scratch = &mut self.searches.scratch;
        let found = search.run(meter, scratch);
        if !scratch.is_small() {
            *scratch = Scratch::default();
        }
        Ok(found?.map(|slots| self.spans(&slots)))
    }

    /// The match at a known position.
    #[inline]
    fn with_groups(&mut self, meter: &mut M, span: (usize, usize), whole: bool) -> Result<Spans, M::Error> {
        if self.regex.pattern.groups() == 0 {
            return Ok(smallvec![Some(span)]);
        }
        self.groups(meter, span, whole)
    }

    #[inline(never)]
    fn groups(
        &mut self,
        meter: &mut M,
        (start, end): (usize, usize),
        whole: bool,
    ) -> Result<Spans, M::Error> {
        let nothing_else: Spans = smallvec![Some((start, end))];
        let program = &self.regex.pattern.program;
        if program.code.len().saturating_mul(end - start) <= self.limits.groups {
            let found = self.try_all(meter, Wanted { at: start, anchored: true, whole })?;
            return Ok(found.unwrap_or(nothing_else));
        }
        let groups = pike::Groups { program, sets: &self.regex.pattern.syntax.sets, text: self.text };
        Ok(groups.find(meter, start, whole)?.map_or(nothing_else, |slots| self.spans(&slots)))
    }

    fn spans(&self, slots: &[usize]) -> Spans {
        let groups = slots.chunks_exact(2).take(self.regex.pattern.groups() + 1);
        groups
            .map(|places| (places[0] != NOWHERE && places[1] != NOWHERE).then(|| (places[0], places[1])))
            .collect()
    }
}

fn check_backtracked(text: &str) -> Result<(), SearchError> {
    if text.len() <= LONGEST_BACKTRACKED { Ok(()) } else { Err(SearchError::TextTooLong(text.len())) }
}

fn literal<M: Meter>(
    meter: &mut M,
    finder: &Finder<'_>,
    text: &str,
    mut at: usize,
) -> Result<Option<Spans>, M::Error> {
    let bytes = text.as_bytes();
    let length = finder.needle().len();
    loop {
        let end = bytes.len().min(at + LITERAL_STEP + length);
        let found = finder.find(&bytes[at..end]);
        meter.pay(found.unwrap_or(end - at) as u64 + 1)?;
        match found {
            Some(found) => return Ok(Some(smallvec![Some((at + found, at + found + length))])),
            None if end == bytes.len() => return Ok(None),
            // A match may begin in the last bytes.
            None => at = end - length + 1,
        }
    }
}

/// Where the search continues after a match; an empty match is skipped by one character.
pub fn after(text: &str, start: usize, end: usize) -> usize {
    let next = || text.get(end..).and_then(|rest| rest.chars().next());
    if end > start { end } else { end + next().map_or(1, char::len_utf8) }
}
