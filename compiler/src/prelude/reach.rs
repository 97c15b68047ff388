//! Computes the effects of each definition of a prelude (a Lisp library) and the tools that it requires, including
//! those of all definitions that it calls, directly or not. A caller needs what its helpers need.

use super::declare::{Declared, DeclaredNamespace};
use super::effects::effects_of;
use super::metadata::ExportEffect;
use super::{CompiledDefinition, PreludeDefinition};
use crate::meter::Meter;
use crate::namespace::ExportEffects;
use crate::resolve::syntax::host::Operation;
use ptc_vm::Span;
use ptc_vm::bytecode::Program;
use std::collections::{BTreeSet, HashMap};

/// References of a definition's text outside of the prelude.
pub(super) struct Backing {
    operations: BTreeSet<Box<str>>,
    /// The operation of the only literal call.
    only_call: Option<Box<str>>,
    is_dynamic: bool,
}

impl Backing {
    pub(super) fn from_operations(operations: Vec<Operation<'_>>, is_dynamic: bool) -> Backing {
        let text = |operation: &Operation<'_>| match operation {
            Operation::Upstream { server, tool } => format!("upstream:{server}/{tool}").into_boxed_str(),
            Operation::Tool(name) => format!("tool:{name}").into(),
        };
        let is_call = |operation: &&Operation<'_>| matches!(operation, Operation::Upstream { .. });
        let mut calls = operations.iter().filter(is_call).map(text);
        let only_call = calls.next().filter(|_| calls.next().is_none());
        Backing { operations: operations.iter().map(text).collect(), only_call, is_dynamic }
    }
}

/// The definitions, completed with everything that depends on the others.
pub(super) fn complete(
    meter: &Meter<'_>,
    namespaces: &[DeclaredNamespace],
    coded: &[(&Declared<'_>, CompiledDefinition)],
    on_one_line: impl Fn(Span) -> Box<str>,
) -> Vec<PreludeDefinition> {
    let numbered = || coded.iter().enumerate();
    let numbers: HashMap<(usize, &str), usize> =
        numbered().map(|(number, (declared, _))| ((declared.namespace, declared.text), number)).collect();
    let refers_to: Vec<Vec<usize>> = numbered()
        .map(|(number, (declared, code))| {
            let named = globals(&code.program).filter_map(|name| numbers.get(&(declared.namespace, name)));
            let named: BTreeSet<usize> = named.copied().filter(|other| *other != number).collect();
            named.into_iter().collect()
        })
        .collect();
    let own: Vec<ExportEffects> = coded.iter().map(|(_, code)| effects_of(&code.program)).collect();
    let definition = |(number, (declared, code)): (usize, &(&Declared<'_>, CompiledDefinition))| {
        let reaches = reach(meter, &refers_to, number);
        let reached = || reaches.iter().map(|&number| &coded[number]);
        let requires = reached()
            .flat_map(|(declared, code)| code.backing.operations.iter().chain(&declared.metadata.requires));
        let requires: BTreeSet<Box<str>> = requires.cloned().collect();
        let metadata = &declared.metadata;
        let provider = metadata.provider.clone().or_else(|| code.backing.only_call.clone());
        let effect = metadata.effect.unwrap_or(match provider.is_some() || !requires.is_empty() {
            true => ExportEffect::Read,
            false => ExportEffect::Unknown,
        });
        PreludeDefinition {
            namespace: declared.namespace,
            name: declared.text.into(),
            doc: declared.doc.map(Into::into),
            span: declared.span,
            is_private: declared.is_private,
            body: code.body,
            program: code.program.clone(),
            arity: declared.arity,
            parameters: declared.parameters.clone(),
            visibility: metadata.visibility.unwrap_or(namespaces[declared.namespace].1),
            effect,
            effects: reaches.iter().fold(ExportEffects::default(), |all, number| all.union(own[*number])),
            provider,
            tool: metadata.tool.clone(),
            requires: requires.into_iter().collect(),
            is_dynamic: reached().any(|(_, code)| code.backing.is_dynamic),
            refers_to: refers_to[number].clone(),
            reaches,
            source: on_one_line(declared.span),
        }
    };
    numbered().map(definition).collect()
}

/// Names of its own namespace to which a definition refers.
fn globals(program: &Program) -> impl Iterator<Item = &str> {
    let own = program.globals.iter().filter(|global| global.namespace.is_some());
    own.map(|global| program.symbol(global.symbol))
}

/// Definitions that a definition reaches, including itself; sorted.
fn reach(meter: &Meter<'_>, refers_to: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut reached = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(next) = waiting.pop() {
        if meter.work(1 + refers_to[next].len()).is_err() {
            break;
        }
        waiting.extend(refers_to[next].iter().filter(|other| reached.insert(**other)));
    }
    reached.into_iter().collect()
}
