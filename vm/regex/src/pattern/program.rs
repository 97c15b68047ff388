//! Compiles the tree of a pattern to the instructions that searches run, for reading the text forwards or backwards.
//!
//! Bounded repetitions are unrolled, so that the state of a search is only a position in the program. The order of
//! paths through the program is the order of preference.

use super::look::{Look, Side};
use super::syntax::{Node, Syntax, Test};
use crate::error::PatternError;

/// Most instructions of a program: their numbers have 16 bits.
const MOST_INSTRUCTIONS: usize = 60_000;

/// An instruction; the next one follows unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    /// One character.
    Char(char),
    /// One of a set.
    Set(u16),
    /// Any one.
    Any,
    Look(Look),
    /// Two paths, the first preferred; splits are numbered.
    Split {
        first: u16,
        second: u16,
        number: u16,
    },
    Jump(u16),
    /// Stores the position in a slot.
    Save(u16),
    Match,
    Fail,
    // The instructions below are only in programs for the backtracking search. Continues at `exit` if nothing was
    // matched since the slot stored a position, else at the target.
    Again {
        slot: u16,
        target: u16,
    },
    Backreference {
        group: u16,
        ignore_case: bool,
    },
    /// A body follows up to its `Leave`. After it, or for the negative kinds after its failure, the search continues
    /// at `exit`.
    Enter {
        kind: Enclosed,
        exit: u16,
    },
    /// The body of the innermost `Enter` has matched.
    Leave,
    /// Fails except where the search began.
    Continue,
    /// Continues at the target unless the group has matched.
    UnlessGroup {
        group: u16,
        target: u16,
    },
}

/// The kind of an `Enter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enclosed {
    Ahead {
        negative: bool,
    },
    /// The program has a table with the lengths to try.
    Behind {
        negative: bool,
        lengths: u8,
    },
    /// Only the first path through the body is tried, and its characters are consumed.
    Atomic,
    /// As above; if the body fails, the search continues at `exit`.
    Test,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    /// Where a match begins; the instructions before it skip the characters before a match.
    pub(crate) start: u16,
    /// Number of `Split` instructions.
    pub(crate) splits: usize,
    /// Number of slots: two for each group, then those of loops.
    pub(crate) slots: usize,
    /// Minimal and maximal lengths of look-behinds, in characters.
    pub(crate) behind: Vec<(u32, u32)>,
    /// What all assertions together use.
    pub(crate) mask: Side,
}

/// The direction in which a program reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    /// From the end of a match to its beginning, without groups.
    Backward,
}

struct Compiler<'m, P> {
    code: Vec<Instruction>,
    splits: usize,
    slots: usize,
    behind: Vec<(u32, u32)>,
    direction: Direction,
    backtracking: bool,
    /// Number of compiled nodes, counting each copy.
    nodes: usize,
    pay: &'m mut P,
}

impl Program {
    /// Compiles a tree.
    ///
    /// # Errors
    /// A program that grows too long; the error of `pay`.
    pub(crate) fn new<E>(
        syntax: &Syntax,
        direction: Direction,
        pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
    ) -> Result<Program, PatternError<E>> {
        let groups = if direction == Direction::Forward { usize::from(syntax.groups) } else { 0 };
        let mut compiler = Compiler {
            code: Vec::new(),
            splits: 0,
            slots: 2 * (groups + 1),
            behind: Vec::new(),
            direction,
            backtracking: syntax.backtracking,
            nodes: 0,
            pay,
        };
        // Before a match: prefer to begin it, else skip a character.
        let split = compiler.split()?;
        compiler.emit(Instruction::Any)?;
        compiler.emit(Instruction::Jump(0))?;
        let start = compiler.here();
        compiler.ways(split, start, 1);
        compiler.node(&syntax.root)?;
        compiler.emit(Instruction::Match)?;
        let Compiler { code, splits, slots, behind, .. } = compiler;
        let looks = code.iter().filter_map(|instruction| match instruction {
            Instruction::Look(look) => Some(*look),
            _ => None,
        });
        let mask = Look::masks(looks);
        Ok(Program { start, splits, slots, behind, mask, code })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.code.len() * size_of::<Instruction>() + self.behind.len() * size_of::<(u32, u32)>()
    }
}

