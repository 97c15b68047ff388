//! Searches by backtracking: tries the paths through a compiled pattern one after the other, in the order of
//! preference.
//!
//! Programs without look-around and back-references are searched this way only in short texts: a table of visited
//! splits at each position bounds the work by the size of the program times the length of the text. Other programs
//! have no such bound, so each step is paid for, and a search has a limit of steps. The stack of untried paths is on
//! the heap and on the memory account.

use crate::error::SearchError;
use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::pattern::look::sides;
use crate::pattern::program::{Enclosed, Instruction, Program};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// A slot without a position.
pub(crate) const NOWHERE: usize = usize::MAX;

/// Steps of one search with a program that has no other bound.
const MOST_STEPS: u64 = 10_000_000;

/// Steps between two payments.
const PAID_AT_ONCE: u64 = 2_048;

/// Frames that are not charged: every search may have them.
const FREE_FRAMES: usize = 1_024;

/// An entry of the backtracking stack.
#[derive(Clone, Copy)]
enum Frame {
    /// A path not yet tried.
    Way { pc: u16, at: usize },
    /// The former value of a slot.
    Undo { slot: u16, old: usize },
    /// The body of an `Enter` has not matched yet; it was entered at `at`, for a look-behind `back` characters
    /// earlier.
    Enclosure { pc: u16, back: u32, at: usize },
}

/// Memory that consecutive searches reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    frames: Vec<Frame>,
    /// Positions of the enclosures on the stack.
    enclosures: Vec<usize>,
    /// A bit for each split at each position.
    visited: Vec<u64>,
}

impl Scratch {
    /// Small enough to be retained without a charge.
    pub(crate) fn is_small(&self) -> bool {
        self.frames.capacity() <= FREE_FRAMES && self.visited.capacity() <= 1_024
    }
}

/// The parameters of a search.
pub(crate) struct Search<'s> {
    pub(crate) pattern: &'s Pattern,
    pub(crate) text: &'s str,
    /// Where it begins.
    pub(crate) at: usize,
    /// The match must begin there.
    pub(crate) anchored: bool,
    /// The match must end at the end of the text.
    pub(crate) whole: bool,
}

struct Run<'s, M: Meter> {
    search: &'s Search<'s>,
    program: &'s Program,
    slots: Vec<usize>,
    scratch: &'s mut Scratch,
    charge: M::Memory,
    /// Number of frames that are charged.
    room: usize,
    /// Steps not yet paid.
    steps: u64,
    /// Steps paid.
    paid: u64,
}

impl Search<'_> {
    /// The first match, as the positions of its groups.
    ///
    /// # Errors
    /// Fuel for each step, memory for the stack, deadline, cancellation; too many steps.
    pub(crate) fn run<M: Meter>(
        &self,
        meter: &mut M,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<usize>>, M::Error> {
        scratch.frames.clear();
        scratch.enclosures.clear();
        scratch.visited.clear();
        let program = &self.pattern.program;
        let mut run = Run {
            search: self,
            program,
            slots: vec![NOWHERE; program.slots],
            scratch,
            charge: M::Memory::default(),
            room: FREE_FRAMES,
            // In addition to its steps: the slots must be initialised.
            steps: program.slots as u64 / 8,
            paid: 0,
        };
        let slots = meter.hold(&mut run.charge, program.slots.saturating_sub(64) * size_of::<usize>());
        let found = slots.and_then(|()| run.each_place(meter));
        let rest = run.steps + 1;
        let found = found?;
        meter.pay(rest)?;
        Ok(found.then_some(run.slots))
    }
}

