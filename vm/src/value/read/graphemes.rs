//! Splits a text into graphemes (user-perceived characters) in steps of bounded work, so that a run can be stopped even
//! within one grapheme of a megabyte of combining marks.
//!
//! A cursor sees one window of the text at a time, with a poll whenever it needs the next one. Finding graphemes
//! costs nothing here: the caller pays for the bytes of the text.

use crate::fault::Result;
use crate::memory::{Meter, STEP};
use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

/// Iterates over the graphemes of a text, forwards from its beginning or backwards from its end.
pub(crate) struct Graphemes<'s> {
    text: &'s str,
    cursor: GraphemeCursor,
    /// The window of the cursor: more than a character, unless the text ends there.
    window: Range<usize>,
    /// Length of a window.
    step: usize,
    /// The last boundary that was found.
    at: usize,
    /// Bytes of all windows but the first one.
    looked: usize,
}

impl<'s> Graphemes<'s> {
    /// Starts at the beginning.
    #[inline]
    pub(crate) fn from_start(text: &'s str) -> Graphemes<'s> {
        Graphemes::in_steps(text, STEP)
    }

    #[inline]
    fn in_steps(text: &'s str, step: usize) -> Graphemes<'s> {
        let cursor = GraphemeCursor::new(0, text.len(), true);
        let window = 0..text.floor_char_boundary(step);
        Graphemes { text, cursor, window, step, at: 0, looked: 0 }
    }

    /// Starts at the end. The first window is short: one grapheme is usually found there.
    pub(crate) fn from_end(text: &'s str) -> Graphemes<'s> {
        /// Length of the first window.
        const FIRST: usize = 256;
        Graphemes::back_in_steps(text, FIRST, STEP)
    }

    fn back_in_steps(text: &'s str, first: usize, step: usize) -> Graphemes<'s> {
        let end = text.len();
        let cursor = GraphemeCursor::new(end, end, true);
        let window = text.floor_char_boundary(end.saturating_sub(first))..end;
        Graphemes { text, cursor, window, step, at: end, looked: 0 }
    }

    /// The byte where the next grapheme begins or, going backwards, where the last one began.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Bytes read beyond the first window, some of them twice.
    pub(crate) fn looked(&self) -> usize {
        self.looked
    }

    /// The next grapheme.
    ///
    /// # Errors
    /// Deadline and cancellation.
    #[inline]
    pub(crate) fn next(&mut self, cx: &mut Meter) -> Result<Option<&'s str>> {
        loop {
            match self.cursor.next_boundary(&self.text[self.window.clone()], self.window.start) {
                Ok(Some(end)) => {
                    let start = std::mem::replace(&mut self.at, end);
                    return Ok(Some(&self.text[start..end]));
                }
                Ok(None) => return Ok(None),
                Err(wanted) => self.look(cx, wanted)?,
            }
        }
    }

    /// The grapheme before.
    ///
    /// # Errors
    /// Deadline and cancellation.
    pub(crate) fn previous(&mut self, cx: &mut Meter) -> Result<Option<&'s str>> {
        loop {
            match self.cursor.prev_boundary(&self.text[self.window.clone()], self.window.start) {
                Ok(Some(start)) => {
                    let end = std::mem::replace(&mut self.at, start);
                    return Ok(Some(&self.text[start..end]));
                }
                Ok(None) => return Ok(None),
                Err(wanted) => self.look(cx, wanted)?,
            }
        }
    }

    /// Gives the cursor the window that it needs. A window overlaps the one before by a character: the cursor's state
    /// about earlier characters must not be counted again from the beginning of a window.
    #[cold]
    #[inline(never)]
    fn look(&mut self, cx: &mut Meter, wanted: GraphemeIncomplete) -> Result<()> {
        cx.fuel.poll()?;
        let before = |end: usize| self.text.floor_char_boundary(end.saturating_sub(self.step));
        match wanted {
            GraphemeIncomplete::NextChunk => {
                let start = self.text.floor_char_boundary(self.window.end.saturating_sub(1));
                self.window = start..self.text.floor_char_boundary(start + self.step);
                self.looked += self.window.len();
            }
            GraphemeIncomplete::PrevChunk => {
                let start = self.window.start;
                self.window = before(start)..self.text.ceil_char_boundary(start + 1);
                self.looked += self.window.len();
            }
            GraphemeIncomplete::PreContext(end) => {
                let start = before(end);
                self.cursor.provide_context(&self.text[start..end], start);
                self.looked += end - start;
            }
            // Errors of cursors outside of their window.
            GraphemeIncomplete::InvalidOffset => {
                debug_assert!(false, "the cursor is in its window");
                self.cursor.set_cursor(self.text.len());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::testing::with_store;
    use unicode_segmentation::UnicodeSegmentation;

    /// The characters that decide where graphemes end: letters, marks, joiners, flags, emoji, conjuncts, jamo, line
    /// ends.
    const PIECES: &[&str] = &[
        "a",
        "e",
        "\r",
        "\n",
        "\u{301}",
        "\u{200d}",
        "\u{1f1e6}",
        "\u{1f1e6}",
        "\u{1f468}",
        "\u{1f3fb}",
        "\u{fe0f}",
        "\u{915}",
        "\u{94d}",
        "\u{915}\u{94d}",
        "\u{93c}",
        "\u{1100}",
        "\u{1161}",
        "\u{11a8}",
        "\u{600}",
        "é",
        "中",
    ];

    fn texts() -> impl Iterator<Item = String> {
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        (0..4_000).map(move |_| {
            let (kinds, first) = (1 + random(6), random(PIECES.len()));
            let piece = |at: usize| PIECES[(first + at * 5) % PIECES.len()];
            (0..random(60)).map(|_| piece(random(kinds))).collect()
        })
    }

    #[test]
    fn steps_find_the_graphemes_of_the_whole_text() {
        with_store(|cx| {
            for (text, step) in texts().zip([8, 9, 12, 16, 31].into_iter().cycle()) {
                let whole: Vec<&str> = text.graphemes(true).collect();
                let mut graphemes = Graphemes::in_steps(&text, step);
                let mut found = Vec::new();
                while let Some(grapheme) = graphemes.next(cx).expect("no limits") {
                    found.push(grapheme);
                }
                assert_eq!(found, whole, "{text:?} in steps of {step}");
            }
        });
    }

    #[test]
    fn steps_back_find_the_graphemes_of_the_whole_text() {
        with_store(|cx| {
            for (text, step) in texts().zip([8, 9, 12, 16, 31].into_iter().cycle()) {
                let whole: Vec<&str> = text.graphemes(true).rev().collect();
                let mut graphemes = Graphemes::back_in_steps(&text, step.min(10), step);
                let mut found = Vec::new();
                while let Some(grapheme) = graphemes.previous(cx).expect("no limits") {
                    found.push(grapheme);
                }
                assert_eq!(found, whole, "{text:?} in steps of {step}");
            }
        });
    }
}
