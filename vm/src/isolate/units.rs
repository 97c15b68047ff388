//! Keeps track of the programs that are loaded in an isolate (a separate heap with its state), to unload at the end of
//! a run those that no value reaches any more. Their function numbers are reused.

use super::free_ranges::FreeRanges;
use super::link::Linked;
use crate::bytecode::{Program, ProtoIndex};
use crate::context::{Context, Function, Linking, Unit};
use crate::fault::UnitId;
use crate::value::code_ref::{CodeRef, Released};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The bookkeeping of program numbers.
#[derive(Default)]
pub(super) struct Units {
    /// Free rows of the function table.
    free: FreeRanges,
    /// Number of programs.
    pub(super) count: usize,
    /// Programs that this run has loaded.
    loaded: Vec<UnitId>,
    /// Programs that lost a closure, possibly their last.
    released: Rc<Released>,
}

impl Units {
    /// The code reference of the next program, which has `functions` functions, for linking it.
    pub(super) fn next(&self, cx: &Context, functions: usize) -> CodeRef {
        CodeRef::new(UnitId(self.free.find(functions, cx.functions.len())), self.released.clone())
    }

    /// Adds the linked program.
    pub(super) fn add(&mut self, cx: &mut Context, linked: Linked) -> UnitId {
        let Linked { unit, entries } = linked;
        let (id, unit) = (unit.code.unit(), Rc::new(unit));
        let mut added = unit.program.protos.iter().zip(entries).enumerate().map(|(at, (proto, entry))| {
            Function { code: proto.code.clone(), unit: unit.clone(), proto: ProtoIndex(at as u16), entry }
        });
        let functions = Rc::make_mut(&mut cx.functions);
        let first = id.0 as usize;
        if first < functions.len() {
            self.free.take(id.0..id.0 + unit.program.protos.len() as u32);
            functions[first..].iter_mut().zip(&mut added).for_each(|(place, function)| *place = function);
        }
        functions.extend(added);
        self.count += 1;
        self.loaded.push(id);
        id
    }

    /// Makes the next commit check whether something reaches the program.
    pub(super) fn check_at_commit(&self, unit: UnitId) {
        self.released.borrow_mut().push(unit);
    }

    /// The programs that stay if the run is committed now.
    pub(super) fn reachable<'c>(&self, cx: &'c Context) -> impl Iterator<Item = &'c Unit> {
        Function::programs(&cx.functions).filter(|unit| !is_unreachable(unit))
    }

    /// Logical bytes that the programs of this run need if they stay.
    pub(super) fn added_bytes(&self, cx: &Context) -> usize {
        let units = self.loaded.iter().filter_map(|unit| cx.unit(*unit));
        units.filter(|unit| !unit.code.is_only() && !unit.is_attached.get()).map(|unit| unit.bytes()).sum()
    }

    /// Keeps the reachable programs of the run, and removes all unreachable ones.
    pub(super) fn commit(&mut self, cx: &mut Context) {
        let mut looked_at = self.released.take();
        looked_at.append(&mut self.loaded);
        for unit in looked_at {
            let Some(loaded) = cx.unit(unit) else { continue };
            loaded.code.unlist();
            // Not necessarily the listed program: its number may have been reused.
            let unit = loaded.code.unit();
            if is_unreachable(loaded) {
                self.remove(cx, unit);
            } else if !loaded.is_attached.get() {
                loaded.charge();
            }
        }
    }

    /// Removes the programs of the run.
    pub(super) fn roll_back(&mut self, cx: &mut Context) {
        if !self.released.borrow().is_empty() {
            for unit in self.released.take() {
                if let Some(loaded) = cx.unit(unit) {
                    loaded.code.unlist();
                }
            }
        }
        while let Some(unit) = self.loaded.pop() {
            self.remove(cx, unit);
        }
    }

    fn remove(&mut self, cx: &mut Context, unit: UnitId) {
        let functions = Rc::make_mut(&mut cx.functions);
        let first = unit.0 as usize;
        // Its number was freed before.
        let Some(function) = functions.get(first).filter(|function| !function.is_vacant()) else { return };
        let rows = unit.0..unit.0 + function.unit.program.protos.len() as u32;
        self.count -= 1;
        let left = self.free.give_back(rows.clone(), functions.len());
        if left < functions.len() {
            functions.truncate(left);
        } else {
            functions[first..rows.end as usize].fill(Function::vacant(&Rc::new(no_unit())));
        }
    }
}

fn is_unreachable(unit: &Unit) -> bool {
    unit.code.is_only() && !unit.is_attached.get()
}

/// The program of free rows.
fn no_unit() -> Unit {
    Unit {
        program: Arc::new(Program::default()),
        constants: Vec::new(),
        globals: Vec::new(),
        leaves: Vec::new(),
        code: CodeRef::new(UnitId(0), Rc::default()),
        linking: Linking { run: 0, fuel: 0, bytes: 0 },
        charged: Cell::new(0),
        is_attached: Cell::new(false),
    }
}
