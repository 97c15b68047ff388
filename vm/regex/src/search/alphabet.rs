//! Divides all characters into the classes that a pattern distinguishes, so that an automaton needs one transition per
//! class instead of one per character.

use crate::meter::Meter;
use crate::pattern::class::Set;
use crate::pattern::look::Side;
use crate::pattern::program::{Instruction, Program};

/// A partition of all characters.
#[derive(Debug)]
pub(crate) struct Alphabet {
    ascii: [u16; 128],
    /// First characters of the ranges, each with its class.
    starts: Vec<u32>,
    classes: Vec<u16>,
    /// One character of each class.
    members: Vec<char>,
    /// The last line feed of a text is a class of its own.
    has_final: bool,
}

impl Alphabet {
    /// The coarsest partition that a program and its sets need; `also` are distinguished as well.
    ///
    /// # Errors
    /// Fuel for the ranges of the sets.
    pub(crate) fn new<M: Meter>(
        meter: &mut M,
        program: &Program,
        sets: &[Set],
        also: &[Set],
    ) -> Result<Alphabet, M::Error> {
        let mut characters: Vec<u32> = program
            .code
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Char(character) => Some(u32::from(*character)),
                _ => None,
            })
            .collect();
        if program.mask != Side::default() {
            characters.extend(['\n', '\r'].map(u32::from));
        }
        meter.pay(program.code.len() as u64 + characters.len() as u64)?;
        characters.sort_unstable();
        characters.dedup();
        let mut starts: Vec<u32> = characters.iter().flat_map(|&code| [code, code + 1]).collect();
        // The surrogate range has boundaries in every alphabet, so that none of it is a member of a class.
        starts.extend([0, 0xD800, 0xE000, 0x11_0000]);
        for set in sets.iter().chain(also) {
            starts
                .extend(set.ranges().iter().flat_map(|&(start, end)| [u32::from(start), u32::from(end) + 1]));
            // Two sorted runs are merged in one pass.
            starts.sort();
            starts.dedup();
            meter.pay(starts.len() as u64)?;
        }
        starts.sort();
        starts.dedup();
        let mut classes = vec![0u16; starts.len()];
        let mut count: u16 = 1;
        for set in sets.iter().chain(also) {
            count = split(&starts, &mut classes, count, set);
            meter.pay(starts.len() as u64)?;
        }
        for code in characters {
            if let Ok(at) = starts.binary_search(&code) {
                classes[at] = count;
                count += 1;
            }
        }
        let mut alphabet = Alphabet {
            ascii: [0; 128],
            starts,
            classes,
            members: Vec::new(),
            has_final: program.mask.sees_final(),
        };
        alphabet.number();
        Ok(alphabet)
    }

    /// Numbers the classes in the order of their first characters, and stores these.
    fn number(&mut self) {
        let top = self.classes.iter().copied().max().unwrap_or(0);
        let mut numbers = vec![u16::MAX; usize::from(top) + 1];
        for (start, class) in self.starts.iter().zip(&mut self.classes) {
            let Some(member) = char::from_u32(*start) else { continue };
            let number = &mut numbers[usize::from(*class)];
            if *number == u16::MAX {
                *number = self.members.len() as u16;
                self.members.push(member);
            }
            *class = *number;
        }
        for byte in 0..128u8 {
            self.ascii[usize::from(byte)] = self.search(u32::from(byte));
        }
    }

    fn search(&self, code: u32) -> u16 {
        let at = self.starts.partition_point(|&start| start <= code);
        self.classes.get(at.wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// The class of the end of the text, the first after those of characters.
    pub(crate) fn end(&self) -> u16 {
        self.members.len() as u16
    }

    /// The class of a line feed that is the last character of a text, if assertions distinguish it.
    pub(crate) fn final_line_feed(&self) -> Option<u16> {
        self.has_final.then_some(self.end() + 1)
    }

    /// Number of classes, those of the end and of the last line feed included.
    pub(crate) fn columns(&self) -> usize {
        self.members.len() + 1 + usize::from(self.has_final)
    }

    /// One character of a class, if it is one of characters, and what assertions see of it.
    pub(crate) fn seen(&self, class: u16) -> (Option<char>, Side) {
        match self.members.get(usize::from(class)) {
            Some(&member) => (Some(member), Side::from_character(member)),
            None if class == self.end() => (None, Side::EDGE),
            None => (Some('\n'), Side::FINAL_LINE_FEED),
        }
    }

    #[inline]
    pub(crate) fn of_ascii(&self, byte: u8) -> u16 {
        self.ascii[usize::from(byte & 127)]
    }

    pub(crate) fn class(&self, character: char) -> u16 {
        if character.is_ascii() { self.of_ascii(character as u8) } else { self.search(u32::from(character)) }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Alphabet>() + self.starts.len() * 6 + self.members.len() * 4
    }
}

/// Splits the classes by membership in a set. Gives the new number of classes.
fn split(starts: &[u32], classes: &mut [u16], count: u16, set: &Set) -> u16 {
    let mut inside = vec![u16::MAX; usize::from(count)];
    let mut next = count;
    let mut ranges = set.ranges().iter().peekable();
    for (start, class) in starts.iter().zip(classes) {
        while ranges.next_if(|&&(_, end)| u32::from(end) < *start).is_some() {}
        if ranges.peek().is_some_and(|&&(first, _)| u32::from(first) <= *start) {
            let new = &mut inside[usize::from(*class)];
            if *new == u16::MAX {
                *new = next;
                next = next.saturating_add(1);
            }
            *class = *new;
        }
    }
    next
}
