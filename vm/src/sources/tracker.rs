//! Records on which servers' data (sources) a program's global definitions, tool calls and early exits depend, so that
//! data-flow rules detect indirect flows into later tool calls. It also records the sources of the data that each
//! server was given, because later answers of the server may repeat that data.

use super::Sources;
use super::shadow::Shadow;
use std::collections::HashMap;
use std::sync::Arc;

/// What calls and ends of the program depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effects {
    /// Whether the program has ended by `return` or `fail`.
    pub(crate) exits: Sources,
    /// How many calls the host has got.
    pub(crate) calls: Sources,
    /// What names hold that functions may define.
    pub(crate) names: Sources,
    /// What memoized functions have stored.
    pub(crate) memos: Sources,
}

/// The sources of an isolate.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// The names of sources, by number.
    names: Vec<Arc<str>>,
    /// Those of answers.
    answered: Sources,
    pub(crate) effects: Effects,
    /// Effects of earlier runs.
    kept_effects: Effects,
    /// Names that earlier runs defined, by slot.
    kept: HashMap<u32, Sources>,
    /// Names that this run defined, or may have.
    defined: HashMap<u32, Shadow>,
    /// What each server was given.
    given: HashMap<Arc<str>, Sources>,
    /// Functions that may define names; that may end the program.
    pub(crate) may_define: bool,
    pub(crate) may_exit: bool,
    /// There are memoized functions, or may be.
    pub(crate) may_memoize: bool,
    /// A name has a source, or had one in this run.
    has_sourced_names: bool,
    /// There are programs that read input data.
    pub(crate) may_read_context: bool,
    /// Entries of the input data are sources.
    pub(crate) marks_context: bool,
    /// The host has said where the names come from that a run without tracking has defined.
    pub(crate) is_said: bool,
    /// How many functions of the isolate were looked at for that.
    pub(crate) looked_at: usize,
}

impl Tracker {
    /// Begins a run.
    pub(crate) fn begin(&mut self) {
        self.effects = self.kept_effects;
        self.defined.clear();
        self.given.clear();
        self.looked_at = 0;
        self.has_sourced_names = self.kept.values().any(|sources| !sources.is_empty());
    }

    /// True while only answers of the host bring sources into the program: no name has one, and nothing that it may do
    /// depends on one.
    pub(crate) fn is_clear(&self) -> bool {
        let Effects { exits, calls: _, names, memos } = self.effects;
        let has_sources = self.has_sourced_names || (self.marks_context && self.may_read_context);
        !has_sources && exits.union(names).union(memos).is_empty()
    }

    /// The source of this name.
    pub(crate) fn source(&mut self, name: &str) -> Sources {
        let known = self.names.iter().position(|known| **known == *name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        Sources::only(number)
    }

    /// The sources of these names.
    pub(crate) fn sources(&mut self, names: &[String]) -> Sources {
        names.iter().fold(Sources::NONE, |all, name| all.union(self.source(name)))
    }

    /// The names of some sources.
    pub(crate) fn names(&self, sources: Sources) -> impl Iterator<Item = (Sources, Arc<str>)> {
        let named = |number: usize| Some((Sources::only(number), self.names.get(number)?.clone()));
        sources.numbers().filter_map(named)
    }

    /// The named answers so far.
    pub(crate) fn named_answers(&self) -> Sources {
        self.answered
    }

    /// Memoized functions of the run before may have stored these.
    pub(crate) fn keep_memos(&mut self, sources: Sources) {
        self.kept_effects.memos = self.kept_effects.memos.union(sources);
    }

    /// All answers so far.
    pub(crate) fn answered(&self) -> Sources {
        self.answered.union(Sources::ANSWERED)
    }

    /// Notes an answer.
    pub(crate) fn note_answer(&mut self, sources: Sources) {
        self.answered = self.answered.union(sources);
    }

    /// Notes what a server is given.
    pub(crate) fn give(&mut self, server: &str, sources: Sources) {
        if !sources.is_empty() {
            let given = self.given.entry(server.into()).or_default();
            *given = given.union(sources);
        }
    }

    /// What a server was given.
    pub(crate) fn given(&self, server: &str) -> Sources {
        self.given.get(server).copied().unwrap_or_default()
    }

    /// The shadow of a name.
    pub(crate) fn name(&self, slot: u32) -> Shadow {
        let shadow = match self.defined.get(&slot) {
            Some(shadow) => shadow.clone(),
            None => Shadow::flat(self.kept.get(&slot).copied().unwrap_or_default()),
        };
        shadow.marked(self.effects.names)
    }

    /// A name gets a value.
    pub(crate) fn define(&mut self, slot: u32, shadow: Shadow) {
        self.has_sourced_names |= !shadow.is_clear();
        self.defined.insert(slot, shadow);
    }

    /// Whether a name has got a value depends on these sources.
    pub(crate) fn may_define(&mut self, slot: u32, sources: Sources) {
        let shadow = self.name(slot).marked(sources);
        self.define(slot, shadow);
    }

    /// The sources of a name that an earlier run defined.
    pub(crate) fn keep(&mut self, slot: u32, sources: Sources) {
        self.has_sourced_names |= !sources.is_empty();
        self.kept.insert(slot, sources);
    }

    /// Where a name of an earlier run comes from is not known.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.kept.remove(&slot);
    }

    /// True when the sources of a name of an earlier run are known.
    pub(crate) fn is_kept(&self, slot: u32) -> bool {
        self.kept.contains_key(&slot)
    }

    /// The sources of a name before the run; those of a name that was defined before anything was tracked are not known.
    pub(crate) fn sources_before(&self, slot: u32) -> Sources {
        self.kept.get(&slot).copied().unwrap_or(Sources::ANYTHING)
    }

    /// True when this run has defined a name.
    pub(crate) fn is_defined(&self, slot: u32) -> bool {
        self.defined.contains_key(&slot)
    }

    /// Keeps the sources of the names that the run has defined.
    pub(crate) fn commit(&mut self) {
        let names = self.effects.names;
        for (slot, shadow) in self.defined.drain() {
            self.kept.insert(slot, shadow.deep().union(names));
        }
        let kept = self.kept_effects;
        let (names, memos) = (names.union(kept.names), self.effects.memos.union(kept.memos));
        self.kept_effects = Effects { names, memos, ..Effects::default() };
    }

    /// Forgets what the run has defined.
    pub(crate) fn roll_back(&mut self) {
        self.defined.clear();
        self.is_said = false;
        self.effects = self.kept_effects;
    }
}
