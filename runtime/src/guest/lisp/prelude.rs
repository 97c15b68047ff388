//! A namespace that a host attaches to programs: functions of its own for them to call, which they cannot redefine.

use super::discovery::{NameOrigin, NameRecord, Provider, Query};
use super::rendering;
use crate::run::outcome::Failure;
use ptc_compiler::{CompileOptions, Export, Externals, Namespace, is_reserved_namespace};
use ptc_vm::bytecode::Program;
use ptc_vm::{BoundedText, Exit, Fault, Isolate};
use std::sync::Arc;

/// A compiled namespace. It is immutable and shared by all programs that it is attached to.
#[derive(Debug)]
pub struct Prelude {
    namespace: Namespace,
    source: Box<str>,
    program: Arc<Program>,
}

/// Fuel between two looks at the deadline while definitions are evaluated.
const SLICE: u64 = 100_000;

impl Prelude {
    /// Compiles definitions into a namespace; `defn-` makes a helper that programs cannot refer to.
    ///
    /// # Errors
    /// A reserved namespace; what is wrong with the text.
    pub fn compile(namespace: &str, source: &str) -> Result<Prelude, Failure> {
        if is_reserved_namespace(namespace) || namespace.is_empty() || namespace.contains('/') {
            let message = format!("prelude cannot declare reserved namespace `{namespace}`");
            let fault = Fault::new(ptc_vm::Reason::InvalidForm, message);
            return Err(rendering::fault(&fault, source, &Default::default()));
        }
        let externals = Externals { defines: Some(namespace), ..Externals::default() };
        let compiled = ptc_compiler::compile(source, &externals, &CompileOptions::default())
            .map_err(|rejection| rendering::rejection(&rejection, source))?;
        let namespace = Namespace::new(namespace, None, compiled.exports);
        Ok(Prelude { namespace, source: source.into(), program: compiled.program })
    }

    /// What programs may refer to.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What the same text compiles to the same by.
    pub(super) fn identity(&self) -> (&str, &str) {
        (self.namespace.name(), &self.source)
    }

    /// Defines the names in an isolate.
    pub(super) fn attach(&self, isolate: &mut Isolate) -> Result<(), Box<Fault>> {
        let unit = isolate.attach(self.program.clone())?;
        isolate.start(unit);
        loop {
            match isolate.run(SLICE) {
                Exit::SliceEnd => {}
                Exit::Done => return Ok(()),
                Exit::Fault(mut fault) => {
                    let name = self.namespace.name();
                    fault.message = BoundedText::of(format_args!("namespace {name}: {}", fault.message));
                    return Err(fault);
                }
                Exit::Return | Exit::Fail(_) | Exit::HostCall(_) | Exit::Blocked => {
                    let name = self.namespace.name();
                    return Err(Fault::runtime(format_args!(
                        "namespace {name}: definitions can neither end the program nor ask its host"
                    )));
                }
            }
        }
    }

    fn record(&self, export: &Export) -> NameRecord {
        let (namespace, name) = (self.namespace.name(), &*export.name);
        let signature = |parameters: &str| {
            let parameters = parameters.trim_matches(['[', ']']);
            let blank = if parameters.is_empty() { "" } else { " " };
            format!("({namespace}/{name}{blank}{parameters})")
        };
        NameRecord {
            origin: NameOrigin::Prelude,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            reference: format!("{namespace}/{name}"),
            kind: "prelude-export",
            section: if export.arity.is_some() { "function" } else { "constant" },
            doc: export.doc.as_deref().unwrap_or_default().to_owned(),
            signatures: export.parameters.iter().map(|parameters| signature(parameters)).collect(),
            examples: Vec::new(),
        }
    }

    /// Its exports, a line each.
    pub(super) fn inventory(&self) -> Vec<String> {
        let line = |record: NameRecord| match record.signatures.first() {
            Some(signature) => format!("{signature}  {}", record.doc),
            None => format!("{}  {}", record.reference, record.doc),
        };
        self.records().map(|record| line(record).trim_end().to_owned()).collect()
    }

    fn records(&self) -> impl Iterator<Item = NameRecord> {
        self.namespace.exports().iter().map(|export| self.record(export))
    }
}

impl Provider for Prelude {
    fn namespaces(&self) -> Vec<String> {
        vec![self.namespace.name().to_owned()]
    }

    fn namespace(&self, name: &str) -> Option<String> {
        (name == self.namespace.name()).then(|| name.to_owned())
    }

    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>> {
        (namespace == self.namespace.name()).then(|| self.records().collect())
    }

    fn find(&self, reference: &str) -> Vec<NameRecord> {
        let name = reference.split_once('/').filter(|(namespace, _)| *namespace == self.namespace.name());
        let export = name.and_then(|(_, name)| self.namespace.export(name));
        export.map(|export| self.record(export)).into_iter().collect()
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
}
