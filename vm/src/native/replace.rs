//! `replace` of the matches of a regex by what a function makes of them.

use super::Action;
use crate::context::Context;
use crate::fault::Result;
use crate::print::{self, append};
use crate::regex::{RegexNode, after};
use crate::string::StringNode;
use crate::value::Value;
use std::rc::Rc;

/// The machine.
pub struct Replace {
    text: Rc<StringNode>,
    regex: Rc<RegexNode>,
    function: Value,
    first_only: bool,
    /// The result so far: the text up to `copied` with its replacements.
    result: Rc<StringNode>,
    copied: usize,
    /// Where the next search begins; beyond the text when there is none.
    at: usize,
}

impl Replace {
    /// Replaces matches in `text` by `(function match)`, where a match is as in `re-find`.
    pub fn new(text: Rc<StringNode>, regex: Rc<RegexNode>, function: Value, first_only: bool) -> Replace {
        Replace { text, regex, function, first_only, result: StringNode::new(""), copied: 0, at: 0 }
    }

    fn append(&mut self, cx: &mut Context, more: &str) -> Result<()> {
        let result = std::mem::replace(&mut self.result, self.text.clone());
        self.result = append(cx, result, more)?;
        Ok(())
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        if let Some(replacement) = returned {
            let replacement = print::display(cx, &replacement)?;
            self.append(cx, &replacement)?;
            if self.first_only {
                self.at = usize::MAX;
            }
        }
        let text = self.text.clone();
        let text = text.as_str();
        let found = if self.at <= text.len() { self.regex.find(cx, text, self.at)? } else { None };
        let span = found.as_ref().and_then(|spans| spans.first().copied().flatten());
        match (found, span) {
            (Some(spans), Some((start, end))) => {
                self.append(cx, &text[self.copied..start])?;
                self.copied = end;
                self.at = after(text, start, end);
                let value = self.regex.match_value(cx, text, &spans)?;
                Ok(Action::Call1(self.function.clone(), value))
            }
            _ => {
                self.append(cx, &text[self.copied..])?;
                Ok(Action::Return(Value::Str(self.result.clone())))
            }
        }
    }
}
