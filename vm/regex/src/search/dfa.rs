//! Implements a deterministic automaton (DFA) that makes each state only when a search first needs it.
//!
//! A state is the list of open paths through the program before a character, in the order of preference, and what
//! assertions can see of the previous character. Making a state is paid for by the instructions examined. The
//! automaton is on the memory account and is reset at its size limit, so a search is slow at worst, never large.

use super::alphabet::Alphabet;
use crate::meter::Meter;
use crate::pattern::class::Set;
use crate::pattern::first_bytes::FirstBytes;
use crate::pattern::look::Side;
use crate::pattern::program::{Direction, Instruction, Program};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Logical bytes at which an automaton is reset.
const MOST_BYTES: usize = 512 << 10;

/// Logical bytes of a state in addition to its paths and its row of the table.
const STATE_BYTES: usize = 96;

/// Bytes of text between two payments.
const PAID_AT_ONCE: usize = 4_096;

/// An entry of the table: the row of the next state, and flags.
type Entry = u32;

/// A match ends before the character.
const MATCH: Entry = 1 << 31;
/// No match can follow the character.
const DEAD: Entry = 1 << 30;
/// Only the beginning of a match is open after the character.
const START: Entry = 1 << 29;
/// Not yet known.
const UNKNOWN: Entry = 1 << 28;
const ROW: Entry = UNKNOWN - 1;

/// The inputs of a search other than the automaton.
#[derive(Clone, Copy)]
pub(crate) struct View<'s> {
    pub(crate) program: &'s Program,
    pub(crate) sets: &'s [Set],
    pub(crate) alphabet: &'s Alphabet,
}

/// A set of instructions in the order of insertion.
#[derive(Default)]
pub(crate) struct OrderedSet {
    order: Vec<u16>,
    positions: Vec<u16>,
}

impl OrderedSet {
    fn clear(&mut self, size: usize) {
        self.order.clear();
        self.positions.resize(size, 0);
    }

    #[inline]
    fn insert(&mut self, pc: u16) -> bool {
        let position = usize::from(self.positions[usize::from(pc)]);
        if self.order.get(position) == Some(&pc) {
            return false;
        }
        self.positions[usize::from(pc)] = self.order.len() as u16;
        self.order.push(pc);
        true
    }
}

/// The automaton of one program.
pub(crate) struct Dfa<M: Meter> {
    direction: Direction,
    /// A row of entries for each state: one for each class of characters, then one for the end of the text, and one
    /// for the last line feed if assertions distinguish it.
    table: Vec<Entry>,
    stride: usize,
    /// The content of each state; the first item is the side of the previous character.
    states: Vec<Rc<[u16]>>,
    /// Rows by state.
    rows: BTreeMap<Rc<[u16]>, Entry>,
    /// Rows of the start states, by side.
    starts: [Entry; Side::COUNT],
    charge: M::Memory,
    bytes: usize,
    /// Number of resets.
    generation: u32,
    /// Searches skip positions where no match can begin, without the automaton.
    skips: bool,
    /// Work space: reached instructions, those still to examine, and the next state.
    reached: OrderedSet,
    open: Vec<u16>,
    next: OrderedSet,
}

impl<M: Meter> Dfa<M> {
    pub(crate) fn new(direction: Direction, alphabet: &Alphabet, skips: bool) -> Dfa<M> {
        Dfa {
            direction,
            table: Vec::new(),
            stride: alphabet.columns(),
            states: Vec::new(),
            rows: BTreeMap::new(),
            starts: [UNKNOWN; Side::COUNT],
            charge: M::Memory::default(),
            bytes: 0,
            generation: 0,
            skips,
            reached: OrderedSet::default(),
            open: Vec::new(),
            next: OrderedSet::default(),
        }
    }

    /// The row of the start state of a search.
    fn start(&mut self, meter: &mut M, view: View<'_>, side: Side) -> Result<Entry, M::Error> {
        let side = side.seen_by(view.program.mask);
        let known = self.starts[usize::from(side.bits())];
        if known != UNKNOWN {
            return Ok(known);
        }
        let pc = match self.direction {
            Direction::Forward => 0,
            Direction::Backward => view.program.start,
        };
        let row = self.row(meter, Rc::new([u16::from(side.bits()), pc]))?;
        self.starts[usize::from(side.bits())] = row;
        Ok(row)
    }

