//! Frees interned names, slots of global names and results of memoized functions that are no longer reachable, between
//! the runs of programs in one isolate (a heap with its state).
//!
//! Values are reference-counted. State that they refer to by number is not: a name is needed while a value, a slot or
//! a program has its number, a slot while a program has it, memoized results while their function exists. A search
//! through the retained values finds what is needed. It runs between two runs, when no other values exist.
//!
//! When it runs depends only on what was committed, so programs cannot observe rollbacks. Its cost is amortised over
//! the bytes added since the last sweep: as many as there were then, or half of the room.

use super::World;
use crate::bytecode::CombinatorKind;
use crate::context::Context;
use crate::memory::account;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::symbol::Symbol;
use std::collections::{BTreeSet, HashSet};

/// Logical bytes that must be added before a sweep is worthwhile.
const SLACK: u64 = 16 << 10;

/// The same if there is hardly any room.
const LEAST: u64 = 4 << 10;

/// Values examined between two points of preemption.
const STEP: usize = 1 << 14;

/// The reachable numbers.
struct Reached {
    symbols: Vec<bool>,
    slots: Vec<bool>,
    tables: BTreeSet<usize>,
}

impl Reached {
    fn has_symbol(&self, symbol: Symbol) -> bool {
        self.symbols.get(symbol.index() as usize).is_some_and(|&is_reached| is_reached)
    }

    fn has_slot(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|&is_reached| is_reached)
    }
}

impl World {
    /// Whether enough was committed since the last sweep.
    pub(super) fn sweep_is_due(&self, most_bytes: u64) -> bool {
        if most_bytes == u64::MAX {
            return false;
        }
        let room = most_bytes.saturating_sub(self.swept);
        let worth = self.swept.max(SLACK).min(room / 2).max(LEAST);
        account::live() >= self.swept.saturating_add(worth)
    }

    /// Frees unreachable state. No run is active.
    pub(super) fn sweep(&mut self) {
        let reached = self.reached();
        self.cx.memos.sweep(|table| reached.tables.contains(&table));
        let World { globals, slots, .. } = self;
        globals.sweep(|slot| reached.has_slot(slot), |slot| slots.forget(slot));
        // Strings among the results hold names.
        self.drain();
        self.cx.symbols.sweep(|symbol| reached.has_symbol(symbol));
        self.swept = account::live();
    }

    /// Logical bytes that a sweep would free at least once the run is committed.
    pub(super) fn unreached_bytes(&self) -> u64 {
        let reached = self.reached();
        self.globals.unreached_bytes(|slot| reached.has_slot(slot))
            + self.cx.symbols.unheld_bytes(|symbol| reached.has_symbol(symbol))
    }

    /// The state that is reachable after a commit or after a rollback of the run.
    fn reached(&self) -> Reached {
        let cx = &self.cx;
        let reached = Reached {
            symbols: vec![false; cx.symbols.rows()],
            slots: vec![false; self.globals.len()],
            tables: BTreeSet::new(),
        };
        let mut search = Search { cx, reached, seen: HashSet::default(), left: Vec::new() };
        for (slot, value) in self.globals.held() {
            search.slot(slot);
            search.value(value);
        }
        for unit in self.units.reachable(cx) {
            unit.globals.iter().for_each(|&slot| search.slot(slot));
            unit.program
                .symbols
                .iter()
                .filter_map(|text| cx.symbols.find(text))
                .for_each(|name| search.symbol(name));
            search.part(&unit.constants);
        }
        search.go_on();
        let mut reached = search.reached;
        for (slot, name) in self.slots.names() {
            if reached.has_slot(slot) {
                for symbol in name.namespace.into_iter().chain([name.name]) {
                    reached.symbols[symbol.index() as usize] = true;
                }
            }
        }
        reached
    }
}

/// A search through values. It does not recurse, and visits shared values once.
struct Search<'w> {
    cx: &'w Context,
    reached: Reached,
    /// The first value of each part that was found.
    seen: HashSet<*const Value, foldhash::fast::RandomState>,
    /// Parts that were found but not searched yet.
    left: Vec<&'w [Value]>,
}

impl<'w> Search<'w> {
    fn slot(&mut self, slot: u32) {
        if let Some(is_reached) = self.reached.slots.get_mut(slot as usize) {
            *is_reached = true;
        }
    }

    fn symbol(&mut self, symbol: Symbol) {
        if let Some(is_reached) = self.reached.symbols.get_mut(symbol.index() as usize) {
            *is_reached = true;
        }
    }

    /// A part: the consecutive values of one node.
    fn part(&mut self, values: &'w [Value]) {
        if !values.is_empty() && self.seen.insert(values.as_ptr()) {
            self.left.push(values);
        }
    }

    fn map(&mut self, map: &'w MapNode) {
        self.part(map.keys());
        self.part(map.values());
    }

    fn value(&mut self, value: &'w Value) {
        match value {
            Value::Keyword(symbol) | Value::Symbol(symbol) | Value::Var(symbol) | Value::Tool(symbol) => {
                self.symbol(*symbol);
            }
            Value::Vector(node) => self.part(node.stored()),
            Value::Map(node) => self.map(node),
            Value::Set(node) => self.part(node.members()),
            Value::Closure(node) => self.part(node.captures()),
            Value::Combinator(node) => {
                self.part(node.parts());
                if node.kind == CombinatorKind::Memoize {
                    self.results(node.parts());
                }
            }
            // A string with a symbol holds the node of the name.
            Value::Str(_)
            | Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::BigInt(_)
            | Value::Builtin(_)
            | Value::Regex(_)
            | Value::LocalDate(_)
            | Value::DateTime(_)
            | Value::Duration(_) => {}
        }
    }

    /// The results of a memoized function, which has its table number among its parts.
    fn results(&mut self, parts: &[Value]) {
        let cx = self.cx;
        for part in parts {
            if let Value::Int(table) = part
                && let Ok(table) = usize::try_from(*table)
                && self.reached.tables.insert(table)
            {
                cx.memos.maps(table).for_each(|map| self.map(map));
            }
        }
    }

    fn go_on(&mut self) {
        let preemption = self.cx.fuel.preemption;
        let mut until_point = STEP;
        while let Some(values) = self.left.pop() {
            for some in values.chunks(STEP) {
                some.iter().for_each(|value| self.value(value));
                until_point = until_point.saturating_sub(some.len());
                if until_point == 0 {
                    preemption.point();
                    until_point = STEP;
                }
            }
        }
    }
}
