//! Finds which registers, names, calls and exits depend on each conditional branch of a function, up to where its paths
//! join, to track data flow through conditions.
//!
//! Whether a register is written there, a name defined, a call made or the program ended depends on the condition,
//! whichever way is taken. So at the place where the ways meet, the sources of the condition go to everything that one
//! of the ways may have changed.

use crate::builtins::Implementation;
use crate::bytecode::instruction::{Effect, Flow, Instruction, Reference};
use crate::bytecode::{BuiltinId, WINDOW};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// No place: the ways meet where the function returns, or nowhere.
const NOWHERE: u32 = u32::MAX;

/// What one branch decides about.
#[derive(Debug)]
pub(super) struct Region {
    /// The instruction where the ways meet; [`u32::MAX`]: none in the function.
    pub(super) join: u32,
    /// Registers that a way may fill.
    writes: [u64; WINDOW / 64],
    /// Names that a way may define, by the program's numbers.
    pub(super) stores: Vec<u16>,
    /// A way may call a function or the host.
    pub(super) calls: bool,
    /// A way may end the program by `return` or `fail`.
    pub(super) exits: bool,
}

impl Region {
    /// The registers that a way may fill.
    pub(super) fn writes(&self) -> impl Iterator<Item = usize> {
        (0..WINDOW).filter(|register| self.writes[register / 64] >> (register % 64) & 1 == 1)
    }
}

/// The branches of a function.
#[derive(Debug)]
pub(super) struct Regions {
    /// By instruction: where its ways meet.
    joins: Vec<u32>,
    known: RefCell<HashMap<u32, Rc<Region>>>,
}

/// The instructions that may follow one, without the ends of the program.
fn following(code: &[Instruction], at: usize) -> [Option<usize>; 2] {
    let Some(instruction) = code.get(at) else { return [None, None] };
    let mut target = None;
    instruction.effects(&mut |effect| {
        if let Effect::Jump(distance) = effect {
            target = (at + 1).checked_add_signed(distance as isize);
        }
    });
    match instruction.flow() {
        Flow::Next => [Some(at + 1), None],
        Flow::Branch => [Some(at + 1), target],
        Flow::Jump => [target, None],
        Flow::Return | Flow::Exit => [None, None],
    }
}

/// True for a builtin that may call functions or the host.
pub(super) fn may_call(builtin: BuiltinId) -> bool {
    !matches!(builtin.info().implementation, Implementation::Direct(_))
}

impl Regions {
    /// The branches of some code.
    pub(super) fn of(code: &[Instruction]) -> Regions {
        Regions { joins: joins(code), known: RefCell::default() }
    }

    /// What the branch at an instruction decides about.
    pub(super) fn region(&self, code: &[Instruction], at: usize) -> Rc<Region> {
        let join = self.joins.get(at).copied().unwrap_or(NOWHERE);
        let mut known = self.known.borrow_mut();
        known.entry(at as u32).or_insert_with(|| Rc::new(between(code, at, join))).clone()
    }
}

/// Goes from a branch along all ways up to the place where they meet.
fn between(code: &[Instruction], at: usize, join: u32) -> Region {
    let mut region =
        Region { join, writes: [0; WINDOW / 64], stores: Vec::new(), calls: false, exits: false };
    let mut seen = vec![false; code.len()];
    // A loop leads back to the branch itself, which then belongs to its own region.
    let mut waiting: Vec<usize> = following(code, at).into_iter().flatten().collect();
    note(&mut region, &code[at]);
    while let Some(at) = waiting.pop() {
        if at as u32 == join || at >= code.len() || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        note(&mut region, &code[at]);
        waiting.extend(following(code, at).into_iter().flatten());
    }
    region
}

fn note(region: &mut Region, instruction: &Instruction) {
    instruction.effects(&mut |effect| {
        if let Effect::Fill(register) = effect {
            region.writes[usize::from(register) / 64] |= 1 << (register % 64);
        }
    });
    match instruction {
        Instruction::StoreGlobal { global, .. } => region.stores.push(global.0),
        Instruction::Exit { .. } => region.exits = true,
        Instruction::Call { .. } | Instruction::CallGlobal { .. } => region.calls = true,
        other => {
            if let Some(Reference::Builtin(builtin)) = other.reference() {
                region.calls |= may_call(builtin);
            }
        }
    }
}

/// For each instruction, the first one that every way from it to a return passes.
fn joins(code: &[Instruction]) -> Vec<u32> {
    // Immediate postdominators: the dominators of the reversed graph, with one end behind all returns.
    let end = code.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); end + 1];
    for at in 0..end {
        for next in following(code, at).into_iter().flatten().filter(|next| *next < end) {
            before[next].push(at);
        }
        if code[at].flow() == Flow::Return {
            before[end].push(at);
        }
    }
    let order = postorder(&before, end);
    let mut rank = vec![usize::MAX; end + 1];
    for (position, at) in order.iter().enumerate() {
        rank[*at] = position;
    }
    let mut found: Vec<Option<usize>> = vec![None; end + 1];
    found[end] = Some(end);
    let mut changes = true;
    while changes {
        changes = false;
        for &at in order.iter().rev().filter(|at| **at != end) {
            let is_return = code[at].flow() == Flow::Return;
            let ways = following(code, at).into_iter().flatten().chain(is_return.then_some(end));
            let known = ways.filter(|way| *way <= end && found[*way].is_some());
            let meet = known.reduce(|a, b| meeting(&found, &rank, a, b));
            if meet != found[at] {
                found[at] = meet;
                changes = true;
            }
        }
    }
    let join = |at: usize| found[at].filter(|join| *join < end).map_or(NOWHERE, |join| join as u32);
    (0..end).map(join).collect()
}

/// The instructions that lead to the end, those nearest to it last.
fn postorder(before: &[Vec<usize>], end: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(before.len());
    let mut seen = vec![false; before.len()];
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((at, next)) = stack.pop() {
        match before[at].get(next) {
            None => order.push(at),
            Some(&way) => {
                stack.push((at, next + 1));
                if !std::mem::replace(&mut seen[way], true) {
                    stack.push((way, 0));
                }
            }
        }
    }
    order
}

fn meeting(found: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while rank[a] < rank[b] {
            a = found[a].unwrap_or(b);
        }
        while rank[b] < rank[a] {
            b = found[b].unwrap_or(a);
        }
    }
    a
}
