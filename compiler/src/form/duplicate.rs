//! Finds repeated keys in map literals and repeated elements in set literals, comparing them by structure.

use crate::form::{Form, FormKind, Forms};
use crate::meter::Meter;
use crate::names::Name;
use std::ops::Range;

/// Most elements that are compared in pairs.
const FEW: usize = 12;

/// [`find_duplicate`] for a few plain elements, as in most literals; `None` if some element is not plain.
fn find_among_few<'a>(items: Forms<'a>, step: usize) -> Option<Option<&'a Form<'a>>> {
    let mut repeated = None;
    for (at, form) in items.iter().enumerate().step_by(step) {
        if !is_plain(form) {
            return None;
        }
        if repeated.is_none() && items[..at].iter().step_by(step).any(|earlier| earlier.kind == form.kind) {
            repeated = Some(form);
        }
    }
    Some(repeated)
}

/// True for keywords that differ in the low bits of their numbers, as in nearly all map literals.
fn are_different_keywords(items: &[Form<'_>], step: usize) -> bool {
    let mut seen = 0_u64;
    items.iter().step_by(step).all(|form| {
        let FormKind::Keyword(name) = form.kind else { return false };
        let bit = 1 << (name.number() % u64::BITS);
        let is_new = seen & bit == 0;
        seen |= bit;
        is_new
    })
}

fn is_plain(form: &Form<'_>) -> bool {
    matches!(
        form.kind,
        FormKind::Keyword(_)
            | FormKind::Symbol(_)
            | FormKind::Str(_)
            | FormKind::Int(_)
            | FormKind::Nil
            | FormKind::Bool(_)
    )
}

/// The first form that repeats an earlier one. `step` is 2 for a map (keys only) and 1 for a set.
pub(crate) fn find_duplicate<'a>(meter: &Meter<'_>, items: Forms<'a>, step: usize) -> Option<&'a Form<'a>> {
    if items.len() <= step {
        return None;
    }
    if are_different_keywords(items, step) {
        return None;
    }
    if items.len() <= FEW * step
        && let Some(repeated) = find_among_few(items, step)
    {
        return repeated;
    }
    // Encoded and sorted instead of compared in pairs: a literal may have 100,000 elements.
    let mut texts = Texts::default();
    for (index, form) in items.iter().enumerate().step_by(step) {
        texts.add(index, |out| encode(meter, form, out));
    }
    let held = texts.bytes();
    meter.hold(held);
    texts.sort();
    meter.release(held);
    let repeated = texts.parts.windows(2).filter(|pair| texts.text(&pair[0]) == texts.text(&pair[1]));
    items.get(repeated.map(|pair| pair[1].0).min()?)
}

/// Numbered texts in one buffer.
#[derive(Default)]
struct Texts {
    buffer: Vec<u8>,
    parts: Vec<(usize, Range<usize>)>,
}

impl Texts {
    /// Adds the output of `write`, unless that returns false.
    fn add(&mut self, number: usize, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.buffer.len();
        let is_there = write(&mut self.buffer);
        match is_there {
            true => self.parts.push((number, start..self.buffer.len())),
            false => self.buffer.truncate(start),
        }
        is_there
    }

    fn text(&self, (_, range): &(usize, Range<usize>)) -> &[u8] {
        &self.buffer[range.clone()]
    }

    /// Sorts by text, and equal texts by number.
    fn sort(&mut self) {
        let buffer = &self.buffer;
        self.parts.sort_unstable_by(|(a, first), (b, second)| {
            buffer[first.clone()].cmp(&buffer[second.clone()]).then(a.cmp(b))
        });
    }

    fn bytes(&self) -> usize {
        self.buffer.capacity() + self.parts.capacity() * size_of::<(usize, Range<usize>)>()
    }
}

/// Writes a text that is equal for structurally equal forms; false if the form equals no other
/// (functions and regexes). The nesting limit of the reader bounds the recursion.
fn encode(meter: &Meter<'_>, form: &Form<'_>, out: &mut Vec<u8>) -> bool {
    if meter.step().is_err() {
        return false;
    }
    match form.kind {
        FormKind::Nil => out.push(b'n'),
        FormKind::Bool(value) => out.push(if value { b't' } else { b'f' }),
        FormKind::Int(value) => {
            out.push(b'i');
            out.extend_from_slice(&value.to_le_bytes());
        }
        FormKind::BigInt(text) => encode_text(b'I', text, out),
        FormKind::Float(value) => {
            out.push(b'd');
            let value = if value == 0.0 { 0.0 } else { value };
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        FormKind::Str(text) => encode_text(b'"', text, out),
        FormKind::Keyword(name) => encode_name(b':', &name, out),
        FormKind::Symbol(name) => encode_name(b's', &name, out),
        FormKind::Quote(name) => encode_name(b'q', &name, out),
        FormKind::VarQuote(name) => encode_name(b'v', &name, out),
        FormKind::Regex(_) | FormKind::ShortFn(_) | FormKind::Thread { .. } => return false,
        FormKind::List(items) | FormKind::Vector(items) => {
            out.push(b'(');
            for item in items {
                if !encode(meter, item, out) {
                    return false;
                }
            }
            out.push(b')');
        }
        FormKind::Map(items) => return encode_unordered(meter, b'{', items, 2, out),
        FormKind::Set(items) => return encode_unordered(meter, b'#', items, 1, out),
    }
    true
}

fn encode_unordered(meter: &Meter<'_>, mark: u8, items: &[Form<'_>], step: usize, out: &mut Vec<u8>) -> bool {
    let mut texts = Texts::default();
    for (index, entry) in items.chunks(step).enumerate() {
        if !texts.add(index, |out| entry.iter().all(|form| encode(meter, form, out))) {
            return false;
        }
    }
    texts.sort();
    out.push(mark);
    texts.parts.iter().for_each(|part| out.extend_from_slice(texts.text(part)));
    out.push(b')');
    true
}

fn encode_text(mark: u8, text: &str, out: &mut Vec<u8>) {
    out.push(mark);
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn encode_name(mark: u8, name: &Name, out: &mut Vec<u8>) {
    out.push(mark);
    out.extend_from_slice(&name.number().to_le_bytes());
}