    /// The row of a state, added if necessary.
    fn row(&mut self, meter: &mut M, state: Rc<[u16]>) -> Result<Entry, M::Error> {
        if let Some(&row) = self.rows.get(&state) {
            return Ok(row);
        }
        let more = STATE_BYTES + size_of_val(&*state) + self.stride * size_of::<Entry>();
        if self.bytes + more > MOST_BYTES || self.table.len() + self.stride > ROW as usize {
            self.table.clear();
            self.states.clear();
            self.rows.clear();
            self.starts = [UNKNOWN; Side::COUNT];
            self.bytes = 0;
            self.generation += 1;
        }
        self.bytes += more;
        meter.hold(&mut self.charge, self.bytes)?;
        let row = self.table.len() as Entry;
        self.table.resize(self.table.len() + self.stride, UNKNOWN);
        self.states.push(state.clone());
        self.rows.insert(state, row);
        Ok(row)
    }

    /// The entry for a state and a class.
    #[inline(always)]
    fn entry(&mut self, meter: &mut M, view: View<'_>, row: Entry, class: u16) -> Result<Entry, M::Error> {
        match self.table[row as usize + usize::from(class)] {
            UNKNOWN => self.step(meter, view, row, class),
            known => Ok(known),
        }
    }

    /// Makes an entry.
    #[cold]
    #[inline(never)]
    fn step(&mut self, meter: &mut M, view: View<'_>, row: Entry, class: u16) -> Result<Entry, M::Error> {
        let program = view.program;
        let state = self.states[row as usize / self.stride].clone();
        let passed = Side::from_bits(state[0] as u8);
        let (character, coming) = view.alphabet.seen(class);
        let (before, after) = match self.direction {
            Direction::Forward => (passed, coming),
            Direction::Backward => (coming, passed),
        };
        self.reached.clear(program.code.len());
        self.next.clear(program.code.len());
        let mut entry = 0;
        let mut work = 0;
        'ways: for &way in &state[1..] {
            self.open.push(way);
            while let Some(pc) = self.open.pop() {
                work += 1;
                if !self.reached.insert(pc) {
                    continue;
                }
                let passes = match program.code[usize::from(pc)] {
                    Instruction::Char(expected) => character == Some(expected),
                    Instruction::Set(set) => {
                        work += 2;
                        character.is_some_and(|character| view.sets[usize::from(set)].has(character))
                    }
                    Instruction::Any => character.is_some(),
                    Instruction::Split { first, second, .. } => {
                        self.open.extend([second, first]);
                        continue;
                    }
                    Instruction::Jump(target) => {
                        self.open.push(target);
                        continue;
                    }
                    Instruction::Save(_) => {
                        self.open.push(pc + 1);
                        continue;
                    }
                    Instruction::Look(look) => {
                        if look.holds(before, after) {
                            self.open.push(pc + 1);
                        }
                        continue;
                    }
                    Instruction::Match => {
                        entry |= MATCH;
                        if self.direction == Direction::Forward {
                            // Paths after this one have lower preference.
                            self.open.clear();
                            break 'ways;
                        }
                        continue;
                    }
                    // Programs for this search contain no backtracking-only instructions.
                    _ => continue,
                };
                if passes {
                    self.next.insert(pc + 1);
                }
            }
        }
        meter.pay(work + self.next.order.len() as u64 + self.stride as u64 / 4)?;
        if self.next.order.is_empty() {
            entry |= DEAD;
        } else {
            if self.direction == Direction::Backward {
                // All matches count, so their order is irrelevant.
                self.next.order.sort_unstable();
            }
            let side = coming.seen_by(program.mask);
            let mut state = Vec::with_capacity(self.next.order.len() + 1);
            state.push(u16::from(side.bits()));
            state.extend_from_slice(&self.next.order);
            if self.skips && state[1..] == [2] {
                // The path past a character, which leads back to the beginning.
                entry |= START;
            }
            let generation = self.generation;
            entry |= self.row(meter, state.into())?;
            if self.generation != generation {
                // The state of this step was dropped by a reset.
                return Ok(entry);
            }
        }
        self.table[row as usize + usize::from(class)] = entry;
        Ok(entry)
    }

    /// The end of the first match that begins at `at` or later.
    ///
    /// # Errors
    /// Fuel for each byte and for each new state, memory, deadline, cancellation.
    // A function of its own, so that its loop has the registers.
    #[inline(never)]
    pub(crate) fn forward(
        &mut self,
        meter: &mut M,
        view: View<'_>,
        first: &FirstBytes,
        text: &str,
        mut at: usize,
    ) -> Result<Option<usize>, M::Error> {
        let bytes = text.as_bytes();
        let mut found = None;
        let mut paid = at;
        let mut row = self.start(meter, view, Side::before(text, at))?;
        // The last line feed may be a class of its own, which the loop does not reach.
        let last = view.alphabet.final_line_feed().filter(|_| bytes.last() == Some(&b'\n'));
        let stop = bytes.len() - usize::from(last.is_some());
        let mut skip = self.skips;
        loop {
            if skip {
                at = first.next(bytes, at, at + PAID_AT_ONCE);
                // The skipping search may have stopped inside a character.
                skip = bytes.get(at).is_some_and(|&byte| !first.has(byte));
                if !skip {
                    row = self.start(meter, view, Side::before(text, at))?;
                }
            } else {
                let end = stop.min(at + PAID_AT_ONCE);
                while at < end {
                    // The common case, which needs no other state.
                    let (table, alphabet) = (&*self.table, view.alphabet);
                    for &byte in &bytes[at..end] {
                        if byte >= 128 {
                            break;
                        }
                        let entry = table[row as usize + usize::from(alphabet.of_ascii(byte))];
                        if entry >= UNKNOWN {
                            break;
                        }
                        row = entry;
                        at += 1;
                    }
                    let Some(&byte) = bytes[..end].get(at) else { break };
                    let (class, width) = if byte < 128 {
                        (view.alphabet.of_ascii(byte), 1)
                    } else {
                        let character = text[at..].chars().next().unwrap_or_default();
                        (view.alphabet.class(character), character.len_utf8())
                    };
                    let entry = self.entry(meter, view, row, class)?;
                    if entry >= UNKNOWN {
                        if entry & MATCH != 0 {
                            found = Some(at);
                        }
                        if entry & DEAD != 0 {
                            meter.pay((at - paid) as u64 + 1)?;
                            return Ok(found);
                        }
                        if entry & START != 0 {
                            at += width;
                            row = entry & ROW;
                            skip = true;
                            break;
                        }
                    }
                    row = entry & ROW;
                    at += width;
                }
            }
            meter.pay((at - paid) as u64)?;
            paid = at;
            // A search that skips has no row.
            if at >= stop && !(skip && at < bytes.len()) {
                break;
            }
        }
        let last = last.filter(|_| at < bytes.len());
        for class in last.into_iter().chain([view.alphabet.end()]) {
            let entry = self.entry(meter, view, row, class)?;
            if entry & MATCH != 0 {
                found = Some(at);
            }
            if entry & DEAD != 0 {
                break;
            }
            row = entry & ROW;
            at += 1;
        }
        meter.pay(1)?;
        Ok(found)
    }

    /// The first position from `start` on at which a match that ends at `end` begins.
    ///
    /// # Errors
    /// As [`Dfa::forward`].
    pub(crate) fn backward(
        &mut self,
        meter: &mut M,
        view: View<'_>,
        text: &str,
        start: usize,
        end: usize,
    ) -> Result<Option<usize>, M::Error> {
        let bytes = text.as_bytes();
        let mut found = None;
        let (mut at, mut paid) = (end, end);
        let mut row = self.start(meter, view, Side::after(text, end))?;
        // The last line feed may be a class of its own, which the inner loop does not read.
        let last =
            view.alphabet.final_line_feed().filter(|_| end == bytes.len() && bytes.last() == Some(&b'\n'));
        loop {
            let (table, alphabet) = (&*self.table, view.alphabet);
            let is_last = last.is_some() && at == end;
            let from = if is_last { at } else { start.max(at.saturating_sub(PAID_AT_ONCE)).min(at) };
            for &byte in bytes[from..at].iter().rev() {
                if byte >= 128 {
                    break;
                }
                let entry = table[row as usize + usize::from(alphabet.of_ascii(byte))];
                if entry >= UNKNOWN {
                    break;
                }
                row = entry;
                at -= 1;
            }
            if paid - at >= PAID_AT_ONCE {
                meter.pay((paid - at) as u64)?;
                paid = at;
            }
            // The character before `start` is not consumed, but assertions look at it.
            let (class, width) = match at.checked_sub(1).map(|before| bytes[before]) {
                None => (view.alphabet.end(), 0),
                Some(b'\n') if is_last && let Some(last) = last => (last, 1),
                Some(byte) if byte < 128 => (view.alphabet.of_ascii(byte), 1),
                Some(_) => {
                    let character = text[..at].chars().next_back().unwrap_or_default();
                    (view.alphabet.class(character), character.len_utf8())
                }
            };
            let entry = self.entry(meter, view, row, class)?;
            if entry & MATCH != 0 {
                found = Some(at);
            }
            if entry & DEAD != 0 || at <= start {
                break;
            }
            row = entry & ROW;
            at -= width;
        }
        meter.pay((paid - at) as u64 + 1)?;
        Ok(found)
    }
}
