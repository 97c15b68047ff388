//! Identifies a prelude (a preloaded Lisp library) by hashes and names, for the record of a run that used it. No code,
//! no values, no secrets.

use super::{LinkedDefinition, Prelude};
use serde_json::{Value, json};
use std::sync::Arc;

impl Prelude {
    /// Hashes, namespaces, components and exports, as JSON. Equal for equal texts, on every machine.
    pub fn trace(&self) -> &Arc<Value> {
        &self.trace
    }

    pub(super) fn make_trace(&self) -> Value {
        let mut trace = self.facts();
        trace["source_hash"] = self.source_hash().into();
        trace["artifact_hash"] = self.artifact_hash().into();
        let components = self.components.iter().map(|component| {
            json!({
                "id": component.source.id, "version": component.source.version, "origin": component.source.origin,
                "source_hash": component.hash, "namespaces": component.namespaces,
            })
        });
        trace["components"] = components.collect();
        trace
    }

    /// The facts that the artifact hash is computed of.
    pub(super) fn facts(&self) -> Value {
        let namespaces: Vec<&str> = self.namespaces().map(|namespace| namespace.name()).collect();
        let exports = self.exports().map(|definition| definition.facts());
        json!({ "protected_namespaces": namespaces, "exports": exports.collect::<Vec<_>>() })
    }

    /// Public definitions, by their references.
    pub(super) fn exports(&self) -> impl Iterator<Item = &LinkedDefinition> {
        let numbers = self.namespaces.iter().flat_map(|attached| &attached.definitions);
        numbers.map(|&number| &self.definitions[number as usize])
    }
}

impl LinkedDefinition {
    pub(super) fn facts(&self) -> Value {
        let compiled = &self.compiled;
        json!({
            "ref": self.reference, "namespace": self.namespace, "symbol": compiled.name,
            "kind": self.kind(),
            "arity": self.arity().map_or_else(|| self.arity_word().into(), Value::from),
            "params": self.parameters(), "doc": compiled.doc,
            "visibility": compiled.visibility.name(), "effect": compiled.effect.name(),
            "provider_ref": compiled.provider, "requires": compiled.requires,
        })
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.compiled.arity.is_some() { "function" } else { "constant" }
    }

    /// The number of arguments; `None` if there is no single one. A constant has 0.
    pub(super) fn arity(&self) -> Option<usize> {
        match self.compiled.arity {
            None => Some(0),
            Some(arity) => arity.max.filter(|max| *max == arity.min),
        }
    }

    /// The parameters of its first arity.
    fn parameters(&self) -> Vec<&str> {
        self.compiled.parameters.first().map(|list| list.split_whitespace().collect()).unwrap_or_default()
    }

    /// The number of arguments, `1 to 2`, or `variadic`; a constant has 0.
    pub(super) fn arity_word(&self) -> String {
        match self.compiled.arity {
            None => "0".to_owned(),
            Some(arity) if arity.max.is_none() => "variadic".to_owned(),
            Some(arity) => arity.words(),
        }
    }
}
