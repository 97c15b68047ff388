//! Finds parts of a large JSON result in a file by a path, in a subset of JSONPath: `$.items[0].name`, `$['a b']`,
//! `$[2:5].id`, `$.rows[*].n`.
//!
//! A path has those steps of JSONPath (RFC 9535) that a single pass can follow without storing anything:
//! members by name, and items by number, by range or all. There are no filters, no recursive descent, and no
//! indices from the end: a program filters with its own language. Among equal names, the first counts when
//! one value is sought, and all count in a list.

use super::cursor::Cursor;
use crate::spill::look::LookError;
use crate::spill::store::Spilled;
use crate::tasks::StopFlag;
use std::ops::Range;

/// Size of a remembered range.
const PLACE_BYTES: u64 = size_of::<Range<u64>>() as u64;

/// Limit of steps in a path.
const STEPS: usize = 32;

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Member(String),
    Item(u64),
    /// A range of items, the end exclusive.
    Items(Range<u64>),
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<JsonPath, String> {
        const FORM: &str = "it is written like $.items[0].name, $['a b'], $[2:5] or $.rows[*].n, without \
                            filters, `..`, `.*` and numbers from the end";
        let wrong = || format!("the path {text:?} cannot be read: {FORM}");
        let mut rest = text.trim().strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == STEPS {
                return Err(format!("the path has more than {STEPS} steps"));
            }
            let step;
            let is_plain = rest.starts_with('.');
            (step, rest) = match rest.strip_prefix('.') {
                Some(name) => {
                    let end = name.find(['.', '[']).unwrap_or(name.len());
                    let (name, after) = name.split_at(end);
                    (PathStep::Member(name.to_owned()), after)
                }
                None => {
                    let inner = rest.strip_prefix('[').ok_or_else(wrong)?;
                    match inner.strip_prefix(['\'', '"']) {
                        Some(name) => {
                            let quote = if inner.starts_with('"') { "\"]" } else { "']" };
                            let (name, after) = name.split_once(quote).ok_or_else(wrong)?;
                            (PathStep::Member(name.to_owned()), after)
                        }
                        None => {
                            let (number, after) = inner.split_once(']').ok_or_else(wrong)?;
                            (PathStep::number(number.trim()).ok_or_else(wrong)?, after)
                        }
                    }
                }
            };
            if matches!(&step, PathStep::Member(name) if name.is_empty() || (name == "*" && is_plain)) {
                return Err(wrong());
            }
            steps.push(step);
        }
        Ok(JsonPath(steps))
    }

    /// It may match more than one value, so its result is a list.
    fn gives_list(&self) -> bool {
        self.0.iter().any(|step| matches!(step, PathStep::Items(_)))
    }

    /// What it matches, as JSON text of at most `most` bytes; `None` for nothing. It takes one pass, which
    /// ends after the last possible match.
    ///
    /// # Errors
    /// The match is longer, or the file cannot be read.
    pub(crate) fn find(
        &self,
        spilled: &Spilled,
        most_bytes: usize,
        stop: &StopFlag,
    ) -> Result<Option<Vec<u8>>, LookError> {
        let mut cursor = Cursor::new(&spilled.file);
        cursor.stop = stop.clone();
        let mut search = PathSearch {
            steps: &self.0,
            found: Vec::new(),
            bytes: 0,
            goes_on: false,
            most: most_bytes as u64,
            is_done: false,
        };
        // An early end is recorded in the search, and invalid JSON ends it as well.
        search.walk(&mut cursor, 0, !self.gives_list());
        if let Some(error) = cursor.fault.take() {
            return Err(LookError::Io(error.to_string()));
        }
        if search.bytes > search.most {
            return Err(LookError::Large(most_bytes as u64));
        }
        if !self.gives_list() && search.found.is_empty() {
            return Ok(None);
        }
        let [open, close] = if self.gives_list() { ["[", "]"] } else { [""; 2] };
        let mut text = Vec::from(open);
        for (at, place) in search.found.into_iter().enumerate() {
            text.extend_from_slice(if at > 0 { b"," } else { b"" });
            let copied = cursor.copy(place, |part| -> Result<(), crate::spill::SpillError> {
                text.extend_from_slice(part);
                Ok(())
            });
            copied.map_err(|error| LookError::Io(error.to_string()))?;
        }
        text.extend_from_slice(close.as_bytes());
        Ok(Some(text))
    }
}

impl PathStep {
    /// Parses `2`, `2:5`, `2:`, `:5`, `*`.
    fn number(text: &str) -> Option<PathStep> {
        let bound = |text: &str, open: u64| match text.trim() {
            "" => Some(open),
            digits => digits.parse().ok(),
        };
        match text.split_once(':') {
            Some((from, to)) => Some(PathStep::Items(bound(from, 0)?..bound(to, u64::MAX)?)),
            None if text == "*" => Some(PathStep::Items(0..u64::MAX)),
            None => text.parse().ok().map(PathStep::Item),
        }
    }
}

