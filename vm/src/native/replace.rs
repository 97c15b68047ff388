//! Replaces the matches of a regex in a string by what a function of the program returns for them, as a resumable state
//! machine.

use super::Action;
use crate::context::Context;
use crate::fault::Result;
use crate::print;
use crate::value::Value;
use crate::value::build::Text;
use crate::value::regex::RegexNode;
use crate::value::string::StringNode;
use ptc_regex::after;
use std::rc::Rc;

/// The machine.
pub struct Replace {
    text: Rc<StringNode>,
    regex: Rc<RegexNode>,
    function: Value,
    first_only: bool,
    /// The result so far: the text up to `copied`, with replacements.
    result: Text,
    copied: usize,
    /// Start of the next search; beyond the text if there is none.
    at: usize,
}

impl Replace {
    /// Replaces matches in `text` by `(function match)`, with matches as `re-find` gives them.
    pub fn new(text: Rc<StringNode>, regex: Rc<RegexNode>, function: Value, first_only: bool) -> Replace {
        Replace { text, regex, function, first_only, result: Text::new(), copied: 0, at: 0 }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(replacement) = returned {
            print::write_display(cx, &mut self.result, &replacement)?;
            if self.first_only {
                self.at = usize::MAX;
            }
        }
        let text = self.text.clone();
        #[expect(clippy::disallowed_methods, reason = "each search pays for what it looks at")]
        let text = text.as_str();
        let found = if self.at <= text.len() { cx.find_match(&self.regex, text, self.at)? } else { None };
        let span = found.as_ref().and_then(|spans| spans.first().copied().flatten());
        match (found, span) {
            (Some(spans), Some((start, end))) => {
                self.result.push(cx, &text[self.copied..start])?;
                self.copied = end;
                self.at = after(text, start, end);
                let value = self.regex.match_value(cx, text, &spans)?;
                Ok(Action::Call1(self.function.clone(), value))
            }
            _ => {
                self.result.push(cx, &text[self.copied..])?;
                Ok(Action::Return(std::mem::replace(&mut self.result, Text::new()).into_value()))
            }
        }
    }
}
