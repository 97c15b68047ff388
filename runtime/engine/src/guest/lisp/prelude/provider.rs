//! Lets programs find the functions of a prelude (a preloaded Lisp library) and their documentation with `apropos`,
//! `dir` and `doc`.

use super::{LinkedDefinition, Prelude};
use crate::guest::lisp::discovery::{ExportFacts, NameOrigin, NameRecord, Provider, Query};
use ptc_compiler::prelude::ExportEffect;

impl LinkedDefinition {
    fn record(&self) -> NameRecord {
        let compiled = &self.compiled;
        NameRecord {
            origin: NameOrigin::Prelude,
            namespace: self.namespace.to_string(),
            name: compiled.name.to_string(),
            reference: self.reference.clone(),
            kind: "prelude-export",
            section: self.kind(),
            doc: compiled.doc.as_deref().unwrap_or_default().to_owned(),
            signatures: self.usages(),
            examples: Vec::new(),
            export: Some(ExportFacts {
                arity: self.arity(),
                visibility: compiled.visibility.name(),
                effect: compiled.effect,
                provider: compiled.provider.as_deref().map(str::to_owned),
                requires: compiled.requires.iter().map(|id| id.to_string()).collect(),
            }),
        }
    }

    /// How to call it, without its namespace: `(get-user id)`, `(page-size)`.
    pub(super) fn usages(&self) -> Vec<String> {
        match self.compiled.arity {
            Some(_) => self.export().usages(&self.compiled.name),
            None => vec![format!("({})", self.compiled.name)],
        }
    }
}

impl Prelude {
    fn records(&self) -> impl Iterator<Item = NameRecord> {
        self.exports().map(LinkedDefinition::record)
    }

    fn has_namespace(&self, name: &str) -> bool {
        self.namespaces().any(|namespace| namespace.name() == name)
    }

    /// The definition of an export, or of a helper that an export depends on. Other definitions are private.
    fn shown(&self, reference: &str) -> Option<u32> {
        if let Some((namespace, name)) = reference.split_once('/')
            && let Some(export) = self.export(namespace, name)
        {
            return Some(export);
        }
        let is_it = |definition: &LinkedDefinition| definition.reference == reference;
        let number = self.definitions.iter().position(is_it)? as u32;
        self.is_shown(number).then_some(number)
    }

    fn is_shown(&self, number: u32) -> bool {
        let public = |definition: &&LinkedDefinition| !definition.compiled.is_private;
        self.definitions.iter().filter(public).any(|definition| definition.reaches.contains(&number))
    }
}

impl Provider for Prelude {
    fn namespaces(&self) -> Vec<String> {
        Prelude::namespaces(self).map(|namespace| namespace.name().to_owned()).collect()
    }

    fn namespace(&self, name: &str) -> Option<String> {
        self.has_namespace(name).then(|| name.to_owned())
    }

    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>> {
        let own = |record: &NameRecord| record.namespace == namespace;
        self.has_namespace(namespace).then(|| self.records().filter(own).collect())
    }

    fn about(&self, namespace: &str) -> Option<String> {
        let found = Prelude::namespaces(self).find(|known| known.name() == namespace);
        found.and_then(|namespace| namespace.doc()).map(str::to_owned)
    }

    fn find(&self, reference: &str) -> Vec<NameRecord> {
        Prelude::find(self, reference).map(LinkedDefinition::record).into_iter().collect()
    }

    fn search(&self, query: &Query) -> Vec<(u32, NameRecord)> {
        let score =
            |record: &NameRecord| query.score([&*record.reference].into_iter(), [&*record.doc].into_iter());
        let scored = self.records().map(|record| (score(&record), record));
        scored.filter(|(score, _)| *score > 0).collect()
    }

    fn references(&self) -> Vec<String> {
        self.records().map(|record| record.reference).collect()
    }

    fn source(&self, reference: &str) -> Option<String> {
        let number = self.shown(reference)?;
        let definition = &self.definitions[number as usize];
        let compiled = &definition.compiled;
        let visibility = if compiled.is_private { "private" } else { compiled.visibility.name() };
        let effect = match compiled.effect {
            ExportEffect::Read | ExportEffect::Write if !compiled.is_private => {
                format!(", effect: {}", compiled.effect.name())
            }
            _ => String::new(),
        };
        let arity = definition.arity_word();
        let mut text =
            format!(";; {reference} — visibility: {visibility}{effect}, arity: {arity} (effective)\n");
        let others = definition.refers_to.iter().map(|&other| &self.definitions[other as usize].reference);
        let mut others: Vec<String> = others.map(|other| format!("(source {other})")).collect();
        others.sort();
        if !others.is_empty() {
            text.push_str(&format!(";; depends-on: {}\n", others.join(", ")));
        }
        text.push_str(&compiled.source);
        Some(text)
    }
}
