//! Finds the subschemas of a tool's JSON Schema that are repeated or recursive, so that the tool's signature (a compact
//! form of the schema, for models and people) can define them once, by name.

use super::alternative::{Constraint, Plain};
use super::types::TypeId;
use super::variants::Variants;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Depth limit of schemas that are searched for types.
const DEEPEST: usize = 8;

/// How often the types of a document are used, and which contain themselves.
#[derive(Debug, Default)]
pub(super) struct TypeUses {
    /// Types that contain themselves, and types that are used more than once, with the number of their
    /// alternatives.
    pub(super) repeated: HashMap<TypeId, usize>,
    pub(super) recursive: HashSet<TypeId>,
}

impl TypeUses {
    /// For a signature with these alternatives; `own` is its own type.
    pub(super) fn find<'s>(variants: &Variants<'s>, main: &[Plain<'s>], own: Option<TypeId>) -> TypeUses {
        let mut uses = TypeUses::default();
        let mut counts: HashMap<TypeId, usize> = HashMap::new();
        let mut sizes: HashMap<TypeId, usize> = HashMap::new();
        // A depth-first search: a type that is met inside itself closes a circle.
        let mut inside: Vec<(Option<TypeId>, Vec<TypeId>)> = vec![(own, direct(variants, main))];
        if let Some(own) = own {
            sizes.insert(own, main.len());
        }
        while let Some((_, open)) = inside.last_mut() {
            let Some(id) = open.pop() else {
                inside.pop();
                continue;
            };
            *counts.entry(id).or_default() += 1;
            if inside.iter().any(|(around, _)| *around == Some(id)) {
                uses.recursive.insert(id);
            } else if let Entry::Vacant(size) = sizes.entry(id) {
                let all = variants.definition(id);
                size.insert(all.len());
                inside.push((Some(id), direct(variants, &all)));
            }
        }
        let is_repeated = |(id, count): &(TypeId, usize)| *count > 1 || uses.recursive.contains(id);
        let repeated = counts.into_iter().filter(is_repeated).map(|(id, _)| (id, sizes[&id]));
        uses.repeated = repeated.collect();
        uses
    }
}

/// The named type of an alternative, if all alternatives of the type are there. `named` has their numbers.
pub(super) fn whole_type(
    named: &HashMap<TypeId, usize>,
    plain: &Plain<'_>,
    all: &[Plain<'_>],
) -> Option<TypeId> {
    let is_whole = |id: &&TypeId| {
        let count = all.iter().filter(|plain| plain.types.contains(id)).count();
        named.get(id) == Some(&count)
    };
    plain.types.iter().rev().find(is_whole).copied()
}

/// The types in alternatives, without those inside other types; the last one comes first.
fn direct<'s>(variants: &Variants<'s>, all: &[Plain<'s>]) -> Vec<TypeId> {
    let mut found = Vec::new();
    collect(variants, all, 0, &mut found);
    found.reverse();
    found
}

fn collect<'s>(variants: &Variants<'s>, all: &[Plain<'s>], depth: usize, found: &mut Vec<TypeId>) {
    let mut last = None;
    for plain in all {
        let id = plain.types.last().copied();
        // All alternatives of a type are one use of it.
        if id.is_some() && id != last {
            found.extend(id);
        }
        last = id;
        if id.is_some() || depth == DEEPEST {
            continue;
        }
        let mut inner = |demand: &[Constraint<'s>]| {
            if !demand.is_empty() {
                collect(variants, &variants.alternatives(demand), depth + 1, found);
            }
        };
        plain.members().for_each(|(_, member)| inner(&member.demand));
        inner(&plain.others);
        inner(&plain.items);
        plain.first_items.into_iter().flatten().for_each(|item| inner(&[Constraint::Is(item)]));
    }
}
