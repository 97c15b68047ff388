//! Finds the next position at which a match can begin, from its possible first bytes or the common prefix of matches.

use super::class::Set;
use super::program::{Enclosed, Instruction, Program};
use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

/// The possible first bytes of a program's matches.
#[derive(Debug)]
pub(crate) struct FirstBytes {
    /// `None`: a match may be empty.
    bytes: Option<Box<[bool; 256]>>,
    /// The bytes, if they are few.
    few: Vec<u8>,
    /// The common prefix of all matches, if it is longer than a byte.
    prefix: Option<Finder<'static>>,
}

impl FirstBytes {
    /// Collects what is reachable without consuming a character.
    pub(crate) fn new(program: &Program, sets: &[Set]) -> FirstBytes {
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
                // The body of a look-around does not restrict the next character.
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

    /// Whether every match begins with one of the bytes, so not at the end of the text.
    pub(crate) fn is_needed(&self) -> bool {
        self.bytes.is_some()
    }

    /// True if a match can begin with this byte.
    #[inline]
    pub(crate) fn has(&self, byte: u8) -> bool {
        self.bytes.as_ref().is_none_or(|bytes| bytes[usize::from(byte)])
    }

    /// The bytes are few enough for a byte search, which is faster than running a program.
    pub(crate) fn are_few(&self) -> bool {
        !self.few.is_empty()
    }

    /// The first position from `at` on at which a match can begin, at most `end`.
    pub(crate) fn next(&self, text: &[u8], at: usize, end: usize) -> usize {
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

/// The common prefix of all matches, if it is longer than a byte.
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
