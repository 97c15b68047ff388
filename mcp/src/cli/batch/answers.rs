//! Puts the answers of `ptc batch` into the order of their input lines.

use std::collections::VecDeque;

/// Answers in input order, some of them still missing.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Text of the answers that no missing one precedes.
    ready: Vec<u8>,
    /// The later answers, `None` where missing; the first one is missing.
    behind: VecDeque<Option<Vec<u8>>>,
    /// The number of the first answer in `behind`.
    first: usize,
}

impl Answers {
    /// Number of answers that are missing, or wait for a missing one.
    pub(super) fn behind(&self) -> usize {
        self.behind.len()
    }

    /// Bytes of the answers that can be written.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Takes the answers that can be written.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let room = Vec::with_capacity(self.ready.len());
        std::mem::replace(&mut self.ready, room)
    }

    /// Adds an answer that is complete.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.behind.is_empty() {
            return write(&mut self.ready);
        }
        let mut text = Vec::new();
        write(&mut text);
        self.behind.push_back(Some(text));
    }

    /// Reserves a slot for an answer that comes later, and returns its number.
    pub(super) fn reserve_slot(&mut self) -> usize {
        self.behind.push_back(None);
        self.first + self.behind.len() - 1
    }

    /// Fills a reserved slot.
    pub(super) fn fill(&mut self, slot: usize, text: Vec<u8>) {
        if let Some(empty) = slot.checked_sub(self.first).and_then(|index| self.behind.get_mut(index)) {
            *empty = Some(text);
        }
        while let Some(Some(text)) = self.behind.front() {
            self.ready.extend_from_slice(text);
            self.behind.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_wait_for_those_before_them() {
        let mut answers = Answers::default();
        answers.write(|out| out.push(b'0'));
        let slots = [answers.reserve_slot(), answers.reserve_slot()];
        answers.write(|out| out.push(b'3'));
        answers.fill(slots[1], b"2".to_vec());
        assert_eq!((answers.take(), answers.behind()), (b"0".to_vec(), 3));
        answers.fill(slots[0], b"1".to_vec());
        answers.write(|out| out.push(b'4'));
        assert_eq!((answers.take(), answers.behind()), (b"1234".to_vec(), 0));
        let slot = answers.reserve_slot();
        answers.fill(slot, b"5".to_vec());
        assert_eq!(answers.take(), b"5");
    }
}
