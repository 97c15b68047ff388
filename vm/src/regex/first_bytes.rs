//! The bytes that a match can begin with: places before any other byte need not be tried.

use super::class::Set;
use super::program::{Enclosed, Instruction, Program};
use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

/// The bytes that matches of a program begin with.
#[derive(Debug)]
pub(super) struct FirstBytes {
    /// `None`: a match may be empty.
    bytes: Option<Box<[bool; 256]>>,
    /// Those bytes when they are few.
    few: Vec<u8>,
    /// The text that every match begins with, when it is longer than a byte.
    prefix: Option<Finder<'static>>,
}

impl FirstBytes {
    /// Looks at what is reached without a character.
    pub(super) fn new(program: &Program, sets: &[Set]) -> FirstBytes {
        let mut bytes = Box::new([false; 256]);
        let mut seen = vec![false; program.code.len()];
        let mut open = vec![program.start];
        while let Some(pc) = open.pop() {
            if std::mem::replace(&mut seen[usize::from(pc)], true) {
                continue;
            }
            match program.code[usize::from(pc)] {
                Instruction::Char(character) => {
                    let mut buffer = [0; 4];
                    bytes[usize::from(character.encode_utf8(&mut buffer).as_bytes()[0])] = true;
                }
                Instruction::Set(set) => {
                    let set = &sets[usize::from(set)];
                    for byte in 0..128u8 {
                        bytes[usize::from(byte)] |= set.ascii() >> byte & 1 == 1;
                    }
                    if set.ranges().last().is_some_and(|&(_, end)| !end.is_ascii()) {
                        bytes[0xC2..=0xF4].fill(true);
                    }
                }
                Instruction::Split { first, second, .. } => open.extend([first, second]),
                Instruction::Jump(target) => open.push(target),
                Instruction::Look(_) | Instruction::Save(_) | Instruction::Continue => open.push(pc + 1),
                Instruction::Fail => {}
                // What is looked for elsewhere says nothing about what comes next.
                Instruction::Enter { kind: Enclosed::Ahead { .. } | Enclosed::Behind { .. }, exit } => {
                    open.push(exit);
                }
                Instruction::Enter { kind: Enclosed::Atomic, .. } | Instruction::Leave => open.push(pc + 1),
                Instruction::Any
                | Instruction::Match
                | Instruction::Enter { .. }
                | Instruction::Again { .. }
                | Instruction::Backreference { .. }
                | Instruction::UnlessGroup { .. } => {
                    return FirstBytes { bytes: None, few: Vec::new(), prefix: None };
                }
            }
        }
        let mut few: Vec<u8> = (0..=255).filter(|&byte| bytes[usize::from(byte)]).collect();
        if few.len() > 3 {
            few = Vec::new();
        }
        FirstBytes { bytes: Some(bytes), few, prefix: prefix(program) }
    }

    /// No match begins before another byte or at the end of the text.
    pub(super) fn is_needed(&self) -> bool {
        self.bytes.is_some()
    }

    /// True when a match can begin with this byte.
    #[inline]
    pub(super) fn has(&self, byte: u8) -> bool {
        self.bytes.as_ref().is_none_or(|bytes| bytes[usize::from(byte)])
    }

    /// Those bytes are few, so that they are found faster than a program runs.
    pub(super) fn are_few(&self) -> bool {
        !self.few.is_empty()
    }

    /// The first place from `at` on where a match can begin, `end` at the latest.
    pub(super) fn next(&self, text: &[u8], at: usize, end: usize) -> usize {
        let end = end.min(text.len());
        let Some(bytes) = &self.bytes else { return at };
        if let Some(prefix) = &self.prefix {
            let reach = text.len().min(end + prefix.needle().len() - 1);
            return prefix.find(&text[at..reach]).map_or(end, |found| at + found);
        }
        let part = &text[at.min(end)..end];
        let found = match *self.few {
            [a] => memchr(a, part),
            [a, b] => memchr2(a, b, part),
            [a, b, c] => memchr3(a, b, c, part),
            _ => part.iter().position(|&byte| bytes[usize::from(byte)]),
        };
        found.map_or(end, |found| at + found)
    }
}

/// The text that every match begins with, when it is longer than a byte.
fn prefix(program: &Program) -> Option<Finder<'static>> {
    let mut text = String::new();
    for instruction in &program.code[usize::from(program.start)..] {
        match instruction {
            Instruction::Char(character) => text.push(*character),
            Instruction::Save(_) => {}
            _ => break,
        }
    }
    (text.len() > 1).then(|| Finder::new(&text).into_owned())
}