impl<M: Meter> Run<'_, M> {
    fn each_place(&mut self, meter: &mut M) -> Result<bool, M::Error> {
        let search = self.search;
        let mut at = search.at;
        if search.anchored {
            return self.attempt(meter, at);
        }
        let bytes = search.text.as_bytes();
        loop {
            if search.pattern.first.is_needed() {
                let next = search.pattern.first.next(bytes, at, at + PAID_AT_ONCE as usize);
                self.steps += (next - at) as u64;
                at = next;
                if self.steps >= PAID_AT_ONCE {
                    self.settle(meter)?;
                }
                match bytes.get(at) {
                    None => return Ok(false),
                    // The search may have stopped inside a character.
                    Some(&byte) if !search.pattern.first.has(byte) => continue,
                    Some(_) => {}
                }
            }
            if self.attempt(meter, at)? {
                return Ok(true);
            }
            match character(search.text, at) {
                Some(passed) => at += passed.len_utf8(),
                None => return Ok(false),
            }
        }
    }

    #[cold]
    fn settle(&mut self, meter: &mut M) -> Result<(), M::Error> {
        let steps = std::mem::take(&mut self.steps);
        self.paid += steps;
        meter.pay(steps)?;
        if self.search.pattern.is_backtracking() && self.paid > MOST_STEPS {
            return Err(SearchError::TooManySteps.into());
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, meter: &mut M, frame: Frame) -> Result<(), M::Error> {
        if self.scratch.frames.len() == self.room {
            self.grow(meter)?;
        }
        self.scratch.frames.push(frame);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, meter: &mut M) -> Result<(), M::Error> {
        self.room *= 2;
        meter.hold(&mut self.charge, self.room * size_of::<Frame>())?;
        self.scratch.frames.reserve_exact(self.room - self.scratch.frames.len());
        Ok(())
    }

    /// True on the first visit of a split at a position.
    #[inline]
    fn first_visit(&mut self, number: u16, at: usize) -> bool {
        let bit = (at - self.search.at) * self.program.splits + usize::from(number);
        let word = bit / 64;
        if word >= self.scratch.visited.len() {
            self.scratch.visited.resize(word + 1, 0);
        }
        let known = self.scratch.visited[word] >> (bit % 64) & 1 == 1;
        self.scratch.visited[word] |= 1 << (bit % 64);
        !known
    }

    /// The match that begins at a position.
    fn attempt(&mut self, meter: &mut M, start: usize) -> Result<bool, M::Error> {
        let Search { pattern, text, whole, .. } = *self.search;
        let (program, sets) = (&pattern.program, &pattern.syntax.sets);
        // Each split is visited once at each position.
        let bounded = !pattern.is_backtracking();
        let bytes = text.as_bytes();
        let code = &*program.code;
        let mut pc = usize::from(program.start);
        let mut at = start;
        self.slots[0] = start;
        loop {
            self.steps += 1;
            if self.steps >= PAID_AT_ONCE {
                self.settle(meter)?;
            }
            // Where the next instruction goes on; `None` backtracks.
            let passed = match code[pc] {
                Instruction::Char(expected) if expected.is_ascii() => {
                    (bytes.get(at) == Some(&(expected as u8))).then_some(at + 1)
                }
                Instruction::Char(expected) => {
                    text[at..].starts_with(expected).then_some(at + expected.len_utf8())
                }
                Instruction::Set(set) => {
                    let next = character(text, at).filter(|&next| sets[usize::from(set)].has(next));
                    next.map(|next| at + next.len_utf8())
                }
                Instruction::Any => character(text, at).map(|next| at + next.len_utf8()),
                Instruction::Look(look) => {
                    let (before, after) = sides(text, at);
                    look.holds(before, after).then_some(at)
                }
                Instruction::Split { number, .. } if bounded && !self.first_visit(number, at) => None,
                Instruction::Split { first, second, .. } => {
                    self.push(meter, Frame::Way { pc: second, at })?;
                    pc = usize::from(first);
                    continue;
                }
                Instruction::Jump(target) => {
                    pc = usize::from(target);
                    continue;
                }
                Instruction::Save(slot) => {
                    self.save(meter, slot, at)?;
                    Some(at)
                }
                Instruction::Match if whole && at != text.len() => None,
                Instruction::Match => {
                    self.slots[1] = at;
                    // `\K` inside a look-ahead moves the beginning behind the end.
                    self.slots[0] = self.slots[0].min(at);
                    return Ok(true);
                }
                Instruction::Fail => None,
                Instruction::Again { slot, target } if self.slots[usize::from(slot)] != at => {
                    pc = usize::from(target);
                    continue;
                }
                Instruction::Again { .. } => Some(at),
                Instruction::Backreference { group, ignore_case } => {
                    self.after_reference(meter, group, ignore_case, at)?
                }
                Instruction::Enter { kind, .. } => {
                    let back = match kind {
                        Enclosed::Behind { lengths, .. } => program.behind[usize::from(lengths)].0,
                        _ => 0,
                    };
                    match self.enter(meter, pc, back, at)? {
                        Some((next, place)) => {
                            (pc, at) = (next, place);
                            continue;
                        }
                        None => None,
                    }
                }
                Instruction::Leave => self.leave(at),
                Instruction::Continue => (at == self.search.at).then_some(at),
                Instruction::UnlessGroup { group, target } => {
                    if self.slots[2 * usize::from(group)] == NOWHERE {
                        pc = usize::from(target);
                        continue;
                    }
                    Some(at)
                }
            };
            match passed {
                Some(next) => (pc, at) = (pc + 1, next),
                None => match self.back(meter)? {
                    Some((next, place)) => (pc, at) = (next, place),
                    None => return Ok(false),
                },
            }
        }
    }

    fn save(&mut self, meter: &mut M, slot: u16, at: usize) -> Result<(), M::Error> {
        let old = std::mem::replace(&mut self.slots[usize::from(slot)], at);
        self.push(meter, Frame::Undo { slot, old })
    }

    /// Backtracks to the latest untried path.
    fn back(&mut self, meter: &mut M) -> Result<Option<(usize, usize)>, M::Error> {
        while let Some(frame) = self.scratch.frames.pop() {
            self.steps += 1;
            match frame {
                Frame::Way { pc, at } => return Ok(Some((usize::from(pc), at))),
                Frame::Undo { slot, old } => self.slots[usize::from(slot)] = old,
                Frame::Enclosure { pc, back, at } => {
                    self.scratch.enclosures.pop();
                    let pc = usize::from(pc);
                    let Instruction::Enter { kind, exit } = self.program.code[pc] else { continue };
                    match kind {
                        Enclosed::Ahead { negative: true } | Enclosed::Test => {
                            return Ok(Some((usize::from(exit), at)));
                        }
                        Enclosed::Behind { .. } => {
                            let next = self.enter(meter, pc, back + 1, at)?;
                            if next.is_some() {
                                return Ok(next);
                            }
                        }
                        Enclosed::Ahead { negative: false } | Enclosed::Atomic => {}
                    }
                }
            }
        }
        Ok(None)
    }

    /// Begins the body of the `Enter` at `pc`, `back` characters before `at`. If there are not as many, or the
    /// look-behind reaches no further, its body fails.
    fn enter(
        &mut self,
        meter: &mut M,
        pc: usize,
        back: u32,
        at: usize,
    ) -> Result<Option<(usize, usize)>, M::Error> {
        let Instruction::Enter { kind, exit } = self.program.code[pc] else { return Ok(None) };
        let mut place = at;
        if let Enclosed::Behind { negative, lengths } = kind {
            let mut possible = back <= self.program.behind[usize::from(lengths)].1;
            for _ in 0..back {
                if place == 0 || !possible {
                    possible = false;
                    break;
                }
                place -= 1;
                while !self.search.text.is_char_boundary(place) {
                    place -= 1;
                }
            }
            self.steps += (at - place) as u64;
            if !possible {
                return Ok(negative.then_some((usize::from(exit), at)));
            }
        }
        self.scratch.enclosures.push(self.scratch.frames.len());
        self.push(meter, Frame::Enclosure { pc: pc as u16, back, at })?;
        Ok(Some((pc + 1, place)))
    }

    /// Ends the innermost body. Gives where the search continues, unless it backtracks.
    fn leave(&mut self, at: usize) -> Option<usize> {
        let index = *self.scratch.enclosures.last()?;
        let Frame::Enclosure { pc, at: entered, .. } = self.scratch.frames[index] else { return None };
        let Instruction::Enter { kind, .. } = self.program.code[usize::from(pc)] else { return None };
        let negative = match kind {
            Enclosed::Behind { .. } if at != entered => return None,
            Enclosed::Behind { negative, .. } | Enclosed::Ahead { negative } => negative,
            Enclosed::Atomic | Enclosed::Test => false,
        };
        self.scratch.enclosures.pop();
        self.steps += (self.scratch.frames.len() - index) as u64;
        if negative {
            for frame in self.scratch.frames.drain(index..).rev() {
                if let Frame::Undo { slot, old } = frame {
                    self.slots[usize::from(slot)] = old;
                }
            }
            return None;
        }
        // Untried paths of the body are dropped; former values of the groups are still needed.
        let mut kept = index;
        for frame in index + 1..self.scratch.frames.len() {
            if let undo @ Frame::Undo { .. } = self.scratch.frames[frame] {
                self.scratch.frames[kept] = undo;
                kept += 1;
            }
        }
        self.scratch.frames.truncate(kept);
        Some(if matches!(kind, Enclosed::Atomic | Enclosed::Test) { at } else { entered })
    }

    /// The position after the text of a group, if that text comes next; never for a group that has not matched.
    fn after_reference(
        &mut self,
        meter: &mut M,
        group: u16,
        ignore_case: bool,
        at: usize,
    ) -> Result<Option<usize>, M::Error> {
        let text = self.search.text;
        let slot = 2 * usize::from(group);
        let (start, end) = (self.slots[slot], self.slots[slot + 1]);
        if start == NOWHERE || end == NOWHERE || end < start {
            return Ok(None);
        }
        if !ignore_case {
            self.steps += (end - start) as u64 / 8;
            let same = text.as_bytes()[at..].starts_with(&text.as_bytes()[start..end]);
            return Ok(same.then_some(at + end - start));
        }
        let mut found = text[at..].chars();
        for expected in text[start..end].chars() {
            self.steps += 1;
            match found.next() {
                Some(next) if next == expected || next.eq_ignore_ascii_case(&expected) => {}
                Some(next) if !(next.is_ascii() && expected.is_ascii()) && same_letter(next, expected) => {
                    self.steps += 64;
                }
                _ => return Ok(None),
            }
            if self.steps >= PAID_AT_ONCE {
                self.settle(meter)?;
            }
        }
        Ok(Some(text.len() - found.as_str().len()))
    }
}

/// The same letter in another case.
fn same_letter(one: char, other: char) -> bool {
    let mut cases = ClassUnicode::new([ClassUnicodeRange::new(one, one)]);
    cases.try_case_fold_simple().is_ok()
        && cases.ranges().iter().any(|range| (range.start()..=range.end()).contains(&other))
}

/// The character at a position.
#[inline]
fn character(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        None => None,
        Some(&byte) if byte < 128 => Some(char::from(byte)),
        Some(_) => text[at..].chars().next(),
    }
}
