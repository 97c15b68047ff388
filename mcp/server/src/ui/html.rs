//! Builds the HTML of the web page (`--ui`) from constant markup and untrusted texts, which it redacts and escapes.

use crate::drawing::html::escaped;
use crate::redact::{self, visible_line};
use ptc_base::secrets::Cut;
use std::fmt::Write as _;

/// A piece of a page.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Adds markup. Its type says that it is no foreign text.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Adds a text of several lines.
    pub(crate) fn text(&mut self, text: &str) -> &mut Html {
        self.0.push_str(&escaped(&redact::secrets().scrub(text)));
        self
    }

    /// Adds a text on one line.
    pub(crate) fn line(&mut self, text: &str) -> &mut Html {
        self.0.push_str(&escaped(&visible_line(&redact::secrets().scrub(text))));
        self
    }

    /// [`Html::line`] of at most this many characters.
    pub(crate) fn short(&mut self, text: &str, most: usize) -> &mut Html {
        self.line(&redact::excerpt(text, Cut::Chars(most)))
    }

    /// [`Html::text`] of at most this many bytes.
    pub(crate) fn cut(&mut self, text: &str, most: usize) -> &mut Html {
        self.text(&redact::excerpt(text, Cut::Bytes(most)))
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: impl Into<u64>) -> &mut Html {
        // Writing to memory cannot fail.
        let _ = write!(self.0, "{}", number.into());
        self
    }

    /// Adds a piece.
    pub(crate) fn piece(&mut self, piece: &Html) -> &mut Html {
        self.0.push_str(&piece.0);
        self
    }

    /// Lets a drawing add what it has escaped itself.
    pub(super) fn drawing(&mut self, draw: impl FnOnce(&mut String)) -> &mut Html {
        draw(&mut self.0);
        self
    }

    /// The text of the piece.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}
