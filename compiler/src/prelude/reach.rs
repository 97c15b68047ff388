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
    /// Operations, sorted, without repetition.
    operations: Vec<Box<str>>,
    /// Literal calls, with repetition.
    upstream_calls: Vec<Box<str>>,
    is_dynamic: bool,
}

impl Backing {
    pub(super) fn from_operations(operations: Vec<Operation<'_>>, is_dynamic: bool) -> Backing {
        let text = |operation: &Operation<'_>| match operation {
            Operation::Upstream { server, tool } => format!("upstream:{server}/{tool}").into_boxed_str(),
            Operation::Tool(name) => format!("tool:{name}").into(),
        };
        let is_call = |operation: &&Operation<'_>| matches!(operation, Operation::Upstream { .. });
        let upstream_calls = operations.iter().filter(is_call).map(text).collect();
        let operations: BTreeSet<Box<str>> = operations.iter().map(text).collect();
        Backing { operations: operations.into_iter().collect(), upstream_calls, is_dynamic }
    }

    /// The operation of the only literal call.
    fn only_call(&self) -> Option<Box<str>> {
        match self.upstream_calls.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

/// The definitions, completed with everything that depends on the others.
pub(super) fn complete(
    meter: &Meter<'_>,
    namespaces: &[DeclaredNamespace],
    coded: Vec<(&Declared<'_>, CompiledDefinition)>,
    on_one_line: impl Fn(Span) -> Box<str>,
) -> Vec<PreludeDefinition> {
    let numbers: HashMap<(usize, &str), usize> = coded
        .iter()
        .enumerate()
        .map(|(number, (declared, _))| ((declared.namespace, declared.text), number))
        .collect();
    let refers_to: Vec<Vec<usize>> = coded
        .iter()
        .enumerate()
        .map(|(number, (declared, coded))| {
            let named = globals(&coded.program).filter_map(|name| numbers.get(&(declared.namespace, name)));
            let named: BTreeSet<usize> = named.copied().filter(|other| *other != number).collect();
            named.into_iter().collect()
        })
        .collect();
    let reaches: Vec<Vec<usize>> = (0..coded.len()).map(|number| reach(meter, &refers_to, number)).collect();
    let own: Vec<ExportEffects> = coded.iter().map(|(_, coded)| effects_of(&coded.program)).collect();
    let effects: Vec<ExportEffects> = reaches
        .iter()
        .map(|reached| reached.iter().fold(ExportEffects::default(), |all, number| all.union(own[*number])))
        .collect();
    let backings: Vec<(Vec<Box<str>>, bool)> = reaches
        .iter()
        .map(|reached| {
            let mut all = BTreeSet::new();
            for &number in reached {
                all.extend(coded[number].1.backing.operations.iter().cloned());
                all.extend(coded[number].0.metadata.requires.iter().cloned());
            }
            let is_dynamic = reached.iter().any(|&number| coded[number].1.backing.is_dynamic);
            (all.into_iter().collect(), is_dynamic)
        })
        .collect();
    let parts = coded.into_iter().zip(refers_to).zip(reaches).zip(backings).zip(effects);
    parts
        .map(|(((((declared, coded), refers_to), reaches), (requires, is_dynamic)), effects)| {
            let metadata = &declared.metadata;
            let provider = metadata.provider.clone().or_else(|| coded.backing.only_call());
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
                body: coded.body,
                program: coded.program,
                arity: declared.arity(),
                parameters: coded.parameters,
                visibility: metadata.visibility.unwrap_or(namespaces[declared.namespace].visibility),
                effect,
                effects,
                provider,
                tool: metadata.tool.clone(),
                requires,
                is_dynamic,
                refers_to,
                reaches,
                source: on_one_line(declared.span),
            }
        })
        .collect()
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
