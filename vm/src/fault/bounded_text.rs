//! Text of bounded length, used for messages and hints.
//!
//! A message often quotes a name or a value, which may be as long as the program or its memory allow. The bound here
//! holds for every message.

use std::fmt::{self, Write};
use std::ops::Deref;

/// Most characters of a text; a longer one is cut and ends with [`CUT`].
pub const MOST: usize = 1_000;

/// The mark at the end of a cut text.
pub const CUT: char = '…';

/// A text of at most [`MOST`] characters.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BoundedText(String);

impl BoundedText {
    /// The text of a displayable value, cut if it is too long. Writing stops at the cut.
    pub fn new(text: impl fmt::Display) -> BoundedText {
        let mut writer = Writer { text: String::new(), room: MOST };
        // The writer signals the cut with an error.
        let _ = write!(writer, "{text}");
        BoundedText(writer.text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if nothing more fits.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST && self.0.chars().count() >= MOST
    }
}

struct Writer {
    text: String,
    /// Number of characters that still fit.
    room: usize,
}

impl Write for Writer {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        // As many bytes have at most as many characters.
        if part.len() <= self.room {
            self.room -= part.len();
            self.text.push_str(part);
            return Ok(());
        }
        let had = self.text.chars().count();
        match part.char_indices().nth(MOST - had) {
            None => {
                self.text.push_str(part);
                self.room = MOST - self.text.chars().count();
                Ok(())
            }
            Some((end, _)) => {
                self.text.push_str(&part[..end]);
                self.text.pop();
                self.text.push(CUT);
                self.room = 0;
                Err(fmt::Error)
            }
        }
    }
}

impl Deref for BoundedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoundedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for BoundedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<BoundedText> for String {
    fn from(text: BoundedText) -> String {
        text.0
    }
}

impl PartialEq<str> for BoundedText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for BoundedText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_texts_are_cut_and_at_a_character() {
        let as_long = "ä".repeat(MOST);
        assert_eq!(BoundedText::new(&as_long), *as_long);
        for (before, after) in [("", "ä"), ("a", ""), ("", "a")] {
            let long = BoundedText::new(format_args!("{before}{as_long}{after}{}", "b".repeat(5_000)));
            assert_eq!(long.chars().count(), MOST);
            assert!(long.ends_with(['…']) && long.starts_with(before), "{long}");
        }
    }

    #[test]
    fn what_is_not_kept_is_not_written() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("again ")?;
                }
            }
        }
        assert_eq!(BoundedText::new(Endless).chars().count(), MOST);
    }
}
