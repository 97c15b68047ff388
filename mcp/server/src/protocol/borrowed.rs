//! Serde helpers that parse protocol messages strictly and with few copies: borrow strings and raw JSON, accept only
//! objects (no arrays) for structs, and distinguish null from an absent key.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A string, borrowed where it has no escapes. (An `Option<Cow<str>>` in a derived struct is never borrowed.)
#[derive(Clone, Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The validated text of one JSON value.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The value as a string, if it is one.
    pub fn string(self) -> Option<Cow<'a, str>> {
        serde_json::from_str::<Text<'_>>(self.0).ok().map(|text| text.0)
    }

    /// The text, without whitespace before or after it.
    pub fn get(self) -> &'a str {
        self.0
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(value: &'a RawValue) -> Raw<'a> {
        Raw(value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw<'a>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Raw::from)
    }
}

/// Accepts an object only. A derived struct also accepts an array of its fields.
#[derive(Debug, Default)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Keeps an explicit null apart from an absent key, which takes a default.
///
/// # Errors
/// Invalid JSON.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}
