//! Normalizes a JSON Schema to plain alternatives, one of which a value has to match, so that code for signatures and
//! examples need not handle `$ref`, `allOf` or `if`. An alternative is *plain* when `$ref`, `allOf`, `anyOf`, `oneOf`,
//! `if`, `not` and dependencies are resolved to its members and limits.
//!
//! What members and limits cannot express is dropped, so an alternative may accept more than the schema does.
//! If there are too many alternatives, only the first are kept.

use super::alternative::{Constraint, Plain, names, own};
use super::types::{NamedTypes, TypeId};
use crate::schema::member;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::cell::Cell;

/// Limit of alternatives.
const MOST: usize = 24;

/// Depth limit of schemas inside schemas.
const DEEPEST: usize = 16;

/// Limit of schemas and members examined for one signature or example: references may lead to the same ones
/// again and again.
pub(crate) const MOST_LOOKED_AT: usize = 20_000;

/// Names of types. A value has one of them; an integer has two.
const KINDS: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// Keywords that do not constrain values.
const ANNOTATIONS: [&str; 7] =
    ["title", "description", "$comment", "examples", "default", "deprecated", "$schema"];

/// Cost of examining a schema: its parts are separated one by one.
fn weight(words: &Map<String, Json>) -> usize {
    let parts = |value: &Json| match value {
        Json::Object(members) => members.len(),
        Json::Array(items) => items.len(),
        _ => 0,
    };
    1 + words.values().map(parts).sum::<usize>()
}

/// Splits schemas of one document.
pub(crate) struct Variants<'s> {
    root: &'s Json,
    left: Cell<usize>,
    pub(crate) types: NamedTypes<'s>,
}

