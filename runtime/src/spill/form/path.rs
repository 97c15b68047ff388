//! Parts of kept JSON by a path: `$.items[0].name`, `$['a b']`, `$[2:5].id`, `$.rows[*].n`.
//!
//! Of what JSONPath (RFC 9535) has, these are the steps that one pass can take without holding anything: members by name,
//! items by number, by a range or all. There are no filters, no steps to any depth, and nothing counts from the end: a
//! program filters what it has, with the language that it is written in. Of equal names the first counts where one
//! thing is looked for, and all do in a list.

use super::cursor::Cursor;
use crate::spill::look::LookError;
use crate::spill::store::Spilled;
use crate::tasks::StopFlag;
use std::ops::Range;

/// Bytes of a place that is remembered.
const PLACE_BYTES: u64 = size_of::<Range<u64>>() as u64;

/// Most steps of a path.
const STEPS: usize = 32;

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Member(String),
    Item(u64),
    /// Several items, from one up to another.
    Items(Range<u64>),
}

impl JsonPath {
    /// Reads a path.
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

    /// It may find more than one thing, so it gives a list.
    fn gives_list(&self) -> bool {
        self.0.iter().any(|step| matches!(step, PathStep::Items(_)))
    }

    /// What it finds, as JSON text of at most so many bytes; `None` for nothing. One pass, which ends with the last thing
    /// that may be found.
    ///
    /// # Errors
    /// It finds more than that, or the file cannot be read.
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
        // What ends the search early is told by the search, and JSON that is none ends it as well.
        search.walk(&mut cursor, 0, !self.gives_list());
        if let Some(error) = cursor.fault.take() {
            return Err(LookError::Io(error.to_string()));
        }
        if search.bytes > search.most {
            return Err(LookError::Large(most_bytes as u64));
        }
        let found = search.found;
        let mut text = Vec::new();
        let mut copy = |place: Range<u64>, text: &mut Vec<u8>| {
            cursor.copy(place, |part| -> Result<(), crate::spill::SpillError> {
                text.extend_from_slice(part);
                Ok(())
            })
        };
        if !self.gives_list() {
            let Some(place) = found.into_iter().next() else { return Ok(None) };
            copy(place, &mut text).map_err(|error| LookError::Io(error.to_string()))?;
            return Ok(Some(text));
        }
        text.push(b'[');
        for (at, place) in found.into_iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            copy(place, &mut text).map_err(|error| LookError::Io(error.to_string()))?;
        }
        text.push(b']');
        Ok(Some(text))
    }
}

impl PathStep {
    /// `2`, `2:5`, `2:`, `:5`, `*`.
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
    /// What is found next lies in the same list, right behind what was found last.
    goes_on: bool,
    /// Bytes of what was found, or of remembering where it is.
    bytes: u64,
    most: u64,
    /// Nothing more can be found, or too much was.
    is_done: bool,
}

impl PathSearch<'_> {
    /// Goes over a value. `is_only`: nothing outside of it can be found. `None` ends the search.
    fn walk(&mut self, cursor: &mut Cursor<'_>, at: usize, is_only: bool) -> Option<()> {
        let steps = self.steps;
        match (steps.get(at), cursor.token()?) {
            (None, _) => {
                let place = cursor.value()?;
                match self.found.last_mut().filter(|_| self.goes_on) {
                    // Items beside each other are one part of the text, commas included.
                    Some(last) => {
                        self.bytes += place.end - last.end;
                        last.end = place.end;
                    }
                    None => {
                        // A place that is remembered takes room as well.
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
        // The items behind the range need not be looked at where nothing comes after the list.
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
