//! Stores which servers' data the values in a running program's registers depend on, so that policies can decide
//! whether a tool call may receive these values. Each fiber (thread of control) has a state of its own. A value depends
//! on the data from which it was computed, and on the data that decided which branch or function runs.

use super::regions::{Region, Regions};
use crate::interpreter::charged::Charged;
use crate::sources::{PartSources, Shadow, Sources};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A fiber.
#[derive(Default)]
pub(crate) struct FiberTrack {
    /// By stack slot.
    registers: Charged<Shadow>,
    /// No register from here on has a source.
    clear_from: usize,
    /// The functions that run, the topmost last.
    pub(super) levels: Vec<Level>,
    /// The calls of a branch of `pmap` that no function makes.
    pub(crate) root: Calls,
    /// What branches of `pmap` have returned.
    pub(crate) branches: Sources,
    /// Where the host's answer comes from.
    pub(crate) answer: Option<AnswerShadow>,
    /// The fiber waits for the host.
    pub(super) awaits: bool,
    /// Where the arguments of its host call come from.
    pub(crate) asked: Option<Asked>,
    /// The branches of functions, by function. All fibers share them.
    pub(super) regions: Rc<RefCell<HashMap<usize, Rc<Regions>>>>,
}

/// Where the answer of a host call comes from, as far as is known when the call is made.
pub(crate) struct AnswerShadow {
    pub(crate) shadow: Shadow,
    /// The server that answers, also by what it is given until then.
    pub(crate) server: Option<Box<str>>,
}

/// The arguments of a host call.
pub(crate) struct Asked {
    /// What decided that the call is made.
    pub(crate) control: Sources,
    /// Those that are known one by one.
    pub(crate) arguments: Vec<Shadow>,
    /// All others.
    pub(crate) others: Shadow,
}

impl Asked {
    /// The argument at this place.
    pub(crate) fn argument(&self, index: usize) -> &Shadow {
        self.arguments.get(index).unwrap_or(&self.others)
    }

    /// The parts of the arguments, for the host.
    pub(crate) fn parts(&self, count: usize) -> Vec<PartSources> {
        (0..count).map(|index| PartSources::of(self.argument(index))).collect()
    }
}

/// A function that runs.
pub(super) struct Level {
    /// Its frame.
    pub(super) index: usize,
    /// What decided that it runs.
    control: Sources,
    /// The branches around the current instruction.
    pub(super) open: Vec<Open>,
    /// What it has called.
    pub(super) calls: Calls,
    /// What it returns, and whether that is true.
    pub(super) returns: Option<(Shadow, bool)>,
}

/// A branch that has not ended yet.
pub(super) struct Open {
    pub(super) region: Rc<Region>,
    /// Those of the condition.
    pub(super) sources: Sources,
    /// Those of the conditions around it too.
    all: Sources,
}

impl Level {
    pub(super) fn new(index: usize, control: Sources) -> Level {
        let (open, calls, returns) = Default::default();
        Level { index, control, open, calls, returns }
    }

    /// What decides that the current instruction runs.
    pub(super) fn control(&self) -> Sources {
        self.open.last().map_or(self.control, |open| open.all)
    }

    /// Goes into a branch.
    pub(super) fn open(&mut self, region: Rc<Region>, sources: Sources) {
        if let Some(top) = self.open.last_mut()
            && top.region.join == region.join
            && Rc::ptr_eq(&top.region, &region)
        {
            top.sources = top.sources.union(sources);
            top.all = top.all.union(sources);
            return;
        }
        let all = self.control().union(sources);
        self.open.push(Open { region, sources, all });
    }
}

/// How the results of callbacks become the result of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Each {
    /// Any machine.
    #[default]
    Any,
    /// `map` and its kin: one result for each item.
    Map,
    /// `filter` and its kin: items for which the function holds, or for which it does not.
    Filter(bool),
    /// `keep`: results that are not nil.
    Keep,
    /// `some`, `every?`: a result decides whether there is a next call.
    Search,
    /// `run!`: nil.
    Run,
}

/// The call that a function makes, and the machines that run because of it.
#[derive(Default)]
pub(crate) struct Calls {
    /// The register of the result, while that is not there.
    pub(super) dst: Option<usize>,
    /// What decides about the calls of the machines.
    pub(crate) machine: Sources,
    /// What callbacks have returned.
    pub(crate) result: Sources,
    /// The result, if it is known exactly.
    pub(super) exact: Option<Shadow>,
    /// A function of the program is called with the arguments as they are.
    pub(super) is_direct: bool,
    /// The host is called with the arguments as they are.
    pub(super) is_host: bool,
    /// It may call functions or the host.
    pub(super) may_call: bool,
    pub(super) is_memoized: bool,
    /// The shadows of the arguments.
    pub(super) arguments: Vec<Shadow>,
    pub(super) each: Each,
    /// The function that is called for each item, if it is known.
    pub(super) function: Option<Shadow>,
    /// What callbacks get one after another, and any of it.
    pub(super) items: Option<Vec<Shadow>>,
    pub(crate) any_item: Option<Shadow>,
    /// Callbacks so far.
    pub(super) started: usize,
    pub(super) results: Vec<Shadow>,
}

