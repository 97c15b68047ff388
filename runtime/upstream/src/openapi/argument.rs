//! Reads the arguments of a call as text: a number keeps its digits, an object its order, and what becomes a body is not
//! read at all.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A value of an argument that becomes a part of a URL. Its parts are read when they are written.
#[derive(Debug)]
pub(super) enum Argument<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(String),
    List(Vec<&'a RawValue>),
    Map(ArgumentMap<'a>),
}

impl<'a> Argument<'a> {
    /// Reads the outermost level of a JSON text. A text with an unpaired surrogate cannot be read.
    pub(super) fn read(raw: &'a RawValue) -> Result<Argument<'a>, serde_json::Error> {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str(text).map(Argument::Text),
            Some(b'[') => serde_json::from_str(text).map(Argument::List),
            Some(b'{') => serde_json::from_str(text).map(Argument::Map),
            Some(b't') => Ok(Argument::Bool(true)),
            Some(b'f') => Ok(Argument::Bool(false)),
            Some(b'n') | None => Ok(Argument::Null),
            Some(_) => Ok(Argument::Number(text)),
        }
    }
}

/// Members of an object in their order; of equal names the last one counts.
#[derive(Debug, Default)]
pub(super) struct ArgumentMap<'a>(Vec<(String, &'a RawValue)>);

impl<'a> ArgumentMap<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Sets a member.
    pub(super) fn set(&mut self, name: &str, value: &'a RawValue) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Keeps the members for which this is true.
    pub(super) fn retain(&mut self, keep: impl Fn(&str, &RawValue) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }
}

impl<'de> Deserialize<'de> for ArgumentMap<'de> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<ArgumentMap<'de>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = ArgumentMap<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<ArgumentMap<'de>, A::Error> {
                let mut places = std::collections::HashMap::new();
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some((name, value)) = given.next_entry::<String, &'de RawValue>()? {
                    let known = places.get(&name).and_then(|&at: &usize| members.get_mut(at));
                    match known {
                        Some(known) => known.1 = value,
                        None => {
                            places.insert(name.clone(), members.len());
                            members.push((name, value));
                        }
                    }
                }
                Ok(ArgumentMap(members))
            }
        }
        object.deserialize_map(Members)
    }
}