impl<P, E> Compiler<'_, P>
where
    P: FnMut(u64) -> Result<(), PatternError<E>>,
{
    fn here(&self) -> u16 {
        self.code.len() as u16
    }

    fn emit(&mut self, instruction: Instruction) -> Result<u16, PatternError<E>> {
        if self.code.len() >= MOST_INSTRUCTIONS {
            return Err(PatternError::invalid("the pattern repeats too much"));
        }
        self.code.push(instruction);
        Ok(self.here() - 1)
    }

    /// A split with targets to be set later.
    fn split(&mut self) -> Result<u16, PatternError<E>> {
        let number = self.splits as u16;
        self.splits += 1;
        self.emit(Instruction::Split { first: 0, second: 0, number })
    }

    fn ways(&mut self, split: u16, preferred: u16, other: u16) {
        if let Instruction::Split { first, second, .. } = &mut self.code[usize::from(split)] {
            (*first, *second) = (preferred, other);
        }
    }

    /// Sets the target of an instruction.
    fn aim(&mut self, at: u16, to: u16) {
        match &mut self.code[usize::from(at)] {
            Instruction::Jump(target)
            | Instruction::Again { target, .. }
            | Instruction::UnlessGroup { target, .. }
            | Instruction::Enter { exit: target, .. } => *target = to,
            _ => {}
        }
    }

    fn node(&mut self, node: &Node) -> Result<(), PatternError<E>> {
        self.nodes += 1;
        if self.nodes > 2 * MOST_INSTRUCTIONS {
            return Err(PatternError::invalid("the pattern repeats too much"));
        }
        (self.pay)(1)?;
        match node {
            Node::Empty => {}
            Node::Fail => drop(self.emit(Instruction::Fail)?),
            Node::Char(character) => drop(self.emit(Instruction::Char(*character))?),
            Node::Set(set) => drop(self.emit(Instruction::Set(*set))?),
            Node::Look(look) => drop(self.emit(Instruction::Look(*look))?),
            Node::Concat(parts) if self.direction == Direction::Backward => {
                for part in parts.iter().rev() {
                    self.node(part)?;
                }
            }
            Node::Concat(parts) => {
                for part in parts {
                    self.node(part)?;
                }
            }
            Node::Alternation(parts) => self.alternation(parts)?,
            Node::Repeat { min, max, greedy, may_be_empty, body } => {
                self.repeat(body, *min, *max, *greedy, *may_be_empty)?;
            }
            Node::Group(_, body) if self.direction == Direction::Backward => self.node(body)?,
            Node::Group(number, body) => {
                self.emit(Instruction::Save(2 * number))?;
                self.node(body)?;
                self.emit(Instruction::Save(2 * number + 1))?;
            }
            Node::Ahead { negative, body } => self.enclosed(Enclosed::Ahead { negative: *negative }, body)?,
            Node::Behind { negative, lengths, body } => self.behind(*negative, *lengths, body)?,
            Node::Atomic(body) => self.enclosed(Enclosed::Atomic, body)?,
            Node::Backreference(group, ignore_case) => {
                self.emit(Instruction::Backreference { group: *group, ignore_case: *ignore_case })?;
            }
            Node::Keep => drop(self.emit(Instruction::Save(0))?),
            Node::Continue => drop(self.emit(Instruction::Continue)?),
            Node::Condition { test, yes, no } => self.condition(test, yes, no)?,
        }
        Ok(())
    }

    fn alternation(&mut self, parts: &[Node]) -> Result<(), PatternError<E>> {
        let mut ends = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if at + 1 == parts.len() {
                self.node(part)?;
                break;
            }
            let split = self.split()?;
            self.node(part)?;
            ends.push(self.emit(Instruction::Jump(0))?);
            let next = self.here();
            self.ways(split, split + 1, next);
        }
        let end = self.here();
        for jump in ends {
            self.aim(jump, end);
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        greedy: bool,
        may_be_empty: bool,
    ) -> Result<(), PatternError<E>> {
        let Some(max) = max else { return self.unbounded(body, min, greedy, may_be_empty) };
        for _ in 0..min {
            self.node(body)?;
        }
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.split()?);
            self.node(body)?;
        }
        let end = self.here();
        for split in splits {
            self.choose(split, split + 1, end, greedy);
        }
        Ok(())
    }

    /// Sets the paths that continue and that end a repetition.
    fn choose(&mut self, split: u16, more: u16, end: u16, greedy: bool) {
        if greedy { self.ways(split, more, end) } else { self.ways(split, end, more) }
    }

    fn unbounded(
        &mut self,
        body: &Node,
        min: u32,
        greedy: bool,
        may_be_empty: bool,
    ) -> Result<(), PatternError<E>> {
        if may_be_empty && self.backtracking {
            for _ in 0..min {
                self.node(body)?;
            }
            return self.checked_loop(body, greedy);
        }
        for _ in 1..min {
            self.node(body)?;
        }
        if min > 0 {
            let start = self.here();
            self.node(body)?;
            let split = self.split()?;
            self.choose(split, start, split + 1, greedy);
        } else if may_be_empty {
            // `(?:x+)?`: with `x*` the order of preference would depend on the number of empty matches.
            let optional = self.split()?;
            self.node(body)?;
            let split = self.split()?;
            self.choose(split, optional + 1, split + 1, greedy);
            self.choose(optional, optional + 1, split + 1, greedy);
        } else {
            let split = self.split()?;
            self.node(body)?;
            self.emit(Instruction::Jump(split))?;
            let end = self.here();
            self.choose(split, split + 1, end, greedy);
        }
        Ok(())
    }

    /// A loop that ends after a round with an empty match: backtracking has no memory of earlier positions.
    fn checked_loop(&mut self, body: &Node, greedy: bool) -> Result<(), PatternError<E>> {
        let slot = self.slots as u16;
        self.slots += 1;
        let split = self.split()?;
        self.emit(Instruction::Save(slot))?;
        self.node(body)?;
        self.emit(Instruction::Again { slot, target: split })?;
        let end = self.here();
        self.choose(split, split + 1, end, greedy);
        Ok(())
    }

    fn behind(&mut self, negative: bool, lengths: (u32, u32), body: &Node) -> Result<(), PatternError<E>> {
        // Lengths differ only if the notation does, so a byte counts them.
        let known = self.behind.iter().position(|known| *known == lengths);
        let row = known.unwrap_or(self.behind.len()) as u8;
        if known.is_none() {
            self.behind.push(lengths);
        }
        self.enclosed(Enclosed::Behind { negative, lengths: row }, body)
    }

    fn enclosed(&mut self, kind: Enclosed, body: &Node) -> Result<(), PatternError<E>> {
        let enter = self.emit(Instruction::Enter { kind, exit: 0 })?;
        self.node(body)?;
        self.emit(Instruction::Leave)?;
        let exit = self.here();
        self.aim(enter, exit);
        Ok(())
    }

    fn condition(&mut self, test: &Test, yes: &Node, no: &Node) -> Result<(), PatternError<E>> {
        let asked = match test {
            Test::Group(group) => self.emit(Instruction::UnlessGroup { group: *group, target: 0 })?,
            Test::Node(body) => {
                let enter = self.emit(Instruction::Enter { kind: Enclosed::Test, exit: 0 })?;
                self.node(body)?;
                self.emit(Instruction::Leave)?;
                enter
            }
        };
        self.node(yes)?;
        let jump = self.emit(Instruction::Jump(0))?;
        let otherwise = self.here();
        self.aim(asked, otherwise);
        self.node(no)?;
        let end = self.here();
        self.aim(jump, end);
        Ok(())
    }
}