impl Calls {
    /// Everything that the machines have.
    pub(super) fn all(&self) -> Sources {
        let item = self.any_item.as_ref().map(Shadow::deep).unwrap_or_default();
        self.machine.union(self.result).union(item)
    }

    /// What the next callback gets, if that is known.
    pub(super) fn next_item(&mut self) -> Option<Shadow> {
        let any = self.any_item.clone()?;
        let index = self.started;
        self.started += 1;
        let item = self.items.as_ref().and_then(|items| items.get(index).cloned());
        Some(item.unwrap_or(any).marked(self.machine))
    }

    /// A callback or the host has returned a value.
    pub(super) fn returned(&mut self, value: &Shadow, is_truthy: Option<bool>) {
        self.result = self.result.union(value.deep());
        match self.each {
            Each::Any => self.machine = self.machine.union(value.deep()),
            Each::Search => self.machine = self.machine.union(value.own),
            Each::Map if self.items.is_some() => self.results.push(value.clone()),
            Each::Filter(keeps) => {
                let index = self.started.saturating_sub(1);
                let item = self.items.as_ref().and_then(|items| items.get(index));
                if let (Some(item), true) = (item, is_truthy == Some(keeps)) {
                    self.results.push(item.clone());
                }
            }
            Each::Map | Each::Keep | Each::Run => {}
        }
    }

    /// The shadow of the result.
    pub(super) fn landed(&self) -> Shadow {
        if let Some(exact) = &self.exact {
            return exact.clone();
        }
        let item = self.any_item.as_ref().map(Shadow::deep).unwrap_or_default();
        match self.each {
            Each::Any | Each::Keep | Each::Search => Shadow::flat(self.machine.union(self.result)),
            Each::Map if self.items.as_ref().is_some_and(|items| items.len() == self.results.len()) => {
                Shadow::of_items(self.machine, self.results.clone(), self.result)
            }
            Each::Map => Shadow::of_rest(self.machine, self.result),
            Each::Filter(_) => {
                let own = self.machine.union(self.result);
                match self.items {
                    Some(_) => Shadow::of_items(own, self.results.clone(), item),
                    None => Shadow::of_rest(own, item),
                }
            }
            Each::Run => Shadow::flat(self.machine),
        }
    }
}

impl FiberTrack {
    /// A branch of `pmap` that a function of another fiber has started.
    pub(crate) fn branch(&mut self) -> FiberTrack {
        let calls = self.calls();
        let root = match calls.any_item.clone() {
            None => Calls { machine: calls.all(), ..Calls::default() },
            any_item => {
                let function = calls.function.clone();
                Calls { machine: calls.machine, any_item, function, ..Calls::default() }
            }
        };
        let mut branch = FiberTrack::default();
        (branch.root, branch.regions) = (root, self.regions.clone());
        branch
    }

    /// Everything that a finished branch may have returned.
    pub(crate) fn finished(&self) -> Sources {
        self.root.machine.union(self.root.result)
    }

    /// The shadow of a register.
    pub(super) fn get(&self, register: usize) -> Shadow {
        self.registers.get(register).cloned().unwrap_or_default()
    }

    /// Fills a register.
    pub(super) fn set(&mut self, register: usize, shadow: Shadow) {
        if register >= self.registers.len() {
            self.registers.make_room(register + 64);
            let room = self.registers.room();
            self.registers.resize_with(room, Shadow::default);
        }
        if !shadow.is_clear() {
            self.clear_from = self.clear_from.max(register + 1);
        }
        self.registers[register] = shadow;
    }

    /// True if no register from this one on has a source.
    pub(super) fn is_clear_from(&mut self, register: usize) -> bool {
        while self.clear_from > register {
            if self.registers.get(self.clear_from - 1).is_some_and(|shadow| !shadow.is_clear()) {
                return false;
            }
            self.clear_from -= 1;
        }
        true
    }

    /// Forgets the shadows of the registers from this one on, which hold nothing any more.
    pub(super) fn clear_from(&mut self, register: usize) {
        if let Some(left) = self.registers.get_mut(register..self.clear_from.max(register)) {
            left.fill_with(Shadow::default);
        }
        self.clear_from = self.clear_from.min(register);
    }

    /// The value of a register depends on these sources too.
    pub(super) fn mark(&mut self, register: usize, sources: Sources) {
        let shadow = self.get(register).marked(sources);
        self.set(register, shadow);
    }
}

impl Drop for FiberTrack {
    fn drop(&mut self) {
        self.registers.clear();
    }
}
