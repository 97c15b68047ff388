//! Finds known secrets in a text, in any of their encodings, so that they can be redacted.
//!
//! One automaton searches for the first bytes of all forms; the rest is compared where these were found. So a
//! long secret needs no more states, and where a text was cut, it is known how much of a secret is there.
//! Parts from the middle of a secret are found by `fragments`.

use super::canonical::{canonical, ranges_of};
use super::forms::{Forms, SHORTEST};
use super::fragments::{Borders, Fragments, broken_escape, ellipsis};
use aho_corasick::{AhoCorasick, MatchKind};
use secrecy::{ExposeSecret, SecretSlice};
use std::ops::Range;

/// A text that may have been cut ends with a secret's beginning if at least this many bytes match.
const TAIL: usize = 12;

/// What is known about the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// It is complete, as far as known.
    Whole,
    /// It was cut: the beginning of a secret at its end is a part of that secret.
    Cut,
}

/// Searches for forms of secrets.
#[derive(Default)]
pub(super) struct Finder {
    canonical: Needles,
    verbatim: Needles,
    fragments: Fragments,
}

#[derive(Default)]
struct Needles {
    /// Finds the first bytes of the needles; pattern and needle have the same index.
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

    /// The ranges of secrets, in order and disjoint.
    pub(super) fn find(&self, text: &str, tail: Tail) -> Vec<Range<usize>> {
        let mut found = self.verbatim.find(text.as_bytes(), tail);
        let plain = canonical(text.as_bytes());
        let mut hits = self.canonical.find(&plain, tail);
        hits.extend(self.fragments.find(&plain, Borders::Cuts));
        if !hits.is_empty() {
            merge(&mut hits);
            // Merged ranges are disjoint, so these indices ascend; the first and the last byte of a range may
            // be the same.
            let mut wanted: Vec<usize> = hits.iter().flat_map(|hit| [hit.start, hit.end - 1]).collect();
            wanted.dedup();
            let places = ranges_of(text.as_bytes(), &wanted);
            let at = |index: usize| wanted.binary_search(&index).ok().and_then(|at| places.get(at)).copied();
            // Every wanted byte exists: the ranges come from this text.
            found.extend(hits.iter().filter_map(|hit| Some(at(hit.start)?.0..at(hit.end - 1)?.1)));
        }
        for place in &mut found {
            *place = text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end);
        }
        merge(&mut found);
        found
    }

    /// True when a text of several parts may contain a secret in one of them.
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
        // The builder refuses only empty or too many patterns: every form has at least one byte, and there
        // are few.
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

    /// Where needles begin, and how many of their bytes are there.
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
    /// Length of the whole needle.
    needle: usize,
}

impl Occurrence {
    /// The range of the secret, if it is complete or cut at its end.
    fn place(&self, text: &[u8], ends: impl Fn(&[u8], usize) -> bool) -> Option<Range<usize>> {
        let shown = self.end - self.start;
        if shown == self.needle {
            return Some(self.start..self.end);
        }
        let rest = &text[self.end..];
        // The cut may be in the middle of an escape.
        [0, broken_escape(rest)]
            .into_iter()
            .find(|&broken| ends(&rest[broken..], shown))
            .map(|broken| self.start..self.end + broken)
    }
}

/// Joins ranges that touch.
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
