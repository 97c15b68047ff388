//! Where secrets stand in a text.
//!
//! Only the first bytes of each form are searched for, by one automaton for all; the rest is compared where they
//! were met. So a long secret costs no states, and it is known how much of a secret stands at a place that was
//! cut. What begins elsewhere in a secret is found by `fragments`.

use super::canonical::{canonical, places};
use super::forms::{Forms, SHORTEST};
use super::fragments::{Borders, Fragments, broken_escape, ellipsis};
use aho_corasick::{AhoCorasick, MatchKind};
use secrecy::{ExposeSecret, SecretSlice};
use std::ops::Range;

/// Bytes of a secret at the end of a text that nobody is known to have cut, from which on it counts as cut there.
const TAIL: usize = 12;

/// What is known about the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// As far as we know it is all there.
    Whole,
    /// It was cut: what a secret begins with is a part of one.
    Cut,
}

/// Looks for forms.
#[derive(Default)]
pub(super) struct Finder {
    canonical: Needles,
    verbatim: Needles,
    fragments: Fragments,
}

#[derive(Default)]
struct Needles {
    /// Finds the heads of the needles; its patterns are theirs by index.
    heads: Option<AhoCorasick>,
    needles: Vec<SecretSlice<u8>>,
}

impl Finder {
    pub(super) fn new(forms: Forms) -> Finder {
        Finder {
            fragments: Fragments::new(&forms.keys),
            canonical: Needles::new(forms.canonical),
            verbatim: Needles::new(forms.verbatim),
        }
    }

    /// The places of secrets, in order and apart from each other.
    pub(super) fn find(&self, text: &str, tail: Tail) -> Vec<Range<usize>> {
        let mut found = self.verbatim.find(text.as_bytes(), tail);
        let plain = canonical(text.as_bytes());
        let mut hits = self.canonical.find(&plain, tail);
        hits.extend(self.fragments.find(&plain, Borders::Cuts));
        if !hits.is_empty() {
            merge(&mut hits);
            // Merged places are apart, so these rise; the first and the last byte of a place may be one.
            let mut wanted: Vec<usize> = hits.iter().flat_map(|hit| [hit.start, hit.end - 1]).collect();
            wanted.dedup();
            let places = places(text.as_bytes(), &wanted);
            let at = |index: usize| wanted.binary_search(&index).ok().and_then(|at| places.get(at)).copied();
            // Every wanted byte is in the text that they were found in.
            found.extend(hits.iter().filter_map(|hit| Some(at(hit.start)?.0..at(hit.end - 1)?.1)));
        }
        for place in &mut found {
            *place = text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end);
        }
        merge(&mut found);
        found
    }

    /// True when a text of several parts may hold a secret in one of them.
    pub(super) fn may_find(&self, text: &str) -> bool {
        let stops = |needles: &Needles, text: &[u8]| needles.any(text);
        let plain = canonical(text.as_bytes());
        stops(&self.verbatim, text.as_bytes())
            || stops(&self.canonical, &plain)
            || !self.fragments.find(&plain, Borders::Quotes).is_empty()
    }
}

impl Needles {
    fn new(mut needles: Vec<Vec<u8>>) -> Needles {
        needles.sort();
        needles.dedup();
        if needles.is_empty() {
            return Needles::default();
        }
        let heads = needles.iter().map(|needle| &needle[..SHORTEST.min(needle.len())]);
        // Every form has at least one byte and they are few, which is all that the builder can refuse.
        let heads = AhoCorasick::builder().match_kind(MatchKind::Standard).build(heads).ok();
        Needles { heads, needles: needles.into_iter().map(SecretSlice::from).collect() }
    }

    fn find(&self, text: &[u8], tail: Tail) -> Vec<Range<usize>> {
        let least = if tail == Tail::Cut { SHORTEST } else { TAIL };
        let ends = |rest: &[u8], shown: usize| ellipsis(rest) > 0 || (rest.is_empty() && shown >= least);
        self.candidates(text).filter_map(|hit| hit.place(text, ends)).collect()
    }

    /// A quotation mark may end the part.
    fn any(&self, text: &[u8]) -> bool {
        let ends = |rest: &[u8], shown: usize| {
            ellipsis(rest) > 0 || (shown >= TAIL && rest.first().is_none_or(|&byte| byte == b'"'))
        };
        self.candidates(text).any(|hit| hit.place(text, ends).is_some())
    }

    /// Where needles begin, and how much of them is there.
    fn candidates<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Occurrence> + 't {
        let heads = self.heads.iter().flat_map(move |heads| heads.find_overlapping_iter(text));
        heads.map(move |head| {
            let needle = self.needles[head.pattern().as_usize()].expose_secret();
            let rest = &text[head.start()..];
            let same = needle.iter().zip(rest).take_while(|(left, right)| left == right).count();
            Occurrence { start: head.start(), end: head.start() + same, needle: needle.len() }
        })
    }
}

struct Occurrence {
    start: usize,
    end: usize,
    /// Bytes of the whole needle.
    needle: usize,
}

impl Occurrence {
    /// The place of the secret, if it is all there or was cut where it ends.
    fn place(&self, text: &[u8], ends: impl Fn(&[u8], usize) -> bool) -> Option<Range<usize>> {
        let shown = self.end - self.start;
        if shown == self.needle {
            return Some(self.start..self.end);
        }
        let rest = &text[self.end..];
        // A cut may go through an escape.
        [0, broken_escape(rest)]
            .into_iter()
            .find(|&broken| ends(&rest[broken..], shown))
            .map(|broken| self.start..self.end + broken)
    }
}

/// Joins places that touch.
fn merge(found: &mut Vec<Range<usize>>) {
    found.sort_by_key(|place| place.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for place in found.drain(..) {
        match merged.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    *found = merged;
}
