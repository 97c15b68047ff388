//! Describes which servers' data (sources) each part of a tool call's arguments depends on, so that the application can
//! apply data-flow rules to the call.

use super::Sources;
use super::shadow::Shadow;

/// Where the arguments of a host call come from.
#[derive(Clone, Debug)]
pub struct CallSources {
    /// What decided that the call is made.
    pub control: Sources,
    /// Of each argument.
    pub arguments: Vec<PartSources>,
}

/// Where a value comes from, part by part.
#[derive(Clone, Debug)]
pub struct PartSources {
    /// Of the value without its parts.
    pub own: Sources,
    /// Of the value with its parts.
    pub deep: Sources,
    /// Parts by the names of keys (with `_` for `-`).
    keys: Vec<(Box<str>, PartSources)>,
    /// Items.
    items: Vec<PartSources>,
    /// Of all other parts.
    rest: Sources,
}

impl PartSources {
    pub(crate) fn of(shadow: &Shadow) -> PartSources {
        let keys = shadow.keys().iter().map(|(name, part)| ((&**name).into(), PartSources::of(part)));
        let items = shadow.known_items().iter().map(PartSources::of);
        PartSources {
            own: shadow.own,
            deep: shadow.deep(),
            keys: keys.collect(),
            items: items.collect(),
            rest: shadow.rest(),
        }
    }

    /// The sources of what a path of keys leads to. A list has the paths of its items; an empty key stands for any.
    /// Keys are compared without case, `-` and `_`, since a host may write them as a schema does.
    pub fn along(&self, path: &[Box<str>]) -> Sources {
        let Some((key, below)) = path.split_first() else { return self.deep };
        if !self.items.is_empty() {
            let start = self.own.union(self.rest);
            return self.items.iter().fold(start, |all, item| all.union(item.along(path)));
        }
        let wanted = plain(key);
        let mut parts = self.keys.iter().filter(|(name, _)| plain(name) == wanted).peekable();
        // What is not known under its own name may be anywhere.
        if key.is_empty() || parts.peek().is_none() {
            return self.deep;
        }
        parts.fold(self.own, |all, (_, part)| all.union(part.along(below)))
    }

    /// The sources of whether a path of keys leads to anything.
    pub fn presence(&self, path: &[Box<str>]) -> Sources {
        let here = self.own.union(self.rest);
        let Some((key, below)) = path.split_first() else { return here };
        let wanted = plain(key);
        let keys = self.keys.iter().filter(|(name, _)| key.is_empty() || plain(name) == wanted);
        let parts = keys.map(|(_, part)| part.presence(below));
        parts.chain(self.items.iter().map(|item| item.presence(path))).fold(here, Sources::union)
    }

    /// The part under a key of exactly this name, if parts are known by key.
    pub fn known(&self, name: &str) -> Option<&PartSources> {
        self.keys.iter().find(|(known, _)| **known == *name).map(|(_, part)| part)
    }

    /// A value with parts of the same sources.
    pub fn flat(sources: Sources) -> PartSources {
        PartSources { own: sources, deep: sources, keys: Vec::new(), items: Vec::new(), rest: sources }
    }

    /// The same, which is there because of these sources too.
    #[must_use]
    pub fn marked(mut self, sources: Sources) -> PartSources {
        self.own = self.own.union(sources);
        self.deep = self.deep.union(sources);
        self
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|letter| !matches!(letter, '-' | '_')).flat_map(char::to_lowercase).collect()
}
