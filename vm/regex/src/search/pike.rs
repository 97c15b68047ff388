//! Finds the capture groups of a match in a long text by following all paths through the compiled pattern at once
//! (Pike's algorithm).
//!
//! Takes at most the size of the program times the length of the match, for any pattern, and memory for the program
//! times the groups.

use super::backtrack::NOWHERE;
use crate::meter::Meter;
use crate::pattern::class::Set;
use crate::pattern::look::sides;
use crate::pattern::program::{Instruction, Program};

/// Steps between two payments.
const PAID_AT_ONCE: u64 = 2_048;

/// The open paths before a character, in the order of preference, each with the positions of its groups.
#[derive(Default)]
struct Threads {
    ways: Vec<u16>,
    /// A row of slots for each path.
    slots: Vec<usize>,
    /// For each instruction, the last position at which it was reached, plus one.
    reached: Vec<usize>,
}

/// An entry of the stack for following a path without consuming a character.
enum Open {
    Way(u16),
    /// Restores groups that the paths before this one have set.
    Undo {
        slot: u16,
        old: usize,
    },
}

/// A search for the groups of a match.
pub(crate) struct Groups<'s> {
    pub(crate) program: &'s Program,
    pub(crate) sets: &'s [Set],
    pub(crate) text: &'s str,
}

struct Run<'s, M: Meter> {
    search: &'s Groups<'s>,
    open: Vec<Open>,
    charge: M::Memory,
    steps: u64,
}

impl Groups<'_> {
    /// The positions of the groups of the match that begins at `start`; with `whole`, of the one that ends with the
    /// text.
    ///
    /// # Errors
    /// Fuel for each step, memory, deadline, cancellation.
    pub(crate) fn find<M: Meter>(
        &self,
        meter: &mut M,
        start: usize,
        whole: bool,
    ) -> Result<Option<Vec<usize>>, M::Error> {
        let mut run = Run { search: self, open: Vec::new(), charge: M::Memory::default(), steps: 0 };
        let size = self.program.code.len();
        meter.hold(&mut run.charge, size * 2 * size_of::<usize>())?;
        meter.pay(size as u64 / 4)?;
        let threads = || Threads { reached: vec![0; size], ..Threads::default() };
        let (mut now, mut next) = (threads(), threads());
        let mut slots = vec![NOWHERE; self.program.slots];
        slots[0] = start;
        let mut found: Option<Vec<usize>> = None;
        let mut at = start;
        run.follow(meter, &mut now, self.program.start, at, &mut slots)?;
        while !now.ways.is_empty() {
            let character = self.text[at..].chars().next();
            let after = at + character.map_or(0, char::len_utf8);
            for (thread, &pc) in now.ways.iter().enumerate() {
                let row = &now.slots[thread * slots.len()..][..slots.len()];
                let passes = match self.program.code[usize::from(pc)] {
                    Instruction::Char(expected) => character == Some(expected),
                    Instruction::Set(set) => {
                        character.is_some_and(|character| self.sets[usize::from(set)].has(character))
                    }
                    Instruction::Any => character.is_some(),
                    Instruction::Match if !whole || at == self.text.len() => {
                        let mut groups = row.to_vec();
                        groups[1] = at;
                        found = Some(groups);
                        // Paths after this one have lower preference.
                        break;
                    }
                    _ => false,
                };
                run.steps += 1;
                if passes {
                    slots.copy_from_slice(row);
                    run.follow(meter, &mut next, pc + 1, after, &mut slots)?;
                }
            }
            if run.steps >= PAID_AT_ONCE {
                meter.pay(std::mem::take(&mut run.steps))?;
            }
            std::mem::swap(&mut now, &mut next);
            next.ways.clear();
            next.slots.clear();
            at = after;
            if character.is_none() {
                break;
            }
        }
        meter.pay(run.steps + 1)?;
        Ok(found)
    }
}

impl<M: Meter> Run<'_, M> {
    /// Adds the paths from an instruction to the next character.
    fn follow(
        &mut self,
        meter: &mut M,
        threads: &mut Threads,
        pc: u16,
        at: usize,
        slots: &mut [usize],
    ) -> Result<(), M::Error> {
        let program = self.search.program;
        self.open.push(Open::Way(pc));
        while let Some(open) = self.open.pop() {
            self.steps += 1;
            let pc = match open {
                Open::Way(pc) => pc,
                Open::Undo { slot, old } => {
                    slots[usize::from(slot)] = old;
                    continue;
                }
            };
            if std::mem::replace(&mut threads.reached[usize::from(pc)], at + 1) == at + 1 {
                continue;
            }
            match program.code[usize::from(pc)] {
                Instruction::Split { first, second, .. } => {
                    self.open.extend([Open::Way(second), Open::Way(first)]);
                }
                Instruction::Jump(target) => self.open.push(Open::Way(target)),
                Instruction::Save(slot) => {
                    let old = std::mem::replace(&mut slots[usize::from(slot)], at);
                    self.open.extend([Open::Undo { slot, old }, Open::Way(pc + 1)]);
                }
                Instruction::Look(look) => {
                    let (before, after) = sides(self.search.text, at);
                    if look.holds(before, after) {
                        self.open.push(Open::Way(pc + 1));
                    }
                }
                Instruction::Char(_) | Instruction::Set(_) | Instruction::Any | Instruction::Match => {
                    self.steps += slots.len() as u64 / 8;
                    threads.ways.push(pc);
                    if threads.slots.len() + slots.len() > threads.slots.capacity() {
                        let more = threads.slots.len().max(16 * slots.len());
                        // Both lists of threads, and the stack.
                        meter.hold(
                            &mut self.charge,
                            program.code.len() * 2 * size_of::<usize>()
                                + (threads.slots.len() + more) * 4 * size_of::<usize>(),
                        )?;
                        threads.slots.reserve_exact(more);
                    }
                    threads.slots.extend_from_slice(slots);
                }
                // Programs for this search contain no backtracking-only instructions.
                _ => {}
            }
        }
        Ok(())
    }
}
