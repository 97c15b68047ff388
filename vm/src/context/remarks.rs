//! What a reader of the result should know although the program went on.

use crate::fault::BoundedText;

/// Texts that were read as JSON and are none. The program saw nil, which it may have passed on without a look.
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

    /// Nothing to say.
    pub fn is_empty(&self) -> bool {
        self.not_json == 0
    }

    /// Takes what there is to say.
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
