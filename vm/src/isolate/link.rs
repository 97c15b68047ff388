//! Links a compiled program into an isolate (a separate heap with its state): its symbols, constants and global names
//! get the numbers that they have there.

use super::names::{GlobalKey, GlobalSlots};
use crate::bytecode::entry::Entry;
use crate::bytecode::instruction::Effect;
use crate::bytecode::leaf::Leaf;
use crate::bytecode::{Const, GlobalName, Program, Proto};
use crate::context::{Context, Linking, Unit};
use crate::fault::{Fault, Result};
use crate::interpreter::globals::Globals;
use crate::memory::{List, account};
use crate::value::Value;
use crate::value::code_ref::CodeRef;
use crate::value::combinator::Combinator;
use crate::value::map::MapNode;
use crate::value::regex::RegexNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use crate::value::symbol::Symbol;
use num_bigint::BigInt;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// A linked program, and the fast calls of its functions.
pub(crate) struct Linked {
    pub(crate) unit: Unit,
    pub(crate) entries: SmallVec<[Entry; 16]>,
}

/// Links a program for the run of this number.
///
/// # Errors
/// Memory; fuel for the patterns of regex literals.
pub(crate) fn link(
    cx: &mut Context,
    slots: &mut GlobalSlots,
    globals: &mut Globals,
    program: Arc<Program>,
    code: CodeRef,
    run: u64,
) -> Result<Linked> {
    let (fuel, peak) = (cx.fuel.used(), account::peak());
    cx.reserve(program.symbols.len() * 64 + program.constants.len() * size_of::<Value>())?;
    let symbols: Vec<Symbol> = program.symbols.iter().map(|text| cx.symbols.intern(text)).collect();
    let linked_globals =
        program.globals.iter().map(|name| slots.slot(globals, key_of(&symbols, name))).collect();
    let mut constants: Vec<Value> = Vec::with_capacity(program.constants.len());
    for (at, constant) in program.constants.iter().enumerate() {
        poll(cx, at, 64)?;
        let value = constant_value(cx, &symbols, &constants, constant)?;
        constants.push(value);
    }
    let mut leaves = Vec::new();
    let entries = program.protos.iter().map(|proto| entry(proto, &program.constants, &mut leaves)).collect();
    let is_highest = account::peak() > peak;
    let linking = Linking {
        run,
        fuel: cx.fuel.used() - fuel,
        bytes: if is_highest { account::peak() - account::live() } else { 0 },
    };
    let unit = Unit {
        program,
        constants,
        globals: linked_globals,
        leaves,
        code,
        linking,
        charged: Cell::new(0),
        is_attached: Cell::new(false),
    };
    Ok(Linked { unit, entries })
}

fn key_of(symbols: &[Symbol], name: &GlobalName) -> GlobalKey {
    let symbol = |index: u32| symbols[index as usize];
    GlobalKey { namespace: name.namespace.map(symbol), name: symbol(name.symbol) }
}

fn entry(proto: &Proto, constants: &[Const], leaves: &mut Vec<Leaf>) -> Entry {
    if proto.shape.variadic {
        return Entry::NONE;
    }
    // Register 0 holds the closure.
    let mut needs_closure = proto.captures > 0;
    for instruction in proto.code.iter() {
        instruction.effects(&mut |effect| needs_closure |= effect == Effect::Read(0));
    }
    let leaf = match Leaf::from_proto(proto, constants) {
        Some(leaf) if leaves.len() < Entry::MOST_LEAVES => {
            leaves.push(leaf);
            Some(leaves.len() as u8)
        }
        _ => None,
    };
    Entry::new(proto.shape.fixed, needs_closure, leaf)
}

/// Existing items of a collection between two checks of the deadline.
const ITEMS: usize = 1_024;

/// Checks deadline and cancellation at every `stride` steps: linking costs no fuel.
#[inline]
fn poll(cx: &Context, at: usize, stride: usize) -> Result<()> {
    if at.is_multiple_of(stride) { cx.fuel.poll() } else { Ok(()) }
}

