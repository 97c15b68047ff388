//! Collects the arguments of a tool, merged from all alternatives of its JSON Schema, and their descriptions, for the
//! signatures and texts that explain the tool.

use super::alternative::{Demand, Plain};
use super::variants::Variants;
use std::collections::{BTreeSet, HashMap};

/// Limit of arguments that are explained one by one, including nested ones.
const MOST_EXPLAINED: usize = 60;

/// Limit of arguments that are examined for that: references may lead to the same ones again and again.
pub(crate) const MOST_LOOKED_AT: usize = 2_000;

/// Depth limit of explained nested arguments.
const DEEPEST_EXPLAINED: usize = 3;

/// An argument, merged from all alternatives that have it.
pub(crate) struct Argument<'s> {
    pub(crate) name: &'s str,
    pub(crate) demand: Demand<'s>,
    /// Required in all of them.
    pub(crate) required: bool,
}

/// The arguments of all alternatives, required ones first. The first alternative that has one describes it.
pub(crate) fn merged<'s>(all: &[Plain<'s>]) -> impl Iterator<Item = Argument<'s>> + use<'s> {
    let mut rows: Vec<Argument<'s>> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, member) in all.iter().flat_map(Plain::members) {
        if known.insert(name) {
            let required = all.iter().all(|plain| plain.requires(name));
            rows.push(Argument { name, demand: member.demand.clone(), required });
        }
    }
    // Stable: required ones stay in schema order.
    rows.sort_by_key(|row| (!row.required, if row.required { "" } else { row.name }));
    rows.into_iter()
}

/// The description of an argument, or of a member of it or of a named type.
pub(crate) struct Explanation {
    /// The name of the type that has the member.
    pub(crate) of_type: Option<String>,
    /// Names from the outside to the inside.
    pub(crate) path: Vec<String>,
    pub(crate) about: String,
}

/// Collects the descriptions of arguments, including nested ones. Members of a named type are described once.
pub(crate) struct Explanations<'s, 'e> {
    pub(crate) variants: &'e Variants<'s>,
    /// True for alternatives that the signature shows by name.
    pub(crate) is_named: &'e dyn Fn(&[Plain<'s>]) -> bool,
    /// Descriptions of arguments that the schema does not have.
    pub(crate) more: &'e HashMap<String, String>,
    pub(crate) left: usize,
    pub(crate) rows: Vec<Explanation>,
}

impl<'s> Explanations<'s, '_> {
    /// The rows for the arguments of a tool, and for the types that its signature names.
    pub(crate) fn rows(
        mut self,
        all: &[Plain<'s>],
        types: impl Iterator<Item = (String, Vec<Plain<'s>>)>,
    ) -> Vec<Explanation> {
        if !(self.is_named)(all) {
            self.explain(None, all, &[]);
        }
        for (name, all) in types {
            self.explain(Some(&name), &all, &[]);
        }
        self.rows
    }

    fn explain(&mut self, of_type: Option<&str>, all: &[Plain<'s>], path: &[String]) {
        for Argument { name, demand, .. } in merged(all) {
            self.left = self.left.saturating_sub(1);
            if self.rows.len() >= MOST_EXPLAINED || self.left == 0 {
                return;
            }
            let inside = self.variants.alternatives(&demand);
            let described = inside.iter().find_map(|plain| plain.about);
            let is_top = path.is_empty() && of_type.is_none();
            let better = self.more.get(name).filter(|_| is_top).map(String::as_str);
            let about = better.or(described).unwrap_or_default().trim();
            let path = [path, &[name.to_owned()]].concat();
            if !about.is_empty() {
                let of_type = of_type.map(str::to_owned);
                self.rows.push(Explanation { of_type, path: path.clone(), about: about.to_owned() });
            }
            if path.len() + usize::from(of_type.is_some()) < DEEPEST_EXPLAINED && !(self.is_named)(&inside) {
                for plain in &inside {
                    self.explain_content(of_type, plain, &path);
                }
            }
        }
    }

    /// The members of a map, or of the items of a list.
    fn explain_content(&mut self, of_type: Option<&str>, plain: &Plain<'s>, path: &[String]) {
        if plain.items.is_empty() {
            self.explain(of_type, std::slice::from_ref(plain), path);
            return;
        }
        let items = self.variants.alternatives(&plain.items);
        if !(self.is_named)(&items) {
            self.explain(of_type, &items, path);
        }
    }
}