impl<'s> Variants<'s> {
    /// For the schemas of a document.
    pub(crate) fn new(root: &'s Json) -> Variants<'s> {
        Variants { root, left: Cell::new(MOST_LOOKED_AT), types: NamedTypes::default() }
    }

    /// [`Variants::new`]; the alternatives know which named schemas they come from.
    pub(crate) fn with_types(root: &'s Json) -> Variants<'s> {
        Variants { types: NamedTypes::find(root), ..Variants::new(root) }
    }

    /// The alternatives of a named schema, without its own name.
    pub(crate) fn definition(&self, id: TypeId) -> Vec<Plain<'s>> {
        let mut all = self.alternatives(&[Constraint::Is(self.types.schema(id))]);
        for plain in &mut all {
            plain.types.retain(|known| *known != id);
        }
        all
    }

    /// Sets the limit of examined schemas anew.
    pub(crate) fn allow(&self, schemas: usize) {
        self.left.set(schemas);
    }

    /// True when the limit of examined schemas was reached and the rest is dropped.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    /// The alternatives of a demand; none when no value matches it.
    pub(crate) fn alternatives(&self, demand: &[Constraint<'s>]) -> Vec<Plain<'s>> {
        self.all(demand, 0)
    }

    fn all(&self, demand: &[Constraint<'s>], depth: usize) -> Vec<Plain<'s>> {
        let start = vec![Plain::default()];
        demand.iter().fold(start, |all, said| {
            let next = match said {
                Constraint::Is(schema) => self.fitting(schema, depth),
                Constraint::Not(schema) => self.unfitting(schema, depth),
            };
            self.both(all, next)
        })
    }

    fn spend(&self, amount: usize) -> bool {
        self.left.update(|left| left.saturating_sub(amount));
        self.left.get() > 0
    }

    fn both(&self, these: Vec<Plain<'s>>, those: Vec<Plain<'s>>) -> Vec<Plain<'s>> {
        let mut all = Vec::new();
        for this in &these {
            for that in &those {
                // The first alternative is computed whatever it costs, so a schema that has one never counts
                // as unsatisfiable.
                let has_budget = self.spend(1 + this.members.len() + that.members.len());
                if all.len() == MOST || !(all.is_empty() || has_budget) {
                    return all;
                }
                all.extend(this.clone().and(that.clone()));
            }
        }
        all
    }

    /// The alternatives of a schema. Each knows which named schemas it is.
    fn fitting(&self, schema: &'s Json, depth: usize) -> Vec<Plain<'s>> {
        let mut all = self.resolved(schema, depth);
        if let Some(id) = self.types.id(schema) {
            all.iter_mut().for_each(|plain| plain.types.push(id));
        }
        all
    }

    fn resolved(&self, schema: &'s Json, depth: usize) -> Vec<Plain<'s>> {
        let Some(words) = schema.as_object() else {
            return if schema == &Json::Bool(false) { Vec::new() } else { vec![Plain::default()] };
        };
        if depth == DEEPEST || !self.spend(weight(words)) {
            return vec![Plain::default()];
        }
        let depth = depth + 1;
        let list =
            |name: &str| words.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut all: Vec<Plain<'s>> = own(words).into_iter().collect();
        if let Some(target) = self.target(words) {
            all = self.both(all, self.fitting(target, depth));
        }
        for part in list("allOf") {
            all = self.both(all, self.fitting(part, depth));
        }
        if !list("anyOf").is_empty() {
            let any =
                list("anyOf").iter().take(MOST).flat_map(|choice| self.fitting(choice, depth)).collect();
            all = self.both(all, any);
        }
        if !list("oneOf").is_empty() {
            let told_by =
                words.get("discriminator").and_then(|by| by.get("propertyName")).and_then(Json::as_str);
            all = self.both(all, self.one_of(list("oneOf"), told_by, depth));
        }
        if let Some(condition) = words.get("if") {
            let branch = |name: &str, begun: Vec<Plain<'s>>| match words.get(name) {
                Some(schema) => self.both(begun, self.fitting(schema, depth)),
                None => begun,
            };
            let mut either = branch("then", self.fitting(condition, depth));
            either.extend(branch("else", self.unfitting(condition, depth)));
            all = self.both(all, either);
        }
        if let Some(not) = words.get("not") {
            all = self.both(all, self.unfitting(not, depth));
        }
        for dependencies in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (name, needs) in words.get(dependencies).and_then(Json::as_object).into_iter().flatten() {
                let mut with = Plain::default();
                with.require(name);
                let mut with = vec![with];
                match needs {
                    Json::Array(names) => {
                        with.iter_mut().for_each(|with| {
                            names.iter().filter_map(Json::as_str).for_each(|name| with.require(name))
                        });
                    }
                    schema => with = self.both(with, self.fitting(schema, depth)),
                }
                let mut without = Plain::default();
                without.leave_out(name);
                with.push(without);
                all = self.both(all, with);
            }
        }
        all
    }

    fn target(&self, words: &'s Map<String, Json>) -> Option<&'s Json> {
        let reference = words.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// The alternatives of `oneOf`. If a value could match several choices, each one excludes what the others
    /// require, where that is short.
    fn one_of(&self, choices: &'s [Json], told_by: Option<&'s str>, depth: usize) -> Vec<Plain<'s>> {
        let choices: Vec<(&Json, Vec<Plain<'s>>)> =
            choices.iter().take(MOST).map(|choice| (choice, self.fitting(choice, depth))).collect();
        let mut all = Vec::new();
        // Where each value of each choice matches another one, the schema accepts none; its author means all.
        let plain = || choices.iter().flat_map(|(_, own)| own.clone()).collect();
        for (at, (_, own)) in choices.iter().enumerate() {
            let mut own = own.clone();
            if let Some(name) = told_by {
                own.iter_mut().for_each(|own| own.require(name));
            }
            for (other, alternatives) in
                choices.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other)
            {
                let meets = |own: &Plain<'s>| {
                    alternatives.iter().any(|other| own.clone().and(other.clone()).is_some())
                };
                if told_by.is_none() && self.is_few_words(other) && own.iter().any(meets) {
                    own = self.both(own, self.unfitting(other, depth));
                }
            }
            all.extend(own);
        }
        if all.is_empty() { plain() } else { all }
    }

    /// A choice that constrains little more than which members exist, or one value.
    fn is_few_words(&self, schema: &'s Json) -> bool {
        let Some(words) = schema.as_object() else { return false };
        let names = words.get("required").and_then(Json::as_array).map_or(0, Vec::len);
        let mut told = words.iter().filter(|(word, _)| !ANNOTATIONS.contains(&word.as_str()));
        told.all(|(word, value)| match word.as_str() {
            "required" => names <= FEW,
            "const" | "enum" | "not" | "type" => true,
            word if beyond(word).is_some() => true,
            "properties" => names > 0 || value.as_object().is_some_and(|members| members.len() == 1),
            "$ref" => self
                .target(words)
                .is_some_and(|target| target.get("$ref").is_none() && self.is_few_words(target)),
            _ => false,
        })
    }

    /// The alternatives of everything that does not match a schema.
    fn unfitting(&self, schema: &'s Json, depth: usize) -> Vec<Plain<'s>> {
        let Some(words) = schema.as_object() else {
            return if schema == &Json::Bool(false) { vec![Plain::default()] } else { Vec::new() };
        };
        if depth == DEEPEST || !self.spend(weight(words)) {
            return vec![Plain::default()];
        }
        let depth = depth + 1;
        let plain = |change: &dyn Fn(&mut Plain<'s>)| {
            let mut plain = Plain::default();
            change(&mut plain);
            plain
        };
        let mut all = Vec::new();
        let mut is_whole = true;
        for (word, value) in words {
            match (word.as_str(), value) {
                ("required", Json::Array(names)) => {
                    all.extend(
                        names
                            .iter()
                            .filter_map(Json::as_str)
                            .map(|name| plain(&|plain| plain.leave_out(name))),
                    );
                }
                ("properties", Json::Object(members)) => {
                    // Literally, an optional member of another type would also satisfy this; the author does
                    // not mean that.
                    let is_meant = |schema: &Json| !words.contains_key("required") || says_value(schema);
                    all.extend(members.iter().filter(|(_, schema)| is_meant(schema)).map(
                        |(name, schema)| {
                            plain(&|plain| {
                                plain.require(name);
                                plain.members.entry(name).or_default().demand.push(Constraint::Not(schema));
                            })
                        },
                    ));
                }
                ("const", value) => all.push(plain(&|plain| plain.refused.push(value))),
                ("enum", Json::Array(values)) => all.push(plain(&|plain| plain.refused.extend(values))),
                ("type", kinds) => {
                    let named: Vec<&str> = names(kinds);
                    // An integer is a number: if either type is excluded, both are.
                    let is_number = |kind: &str| matches!(kind, "integer" | "number");
                    let numbers = named.iter().any(|kind| is_number(kind));
                    let other = |kind: &&&str| !(named.contains(*kind) || numbers && is_number(kind));
                    let others: Vec<&str> = KINDS.iter().filter(other).copied().collect();
                    all.push(plain(&|plain| plain.kinds = Some(others.clone())));
                }
                ("not", not) => all.extend(self.fitting(not, depth)),
                ("anyOf", Json::Array(choices)) => {
                    let none = choices.iter().fold(vec![Plain::default()], |none, choice| {
                        self.both(none, self.unfitting(choice, depth))
                    });
                    all.extend(none);
                }
                ("allOf", Json::Array(parts)) => {
                    all.extend(parts.iter().flat_map(|part| self.unfitting(part, depth)))
                }
                ("$ref", _) => {
                    if let Some(target) = self.target(words) {
                        all.extend(self.unfitting(target, depth));
                    }
                }
                (word, limit) if let Some((kind, other, change)) = beyond(word) => {
                    let limit =
                        limit.as_i64().map(|limit| limit + change).filter(|limit| *limit >= 0 || change == 0);
                    all.extend(limit.map(|limit| {
                        plain(&|plain| {
                            plain.kinds = Some(vec![kind]);
                            plain.limits.insert(other, Cow::Owned(limit.into()));
                        })
                    }));
                }
                (word, _) if ANNOTATIONS.contains(&word) => {}
                _ => is_whole = false,
            }
        }
        if !is_whole && all.is_empty() {
            all.push(plain(&|plain| plain.unlike.push(schema)));
        }
        all.truncate(MOST);
        all
    }
}

/// For a limit: its type, and the limit that describes the values beyond it, as keyword and offset.
fn beyond(limit: &str) -> Option<(&'static str, &'static str, i64)> {
    Some(match limit {
        "minimum" => ("number", "exclusiveMaximum", 0),
        "maximum" => ("number", "exclusiveMinimum", 0),
        "exclusiveMinimum" => ("number", "maximum", 0),
        "exclusiveMaximum" => ("number", "minimum", 0),
        "minLength" => ("string", "maxLength", -1),
        "maxLength" => ("string", "minLength", 1),
        "minItems" => ("array", "maxItems", -1),
        "maxItems" => ("array", "minItems", 1),
        _ => return None,
    })
}

/// A schema that constrains more than a type.
fn says_value(schema: &Json) -> bool {
    ["const", "enum", "not", "$ref"].iter().any(|word| member(schema, word).is_some())
}

/// Limit of names that one choice may require the others to exclude.
const FEW: usize = 3;
