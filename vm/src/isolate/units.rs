//! The programs that are loaded: numbers are given again when nothing reaches a program any more.

use crate::bytecode::{Program, ProtoIndex};
use crate::context::{Context, Linking, Unit};
use crate::fault::UnitId;
use crate::value::code_ref::{CodeRef, Released};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// What is known of the numbers of programs.
#[derive(Default)]
pub(super) struct Units {
    /// Numbers without a program.
    free: Vec<UnitId>,
    /// Programs that this run has loaded.
    loaded: Vec<UnitId>,
    /// Programs that lost a closure which may have been their last.
    released: Rc<Released>,
}

impl Units {
    /// A reference to the next program, for linking it.
    pub(super) fn next(&self, cx: &Context) -> CodeRef {
        let unit = self.free.last().copied().unwrap_or(UnitId(cx.units.len() as u32));
        CodeRef::new(unit, self.released.clone())
    }

    /// Adds the linked program.
    pub(super) fn add(&mut self, cx: &mut Context, linked: Unit) -> UnitId {
        let unit = linked.code.unit();
        let units = Rc::make_mut(&mut cx.units);
        match units.get_mut(unit.0 as usize) {
            Some(place) => {
                self.free.pop();
                *place = Rc::new(linked);
            }
            None => units.push(Rc::new(linked)),
        }
        self.loaded.push(unit);
        unit
    }

    /// Number of programs.
    pub(super) fn count(&self, cx: &Context) -> usize {
        cx.units.len() - self.free.len()
    }

    /// The programs that stay if the run is committed now.
    pub(super) fn reachable<'c>(&self, cx: &'c Context) -> impl Iterator<Item = &'c Unit> {
        cx.units.iter().map(Rc::as_ref).filter(|unit| !is_unreachable(unit))
    }

    /// Logical bytes that the programs of this run need when they stay.
    pub(super) fn added_bytes(&self, cx: &Context) -> usize {
        let units = self.loaded.iter().filter_map(|unit| cx.units.get(unit.0 as usize));
        units.filter(|unit| !unit.code.is_only() && !unit.is_attached.get()).map(|unit| unit.bytes()).sum()
    }

    /// Keeps the programs of the run that something reaches, and forgets all that nothing reaches any more.
    pub(super) fn commit(&mut self, cx: &mut Context) {
        let mut looked_at = self.released.take();
        looked_at.append(&mut self.loaded);
        for unit in looked_at {
            let Some(loaded) = cx.units.get(unit.0 as usize) else { continue };
            loaded.code.unlist();
            if is_unreachable(loaded) {
                self.remove(cx, unit);
            } else if !loaded.is_attached.get() {
                loaded.charge();
            }
        }
    }

    /// Forgets the programs of the run.
    pub(super) fn roll_back(&mut self, cx: &mut Context) {
        if !self.released.is_empty() {
            for unit in self.released.take() {
                if let Some(loaded) = cx.units.get(unit.0 as usize) {
                    loaded.code.unlist();
                }
            }
        }
        while let Some(unit) = self.loaded.pop() {
            self.remove(cx, unit);
        }
    }

    fn remove(&mut self, cx: &mut Context, unit: UnitId) {
        let units = Rc::make_mut(&mut cx.units);
        let is_last = unit.0 as usize + 1 == units.len();
        match units.get_mut(unit.0 as usize) {
            // Its number was given back before.
            Some(place) if place.program.protos.is_empty() => {}
            Some(_) if is_last => drop(units.pop()),
            Some(place) => {
                *place = Rc::new(no_unit(unit));
                self.free.push(unit);
            }
            None => {}
        }
    }
}

fn is_unreachable(unit: &Unit) -> bool {
    unit.code.is_only() && !unit.is_attached.get()
}

/// What stands for a program that is gone.
fn no_unit(unit: UnitId) -> Unit {
    let program = Program {
        source_bytes: 0,
        protos: Vec::new(),
        entry: ProtoIndex(0),
        constants: Vec::new(),
        symbols: Vec::new(),
        globals: Vec::new(),
    };
    Unit {
        program: Arc::new(program),
        constants: Vec::new(),
        globals: Vec::new(),
        entries: Vec::new(),
        leaves: Vec::new(),
        code: CodeRef::new(unit, Rc::default()),
        linking: Linking { run: 0, fuel: 0, bytes: 0 },
        charged: Cell::new(0),
        is_attached: Cell::new(false),
    }
}
