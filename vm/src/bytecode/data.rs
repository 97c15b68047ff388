//! Represents a value of a program as plain data, which the host stores outside of the program's heap and shares
//! between threads.

use super::Const;
use compact_str::CompactString;

/// A value that is data: immutable, shared between threads, the same in every process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainData {
    /// Texts of keywords and symbols.
    pub(crate) symbols: Vec<CompactString>,
    /// Each value comes after its parts; the last row is the whole value.
    pub(crate) rows: Vec<Const>,
    /// Bytes of the texts among them.
    pub(crate) text_bytes: usize,
}

impl PlainData {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.symbols) + size_of_val(&*self.rows) + self.text_bytes
    }
}
