//! Counts texts that a program failed to parse as JSON (it got nil for each), so that the result can carry a warning
//! about them.

use crate::fault::BoundedText;

/// Texts that were parsed as JSON and are invalid. The program got nil, which it may have passed on unnoticed.
#[derive(Default)]
pub struct Remarks {
    not_json: u64,
    first: Option<BoundedText>,
}

impl Remarks {
    /// Counts a text that is not JSON.
    pub(crate) fn not_json(&mut self, why: BoundedText) {
        self.not_json += 1;
        self.first.get_or_insert(why);
    }

    /// There are no remarks.
    pub fn is_empty(&self) -> bool {
        self.not_json == 0
    }

    /// Takes the remarks.
    pub fn take(&mut self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let Remarks { not_json, first } = std::mem::take(self);
        let first = first?;
        let times = if not_json == 1 { String::new() } else { format!("; {not_json} texts in all") };
        Some(format!("json: nil stands for a text that is not JSON ({first}{times})."))
    }
}
