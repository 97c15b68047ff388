//! Writes the text of a file, piece by piece, as one JSON string into the answer of a file tool, and fails if it is not
//! UTF-8.

use super::server::FileFault;
use ptc_upstream::AnswerWriter;

/// Writes text into an answer as the content of one JSON string. A piece may end within a character.
pub(super) struct TextWriter<'w> {
    answer: &'w mut AnswerWriter,
    /// Bytes of an incomplete character.
    begun: Vec<u8>,
}

/// The text is not UTF-8, or contains a NUL.
fn no_text() -> FileFault {
    "the file is no UTF-8 text".to_owned().into()
}

impl<'w> TextWriter<'w> {
    pub(super) fn new(answer: &'w mut AnswerWriter) -> TextWriter<'w> {
        TextWriter { answer, begun: Vec::new() }
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), FileFault> {
        // Text contains no NUL; a file with one is binary.
        if memchr::memchr(0, piece).is_some() {
            return Err(no_text());
        }
        let whole;
        let piece = match self.begun.is_empty() {
            true => piece,
            false => {
                whole = [std::mem::take(&mut self.begun).as_slice(), piece].concat();
                &whole
            }
        };
        let text = match std::str::from_utf8(piece) {
            Ok(text) => text,
            Err(error) if error.error_len().is_some() => return Err(no_text()),
            Err(error) => {
                let (text, begun) = piece.split_at(error.valid_up_to());
                self.begun = begun.to_vec();
                // It is valid up to there.
                std::str::from_utf8(text).unwrap_or_default()
            }
        };
        let quoted = serde_json::to_string(text).unwrap_or_default();
        self.answer.push(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().as_bytes())?;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), FileFault> {
        if self.begun.is_empty() { Ok(()) } else { Err(no_text()) }
    }
}