struct PathSearch<'p> {
    steps: &'p [PathStep],
    found: Vec<Range<u64>>,
    /// The next match lies in the same list, directly after the last one.
    goes_on: bool,
    /// Size of the matches, or of their remembered ranges.
    bytes: u64,
    most: u64,
    /// Nothing more can match, or the size limit was exceeded.
    is_done: bool,
}

impl PathSearch<'_> {
    /// Goes through a value. `is_only`: nothing outside it can match. `None` ends the search.
    fn walk(&mut self, cursor: &mut Cursor<'_>, at: usize, is_only: bool) -> Option<()> {
        let steps = self.steps;
        match (steps.get(at), cursor.token()?) {
            (None, _) => {
                let place = cursor.value()?;
                match self.found.last_mut().filter(|_| self.goes_on) {
                    // Adjacent items are one part of the text, commas included.
                    Some(last) => {
                        self.bytes += place.end - last.end;
                        last.end = place.end;
                    }
                    None => {
                        // A remembered range takes memory as well.
                        self.bytes += (place.end - place.start + 1).max(PLACE_BYTES);
                        self.found.push(place);
                    }
                }
                self.is_done |= is_only || self.bytes > self.most;
            }
            (Some(PathStep::Member(wanted)), b'{') => {
                let name = |cursor: &mut Cursor<'_>| cursor.is_name(wanted);
                cursor.members(name, |cursor, is_it| match is_it {
                    true => self.walk(cursor, at + 1, is_only),
                    false => cursor.value().map(drop),
                })?;
            }
            (Some(PathStep::Item(wanted)), b'[') => {
                self.items(cursor, at, *wanted..wanted.saturating_add(1), is_only)?
            }
            (Some(PathStep::Items(range)), b'[') => self.items(cursor, at, range.clone(), is_only)?,
            (Some(_), _) => {
                cursor.value()?;
            }
        }
        (!self.is_done).then_some(())
    }

    fn items(&mut self, cursor: &mut Cursor<'_>, at: usize, range: Range<u64>, is_only: bool) -> Option<()> {
        let mut number = 0;
        // Items after the range need not be read if nothing comes after the list.
        let is_last = at == 0;
        let is_whole = at + 1 == self.steps.len();
        let mut is_first = true;
        cursor.list(|cursor| {
            let is_wanted = range.contains(&number);
            number += 1;
            if is_wanted {
                self.goes_on = is_whole && !std::mem::take(&mut is_first);
                let walked = self.walk(cursor, at + 1, is_only);
                self.goes_on = false;
                return walked;
            }
            if is_last && number > range.end {
                self.is_done = true;
                return None;
            }
            cursor.value().map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecretRegistry;
    use crate::spill::{SpillOptions, SpillStore};

    #[test]
    fn paths_find_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let options = SpillOptions { base: folder.path().join("spill"), most_bytes: 1 << 20 };
        let store = SpillStore::open(&options, SecretRegistry::new()).unwrap();
        let text = br#"{"rows": [{"n": 1, "t": ["a", "b"]}, {"n": 2}, {"m": [3]}], "a b": {"c.d": null}, "s": "x]}"}"#;
        let kept = store.keep(text).unwrap();
        let found = |path: &str| {
            let found = JsonPath::read(path).unwrap().find(&kept, 1_000, &StopFlag::default()).unwrap();
            found.map_or("-".to_owned(), |json| {
                serde_json::from_slice::<serde_json::Value>(&json).unwrap().to_string()
            })
        };
        for (path, want) in [
            ("$.rows[0].n", "1"),
            ("$.rows[0].t[1]", "\"b\""),
            ("$.rows[*].n", "[1,2]"),
            ("$.rows[1:].n", "[2]"),
            ("$.rows[0:2].t[*]", "[\"a\",\"b\"]"),
            ("$.rows[7]", "-"),
            ("$.rows[7:9]", "[]"),
            ("$['a b']['c.d']", "null"),
            ("$.s", "\"x]}\""),
            ("$.s.t", "-"),
            ("$.absent", "-"),
            ("$.rows[2]", "{\"m\":[3]}"),
        ] {
            assert_eq!(found(path), want, "{path}");
        }
        assert!(matches!(
            JsonPath::read("$").unwrap().find(&kept, 10, &StopFlag::default()),
            Err(LookError::Large(10))
        ));
        for path in [
            "",
            "rows",
            "$rows",
            "$.",
            "$[x]",
            "$[1",
            "$..a",
            "$.*",
            "$[-1]",
            "$[-2:]",
            "$[?(@.n>1)]",
            "$[0,1]",
        ] {
            assert!(JsonPath::read(path).is_err(), "{path}");
        }
    }
}
