//! Iterates over syntax trees (forms) and all forms nested in them, and charges one step for each form to the work
//! budget of the compilation, which ends the iteration when it is used up.

use super::Form;
use crate::meter::{List, Meter};

/// The forms and all forms inside them, a step each; ends early if the budget is used up.
pub(crate) fn walk<'m, 'a, 'f>(meter: &'m Meter<'a>, forms: &'f [Form<'f>]) -> Walk<'m, 'a, 'f> {
    let mut waiting = List::with_capacity_in(8, meter.arena());
    waiting.push(forms);
    Walk { meter, waiting }
}

/// The iterator of [`walk`].
pub(crate) struct Walk<'m, 'a, 'f> {
    meter: &'m Meter<'a>,
    /// The rest of each form around the next one; forms nest at most as deep as the reader allows.
    waiting: List<'a, &'f [Form<'f>]>,
}

impl<'f> Iterator for Walk<'_, '_, 'f> {
    type Item = &'f Form<'f>;

    fn next(&mut self) -> Option<&'f Form<'f>> {
        loop {
            let forms = self.waiting.last_mut()?;
            let Some((first, rest)) = forms.split_first() else {
                self.waiting.pop();
                continue;
            };
            *forms = rest;
            self.meter.step().ok()?;
            let inside = first.children();
            if !inside.is_empty() {
                self.waiting.push(inside);
            }
            return Some(first);
        }
    }
}
