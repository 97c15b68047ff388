//! Finds the values at a JSON pointer in the arguments of a tool call, for the conditions of policy rules and for
//! limits that sum an argument over many calls, such as an amount a day.
//!
//! Only values on the way of a pointer are read, each at most once for all pointers. A parsed tree would hide two
//! things that servers may see: a key that occurs twice, and a key in another case. Here all of them count as values at
//! the pointer.

use super::{ALL_TEXTS, Pointer};
use crate::policy::look_alikes::is_same_key;
use ptc_base::secrets::names::is_secret;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

/// JSON object text, which is read when a condition asks for it.
pub(in crate::policy) struct Arguments<'a> {
    root: Node<'a>,
    /// Names of arguments that the call also has, unless the text gives them, with values that are not known.
    hidden: Vec<&'a str>,
}

/// A value in the arguments. What is below it is read when a pointer goes on there.
pub(in crate::policy) struct Node<'a> {
    /// JSON text without blanks around it.
    text: &'a str,
    below: OnceCell<Option<Parts<'a>>>,
    json: OnceCell<Option<Box<Json>>>,
}

/// What is below a value.
enum Parts<'a> {
    Members(Vec<(Cow<'a, str>, Node<'a>)>),
    Items(Vec<Node<'a>>),
    /// `null` stands for an absent value.
    Absent,
    /// A text, a number or a truth value.
    Nothing,
}

/// Most pointers have one value, and a policy may have many conditions on it.
pub(in crate::policy) type Values<T> = SmallVec<[T; 2]>;

/// The values at a pointer.
pub(in crate::policy) struct Found<'t, 'a> {
    pub(in crate::policy) values: Values<&'t Node<'a>>,
    /// Servers that tell the cases of names apart, and servers that do not, both reach a value: no object on the way has
    /// the next name in another case only, and no way that begins with another case is the only one that goes on.
    pub(in crate::policy) is_exact: bool,
    /// The pointer goes on below a value that has no members: a text, a number, a truth value, or a list if the segment
    /// is no index; or it leads to an argument that is hidden. What a server reads there is not known.
    pub(in crate::policy) is_blocked: bool,
    /// A value on the way lacks the next segment.
    pub(in crate::policy) is_incomplete: bool,
    /// A name on the way is in another case.
    has_alike: bool,
    /// A value on the way leads nowhere, also where any name would do.
    has_dead_end: bool,
}

impl<'a> Arguments<'a> {
    pub(in crate::policy) fn new(text: &'a str) -> Arguments<'a> {
        Arguments { root: Node::new(text.trim_ascii()), hidden: Vec::new() }
    }

    /// The same, with arguments of which only the names are known.
    pub(in crate::policy) fn with_hidden(self, hidden: Vec<&'a str>) -> Arguments<'a> {
        Arguments { hidden, ..self }
    }

    /// The values at a pointer. `None`: the arguments cannot be read.
    pub(in crate::policy) fn find(&self, pointer: &Pointer) -> Option<Found<'_, 'a>> {
        let values = Values::from_iter([&self.root]);
        let is_blocked = pointer.segments.first().is_some_and(|segment| self.hides(segment));
        let mut found = Found {
            values,
            is_exact: true,
            is_blocked,
            is_incomplete: false,
            has_alike: false,
            has_dead_end: false,
        };
        for segment in &pointer.segments {
            found.go_on(segment)?;
        }
        found.is_exact &= !(found.has_alike && found.has_dead_end);
        Some(found)
    }
}

impl Arguments<'_> {
    /// Whether the first segment of a pointer leads to an argument that is not known. What has the name of a secret is a
    /// credential, and no concern of a pointer that does not name it.
    fn hides(&self, segment: &str) -> bool {
        let is_meant = |name: &str| match segment {
            "*" | ALL_TEXTS => !is_secret(name),
            _ => is_same_key(name, segment),
        };
        self.hidden.iter().any(|name| is_meant(name) && !self.gives(name))
    }

    fn gives(&self, name: &str) -> bool {
        let Some(Parts::Members(members)) = self.root.below() else { return false };
        members.iter().any(|(known, value)| known == name && value.text != "null")
    }
}

impl<'a> Node<'a> {
    fn new(text: &'a str) -> Node<'a> {
        Node { text, below: OnceCell::new(), json: OnceCell::new() }
    }

    /// `None`: it cannot be read.
    pub(in crate::policy) fn json(&self) -> Option<&Json> {
        self.json.get_or_init(|| serde_json::from_str(self.text).ok().map(Box::new)).as_deref()
    }

    fn is_text(&self) -> bool {
        self.text.starts_with('"')
    }

    fn below(&self) -> Option<&Parts<'a>> {
        let text = self.text;
        let read = || match text.as_bytes().first() {
            Some(b'{') => {
                let members: Members<'a> = serde_json::from_str(text).ok()?;
                Some(Parts::Members(members.0))
            }
            Some(b'[') => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                Some(Parts::Items(items.into_iter().map(|item| Node::new(item.get())).collect()))
            }
            // Anything else that is no JSON decides nothing.
            Some(b'n') if text == "null" => Some(Parts::Absent),
            _ => Some(Parts::Nothing),
        };
        self.below.get_or_init(read).as_ref()
    }
}

impl<'t, 'a> Found<'t, 'a> {
    /// Takes one more segment of a pointer. `None`: a value cannot be read.
    fn go_on(&mut self, segment: &str) -> Option<()> {
        if segment == ALL_TEXTS {
            return self.go_down();
        }
        let is_any = segment == "*";
        let mut next = Values::<&'t Node<'a>>::new();
        for value in std::mem::take(&mut self.values) {
            let before = next.len();
            match value.below()? {
                Parts::Members(members) => {
                    let mut is_spelled = is_any;
                    for (name, value) in members {
                        if is_any || is_same_key(name, segment) {
                            is_spelled |= name == segment;
                            self.has_alike |= !is_any && name != segment;
                            next.push(value);
                        }
                    }
                    self.is_exact &= is_spelled || next.len() == before;
                }
                Parts::Items(items) => match segment.parse::<usize>() {
                    _ if is_any => next.extend(items),
                    Ok(index) => next.extend(items.get(index)),
                    Err(_) => self.is_blocked = true,
                },
                Parts::Absent => self.is_incomplete = true,
                Parts::Nothing => self.is_blocked = true,
            }
            self.is_incomplete |= !is_any && next.len() == before;
            self.has_dead_end |= next.len() == before;
        }
        self.values = next;
        Some(())
    }
}

impl Found<'_, '_> {
    /// Takes all texts at and below the values, at any depth.
    fn go_down(&mut self) -> Option<()> {
        let mut texts = Values::new();
        for start in std::mem::take(&mut self.values) {
            let (before, mut open) = (texts.len(), Values::from_iter([start]));
            while let Some(value) = open.pop() {
                match value.below()? {
                    Parts::Members(members) => open.extend(members.iter().map(|(_, value)| value)),
                    Parts::Items(items) => open.extend(items),
                    Parts::Absent => {}
                    Parts::Nothing if value.is_text() => texts.push(value),
                    Parts::Nothing => {}
                }
            }
            self.has_dead_end |= texts.len() == before;
        }
        self.values = texts;
        Some(())
    }
}

/// The members of an object in order, with duplicates.
struct Members<'a>(Vec<(Cow<'a, str>, Node<'a>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<_, &RawValue>()? {
                    members.push((name, Node::new(value.get())));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A name, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
