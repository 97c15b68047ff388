//! Source tracking at the boundary of the VM (which servers' data a value depends on): the host states where the answer
//! of a tool call comes from, and reads where the arguments of a tool call, or the answer of a run, come from. The host
//! starts the tracking for a run, and can also state the sources of what a run without tracking has defined.

use super::{CallId, Isolate, World};
use crate::interpreter::tracked::AnswerShadow;
use crate::sources::{CallSources, PartSources, Shadow, Sources, Tracker};
use std::collections::HashMap;
use std::sync::Arc;

/// Where the answer of a host call comes from.
#[derive(Clone, Copy, Debug)]
pub enum AnswerSources<'n> {
    /// From the arguments alone.
    Arguments,
    /// From anything that was answered before.
    Answered,
    /// From anything.
    Anything,
    /// From a server.
    Server {
        /// The server, which also answers by what it was given before.
        server: &'n str,
        /// The name of the source of its data.
        data: &'n str,
        /// The name of the source of its status.
        status: &'n str,
        /// The answer is a map, and its entries of these names are its status; `None`: all of it is data.
        parts: Option<&'n [&'n str]>,
    },
}

/// What a run without tracking may have defined a name from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinedFrom {
    /// The program does not define it.
    Nothing,
    /// These sources decide about it.
    Sources {
        /// By name.
        named: Vec<String>,
        /// Global names that earlier programs of the session have defined.
        globals: Vec<Box<str>>,
    },
    /// Anything.
    Anything,
}

/// A source of arguments, as the host has named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceText {
    /// By its name.
    Named(Arc<str>),
    /// Any answer so far.
    Answered,
    /// Anything.
    Anything,
}

impl Isolate {
    /// Tracks where values come from in the run that has just begun. `marks_context`: entries of the input data are
    /// sources, named `data/` and the key.
    pub fn track(&mut self, marks_context: bool) {
        self.scope(|world, _| {
            let mut tracker = world.tracker.take().unwrap_or_default();
            tracker.begin();
            tracker.marks_context = marks_context;
            for (slot, key) in world.slots.names() {
                // A name that was defined before anything was tracked.
                if key.namespace.is_none() && world.globals.get(slot).is_some() && !tracker.is_kept(slot) {
                    tracker.keep(slot, Sources::ANYTHING);
                }
            }
            world.cx.tracker = Some(tracker);
        });
    }

    /// True while the run tracks where values come from.
    pub fn is_tracked(&self) -> bool {
        self.world.as_ref().is_some_and(|world| world.cx.tracker.is_some())
    }

    /// Where the arguments of a host call in flight come from, and what decided about it. Notes that the server is
    /// given them.
    pub fn call_sources(&mut self, id: CallId, server: &str) -> Option<CallSources> {
        self.scope(|world, _| {
            let tracker = world.cx.tracker.as_mut()?;
            let (fiber, count) = world.schedule.caller(id)?;
            let asked = fiber.track.as_ref()?.asked.as_ref()?;
            let arguments: Vec<PartSources> = asked.parts(count);
            let all = arguments.iter().fold(asked.control, |all, part| all.union(part.deep));
            tracker.give(server, all);
            Some(CallSources { control: asked.control, arguments })
        })
    }

    /// Notes that these sources decided which tool or server was called: what is called later, and what servers answer
    /// by then, may depend on them.
    pub fn call_chosen_by(&mut self, choice: Sources) {
        self.scope(|world, _| {
            if let Some(tracker) = world.cx.tracker.as_mut() {
                tracker.effects.calls = tracker.effects.calls.union(choice);
            }
        });
    }

    /// Says where the answer of a host call in flight comes from, before it is answered.
    pub fn answer_from(&mut self, id: CallId, from: AnswerSources<'_>) {
        self.scope(|world, _| world.answer_from(id, from));
    }

    /// The sources in a set, one by one.
    pub fn source_texts(&self, sources: Sources) -> Vec<(Sources, SourceText)> {
        let Some(tracker) = self.world.as_ref().and_then(|world| world.cx.tracker.as_ref()) else {
            return Vec::new();
        };
        let special = [(Sources::ANSWERED, SourceText::Answered), (Sources::ANYTHING, SourceText::Anything)];
        let special = special.into_iter().filter(|(special, _)| sources.meets(*special));
        let named = tracker.names(sources).map(|(source, name)| (source, SourceText::Named(name)));
        named.chain(special).collect()
    }