/// The value of a constant; collections refer to earlier rows, so nothing recurses.
pub(super) fn constant_value(
    cx: &mut Context,
    symbols: &[Symbol],
    earlier: &[Value],
    constant: &Const,
) -> Result<Value> {
    let symbol = |index: &u32| symbols[*index as usize];
    let item = |row: u16| earlier[usize::from(row)].clone();
    let items = |cx: &mut Context, rows: &[u16]| -> Result<Vec<Value>> {
        cx.reserve_items(rows.len())?;
        Ok(rows.iter().map(|&row| item(row)).collect())
    };
    Ok(match constant {
        Const::Nil => Value::Nil,
        Const::Bool(value) => Value::Bool(*value),
        Const::Int(value) => Value::Int(*value),
        Const::BigInt(digits) => match digits.parse::<BigInt>() {
            Ok(value) => Value::integer(value),
            Err(_) => return Err(Fault::runtime("malformed integer constant")),
        },
        Const::Float(value) => Value::Float(*value),
        Const::Str(text) => match cx.symbols.find(text) {
            // A literal key shares the symbol of the keyword of the same text.
            Some(symbol) => Value::Str(cx.symbols.string(symbol).clone()),
            None => {
                let node = StringNode::new(&**text);
                // Computed now, so that the first of several runs does not pay for it.
                node.is_ascii();
                Value::Str(node)
            }
        },
        Const::Keyword(index) => Value::Keyword(symbol(index)),
        Const::Symbol(index) => Value::Symbol(symbol(index)),
        Const::Var(index) => Value::Var(symbol(index)),
        Const::Builtin(builtin) => Value::Builtin(*builtin),
        Const::Tool(index) => Value::Tool(symbol(index)),
        Const::Regex(pattern) => Value::Regex(RegexNode::new(cx, pattern.clone())?),
        Const::Vector(rows) => Value::vector(items(cx, rows)?),
        Const::Combinator(kind, rows) => {
            let parts = List::charged(items(cx, rows)?);
            Value::Combinator(Combinator::new(cx, *kind, parts)?)
        }
        Const::Map(rows) => {
            if let Some(keys) = different_keywords(earlier, rows) {
                let values = rows.chunks_exact(2).map(|pair| item(pair[1]));
                return Ok(Value::Map(MapNode::from_keys(SetNode::from_distinct(keys), values)));
            }
            let mut map = MapNode::with_capacity(rows.len() / 2);
            cx.reserve_items(rows.len())?;
            for (at, pair) in rows.chunks_exact(2).enumerate() {
                poll(cx, at, ITEMS)?;
                map = MapNode::insert(map, cx, item(pair[0]), item(pair[1]))?;
            }
            Value::Map(map)
        }
        Const::Set(rows) => {
            let mut set = SetNode::with_capacity(rows.len());
            cx.reserve_items(rows.len())?;
            for (at, &row) in rows.iter().enumerate() {
                poll(cx, at, ITEMS)?;
                set = SetNode::insert(set, cx, item(row))?;
            }
            Value::Set(set)
        }
    })
}

/// The keys of a small map if they are distinct keywords, as in most maps; they need no lookups then.
fn different_keywords<'v>(
    earlier: &'v [Value],
    rows: &'v [u16],
) -> Option<impl ExactSizeIterator<Item = Value> + 'v> {
    const FEW: usize = 8;
    if rows.is_empty() || rows.len() > 2 * FEW || rows.len() % 2 == 1 {
        return None;
    }
    let mut keys = [Symbol::from_index(0); FEW];
    for (at, pair) in rows.chunks_exact(2).enumerate() {
        let Value::Keyword(key) = earlier[usize::from(pair[0])] else { return None };
        if keys[..at].contains(&key) {
            return None;
        }
        keys[at] = key;
    }
    Some(keys.into_iter().take(rows.len() / 2).map(Value::Keyword))
}