    /// Says where the names come from that a run without tracking has defined, or might have on a way that it did not
    /// take, and what it was answered in all. Called before the run is committed.
    pub fn definitions_from(&mut self, answered: &[String], of_name: impl FnMut(&str) -> DefinedFrom) {
        self.scope(|world, _| {
            if world.cx.tracker.is_some() {
                return;
            }
            let mut tracker = world.tracker.take().unwrap_or_default();
            world.name_definitions(&mut tracker, of_name);
            let all = tracker.sources(answered);
            tracker.note_answer(all);
            tracker.is_said = true;
            if world.cx.memos.exist() {
                tracker.keep_memos(all);
            }
            world.tracker = Some(tracker);
        });
    }
}

impl World {
    /// Gives the global names the sources of what may have defined them in this run.
    fn name_definitions(&self, tracker: &mut Tracker, mut of_name: impl FnMut(&str) -> DefinedFrom) {
        let named: Vec<(u32, &str)> = (self.slots.names())
            .filter(|(_, key)| key.namespace.is_none())
            .map(|(slot, key)| (slot, self.cx.symbols.text(key.name)))
            .collect();
        let slots: HashMap<&str, u32> = named.iter().map(|(slot, name)| (*name, *slot)).collect();
        let mut defined = Vec::new();
        for (slot, name) in named {
            let is_changed = self.globals.is_changed(slot);
            let sources = match of_name(name) {
                DefinedFrom::Nothing if !is_changed => continue,
                DefinedFrom::Nothing | DefinedFrom::Anything => Sources::ANYTHING,
                DefinedFrom::Sources { named, globals } => {
                    let of_globals = globals.iter().map(|name| match slots.get(&**name) {
                        Some(slot) => tracker.sources_before(*slot),
                        None => Sources::ANYTHING,
                    });
                    of_globals.fold(Sources::NONE, Sources::union).union(tracker.sources(&named))
                }
            };
            let is_as_before = !is_changed && self.globals.get(slot).is_some();
            let before = if is_as_before { tracker.sources_before(slot) } else { Sources::NONE };
            defined.push((slot, sources.union(before)));
        }
        defined.into_iter().for_each(|(slot, sources)| tracker.define(slot, Shadow::flat(sources)));
    }

    fn answer_from(&mut self, id: CallId, from: AnswerSources<'_>) {
        let Some(tracker) = self.cx.tracker.as_mut() else { return };
        let Some((fiber, count)) = self.schedule.caller(id) else { return };
        let Some(track) = fiber.track.as_mut() else { return };
        let Some(asked) = &track.asked else { return };
        let given = (0..count).fold(asked.control, |all, index| all.union(asked.argument(index).deep()));
        let shadow = match from {
            AnswerSources::Arguments => Shadow::flat(given),
            AnswerSources::Answered => Shadow::flat(given.union(tracker.answered())),
            AnswerSources::Anything => {
                tracker.note_answer(Sources::ANYTHING);
                Shadow::flat(given.union(Sources::ANYTHING))
            }
            AnswerSources::Server { server, data, status, parts } => {
                let (data, status) = (tracker.source(data), tracker.source(status));
                tracker.note_answer(data.union(status));
                let given = given.union(tracker.given(server)).union(tracker.effects.calls);
                let (data, status) = (data.union(given), status.union(given));
                match parts {
                    None => Shadow::flat(data),
                    Some(names) => {
                        let entries = names.iter().map(|name| ((*name).into(), Shadow::flat(status)));
                        Shadow::of_keys(status, entries.collect(), data)
                    }
                }
            }
        };
        let server = match from {
            AnswerSources::Server { server, .. } => Some(server.into()),
            AnswerSources::Arguments | AnswerSources::Answered | AnswerSources::Anything => None,
        };
        track.answer = Some(AnswerShadow { shadow, server });
    }

    /// Keeps where the names come from that the run has defined.
    pub(super) fn keep_sources(&mut self) {
        let Some(mut tracker) = self.cx.tracker.take() else {
            if let Some(tracker) = &mut self.tracker {
                if !std::mem::take(&mut tracker.is_said) {
                    let changed = self.slots.names().map(|(slot, _)| slot);
                    changed
                        .filter(|slot| self.globals.is_changed(*slot))
                        .for_each(|slot| tracker.forget(slot));
                }
                tracker.commit();
            }
            return;
        };
        // What the host has defined of the result may be anything that was answered.
        for (slot, key) in self.slots.names() {
            if key.namespace.is_none() && self.globals.is_changed(slot) && !tracker.is_defined(slot) {
                tracker.keep(slot, tracker.named_answers());
            }
        }
        tracker.commit();
        self.tracker = Some(tracker);
    }
}
