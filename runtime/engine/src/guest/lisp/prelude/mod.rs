//! Compiles and composes preludes, Lisp libraries that define namespaces for programs, links what a program uses of
//! them, and describes them.
//!
//! Programs cannot redefine these namespaces. A prelude is compiled once, whatever it is attached to. Attaching it
//! costs nothing. When a program names an export, the export and what it depends on are linked into the isolate before
//! the program's own run begins.
//!
//! # Layout
//! - this file: what a prelude is, and how it is composed of texts; `constants`: values that are computed at
//!   that time
//! - `link`: links what a program needs into its isolate; `requirements`: what a prelude needs of the host
//! - `provider`: its names in discovery; `inventory`, `document`: texts for prompts and people; `exposed`: exports that
//!   are offered as tools; `trace`: facts for records of runs

mod constants;
mod document;
mod exposed;
mod inventory;
mod link;
mod provider;
mod requirements;
mod trace;

pub use exposed::{ExportHints, ExposedExport};

use super::rendering;
use constants::ConstantAllowance;
pub(super) use link::{Attached, relink};
use ptc_base::digest::sha256_hex;
use ptc_calls::run::outcome::{Failure, Location};
use ptc_calls::tools::ServerNames;
use ptc_compiler::prelude::{CompiledPrelude, PreludeDefinition, Visibility};
use ptc_compiler::{CompileOptions, Export, Namespace, diagnostic::Diagnostic};
use ptc_vm::bytecode::PlainData;
use ptc_vm::{Interrupt, Reason, Span};
use serde_json::Value;
use std::sync::Arc;

/// A text of a prelude, and its origin.
#[derive(Clone, Debug, Default)]
pub struct PreludeSource {
    /// Its name in locations: a file name, or any name that its owner gives it.
    pub name: String,
    /// The text.
    pub text: String,
    /// Its id, if it is stored under one.
    pub id: Option<String>,
    /// Its version under that id.
    pub version: Option<u64>,
    /// Its origin, as `file:crm.clj`; never a secret.
    pub origin: Option<String>,
}

impl PreludeSource {
    /// A text with a name and nothing else.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> PreludeSource {
        PreludeSource { name: name.into(), text: text.into(), ..PreludeSource::default() }
    }
}

/// A compiled prelude. It is immutable and shared by all programs that it is attached to.
#[derive(Clone, Debug)]
pub struct Prelude {
    components: Vec<Component>,
    /// Sorted by name.
    namespaces: Vec<AttachedNamespace>,
    /// Definitions of all components.
    definitions: Vec<LinkedDefinition>,
    warnings: Vec<(usize, Diagnostic)>,
    source_hash: String,
    artifact_hash: String,
    trace: Arc<Value>,
}

/// One text that a prelude is made of.
#[derive(Clone, Debug)]
struct Component {
    source: PreludeSource,
    hash: String,
    /// Names of its namespaces, in the order of the text.
    namespaces: Vec<Box<str>>,
}

/// A namespace, and where its exports are defined.
#[derive(Clone, Debug)]
struct AttachedNamespace {
    namespace: Namespace,
    /// Indices of its exports in `definitions` of the prelude.
    definitions: Vec<u32>,
    component: usize,
}

/// A definition of a component.
#[derive(Clone, Debug)]
struct LinkedDefinition {
    component: usize,
    namespace: Box<str>,
    /// `namespace/name`.
    reference: String,
    compiled: PreludeDefinition,
    /// The value of a constant.
    data: Option<Arc<PlainData>>,
    /// All definitions that it depends on, itself included.
    reaches: Vec<u32>,
    /// The definitions that it names.
    refers_to: Vec<u32>,
}

/// Why a text does not compile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PreludeError {
    /// The name of the text.
    pub source: String,
    /// What is wrong with it.
    pub failure: Box<Failure>,
}

impl std::fmt::Display for PreludeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.source, self.failure)
    }
}

impl std::error::Error for PreludeError {}

impl Prelude {
    /// Compiles one text.
    ///
    /// # Errors
    /// The text does not compile.
    pub fn compile(name: &str, text: &str) -> Result<Prelude, PreludeError> {
        Prelude::compile_until(name, text, &Interrupt::default())
    }

    /// [`Prelude::compile`] that stops without a prelude when the interrupt is raised.
    pub(crate) fn compile_until(
        name: &str,
        text: &str,
        interrupt: &Interrupt,
    ) -> Result<Prelude, PreludeError> {
        Prelude::compose_until(vec![PreludeSource::new(name, text)], interrupt)
    }

    /// Compiles a text that is part of this program. It may declare this namespace although it is reserved.
    pub(crate) fn of_host(namespace: &str, text: &str) -> Result<Prelude, PreludeError> {
        let source = PreludeSource { origin: Some("host".to_owned()), ..PreludeSource::new(namespace, text) };
        let mut prelude = Prelude::empty(sha256_hex(text.as_bytes()));
        prelude.add(source, Some(namespace), &mut ConstantAllowance::new(&Interrupt::default()))?;
        prelude.complete();
        Ok(prelude)
    }

    fn empty(source_hash: String) -> Prelude {
        Prelude {
            components: Vec::new(),
            namespaces: Vec::new(),
            definitions: Vec::new(),
            warnings: Vec::new(),
            source_hash,
            artifact_hash: String::new(),
            trace: Arc::default(),
        }
    }

    /// Compiles texts, each on its own, and composes them in this order.
    ///
    /// # Errors
    /// The first text that does not compile; a namespace that two of them declare.
    #[doc(hidden)]
    pub fn compose(sources: Vec<PreludeSource>) -> Result<Prelude, PreludeError> {
        Prelude::compose_until(sources, &Interrupt::default())
    }

    /// [`Prelude::compose`] that stops without a prelude when the interrupt is raised. The constants of all
    /// texts share one allowance.
    pub(crate) fn compose_until(
        sources: Vec<PreludeSource>,
        interrupt: &Interrupt,
    ) -> Result<Prelude, PreludeError> {
        let mut allowance = ConstantAllowance::new(interrupt);
        let source_hash = hash_of_all(&sources.iter().map(|source| source.text.as_str()).collect::<Vec<_>>());
        let mut prelude = Prelude::empty(source_hash);
        for source in sources {
            prelude.add(source, None, &mut allowance)?;
        }
        prelude.complete();
        Ok(prelude)
    }

    /// The texts that it is composed of.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &PreludeSource> {
        self.components.iter().map(|component| &component.source)
    }

    /// The digests of these texts.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &str> {
        self.components.iter().map(|component| component.hash.as_str())
    }

    /// The same prelude, with exports that prompts do not list whatever their metadata says: those of these
    /// names, as `crm/get-user`, or `crm` for a whole namespace. A host can narrow what prompts show and
    /// never widen it.
    ///
    /// # Errors
    /// A name that is no export and no namespace.
    pub fn narrowed(&self, names: &[&str]) -> Result<Prelude, String> {
        let mut narrowed = self.clone();
        for name in names {
            let mut is_known = false;
            for definition in
                narrowed.definitions.iter_mut().filter(|definition| !definition.compiled.is_private)
            {
                if definition.reference == *name || &*definition.namespace == *name {
                    definition.compiled.visibility = Visibility::Discoverable;
                    is_known = true;
                }
            }
            if !is_known {
                return Err(format!("there is no export or namespace {name} in the prelude"));
            }
        }
        narrowed.complete();
        Ok(narrowed)
    }

    /// The same prelude for a restricted view of the servers: exports that need others are removed.
    #[must_use]
    #[doc(hidden)]
    pub fn restricted_to(&self, servers: &ServerNames) -> Prelude {
        let mut part = self.clone();
        for definition in &mut part.definitions {
            let mut servers_of =
                definition.compiled.requires.iter().filter_map(|id| requirements::server(id));
            definition.compiled.is_private |= servers_of.any(|name| !servers.contains(name));
        }
        let definitions = &part.definitions;
        for attached in &mut part.namespaces {
            attached.definitions.retain(|&number| !definitions[number as usize].compiled.is_private);
            let exports = attached.definitions.iter().map(|&number| definitions[number as usize].export());
            let (name, doc) = (attached.namespace.name(), attached.namespace.doc().map(Into::into));
            attached.namespace = Namespace::new(name, doc, exports.collect());
        }
        part.complete();
        part
    }

    /// Several preludes as one, in this order; `None` for none.
    ///
    /// # Errors
    /// A namespace that two of them have.
    pub(crate) fn joined(preludes: &[Arc<Prelude>]) -> Result<Option<Arc<Prelude>>, String> {
        let [first, others @ ..] = preludes else { return Ok(None) };
        if others.is_empty() {
            return Ok(Some(first.clone()));
        }
        let mut joined = Prelude::clone(first);
        for other in others {
            joined.append(other)?;
        }
        let texts = joined.components.iter().map(|component| component.source.text.as_str());
        joined.source_hash = hash_of_all(&texts.collect::<Vec<_>>());
        joined.complete();
        Ok(Some(Arc::new(joined)))
    }

    fn append(&mut self, other: &Prelude) -> Result<(), String> {
        let is_known = |name: &str| self.namespaces().any(|namespace| namespace.name() == name);
        if let Some(twice) = other.namespaces().find(|namespace| is_known(namespace.name())) {
            return Err(format!("two preludes have the namespace {}", twice.name()));
        }
        let (first, first_component) = (self.definitions.len() as u32, self.components.len());
        let at = |number: &u32| first + number;
        self.definitions.extend(other.definitions.iter().map(|definition| LinkedDefinition {
            component: first_component + definition.component,
            reaches: definition.reaches.iter().map(at).collect(),
            refers_to: definition.refers_to.iter().map(at).collect(),
            ..definition.clone()
        }));
        self.namespaces.extend(other.namespaces.iter().map(|attached| AttachedNamespace {
            namespace: attached.namespace.clone(),
            definitions: attached.definitions.iter().map(at).collect(),
            component: first_component + attached.component,
        }));
        let warnings = other.warnings.iter().cloned();
        self.warnings.extend(warnings.map(|(component, warning)| (first_component + component, warning)));
        self.components.extend(other.components.iter().cloned());
        Ok(())
    }

    /// Computes everything that follows from its namespaces.
    fn complete(&mut self) {
        self.namespaces.sort_by(|a, b| a.namespace.name().cmp(b.namespace.name()));
        self.artifact_hash = sha256_hex(self.facts().to_string().as_bytes());
        self.trace = Arc::new(self.make_trace());
    }

    fn add(
        &mut self,
        source: PreludeSource,
        reserved: Option<&str>,
        allowance: &mut ConstantAllowance,
    ) -> Result<(), PreludeError> {
        let failed =
            |failure: Failure| PreludeError { source: source.name.clone(), failure: Box::new(failure) };
        let mut options = CompileOptions::default();
        options.budget.interrupt = Some(allowance.interrupt().clone());
        let compiled = match reserved {
            None => ptc_compiler::prelude::compile(&source.text, &options),
            Some(namespace) => ptc_compiler::prelude::compile_reserved(&source.text, namespace, &options),
        };
        let compiled =
            compiled.map_err(|rejection| failed(rendering::rejection(&rejection, &source.text)))?;
        let data =
            constants::evaluate(&compiled, &source.text, allowance).map_err(|failure| failed(*failure))?;
        let CompiledPrelude { namespaces, definitions, warnings } = compiled;
        let component = self.components.len();
        for declared in &namespaces {
            let known = self.namespaces.iter().find(|known| known.namespace.name() == &*declared.name);
            if let Some(known) = known {
                let first = &self.components[known.component].source;
                return Err(failed(twice(&declared.name, first, &source, declared.span)));
            }
        }
        let first = self.definitions.len() as u32;
        let at = |number: &usize| first + *number as u32;
        for (compiled, data) in definitions.into_iter().zip(data) {
            let namespace = namespaces[compiled.namespace].name.clone();
            self.definitions.push(LinkedDefinition {
                component,
                reference: format!("{namespace}/{}", compiled.name),
                namespace,
                reaches: compiled.reaches.iter().map(at).collect(),
                refers_to: compiled.refers_to.iter().map(at).collect(),
                compiled,
                data,
            });
        }
        for declared in &namespaces {
            let own = self.definitions.iter().enumerate().skip(first as usize).filter(|(_, definition)| {
                definition.namespace == declared.name && !definition.compiled.is_private
            });
            let mut own: Vec<(Export, u32)> =
                own.map(|(number, definition)| (definition.export(), number as u32)).collect();
            own.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
            let (exports, definitions) = own.into_iter().unzip();
            let namespace = Namespace::new(&*declared.name, declared.doc.clone(), exports);
            self.namespaces.push(AttachedNamespace { namespace, definitions, component });
        }
        self.warnings.extend(warnings.into_iter().map(|warning| (component, warning)));
        let hash = sha256_hex(source.text.as_bytes());
        let namespaces = namespaces.into_iter().map(|declared| declared.name).collect();
        self.components.push(Component { source, hash, namespaces });
        Ok(())
    }

    /// The namespaces that programs may refer to.
    #[doc(hidden)]
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.iter().map(|attached| &attached.namespace)
    }

    /// SHA-256 of its texts, in hexadecimal.
    pub fn source_hash(&self) -> &str {
        &self.source_hash
    }

    /// SHA-256 of its interface, in hexadecimal: it changes with its exports and not with their code.
    #[doc(hidden)]
    pub fn artifact_hash(&self) -> &str {
        &self.artifact_hash
    }

    /// Warnings about its texts.
    #[doc(hidden)]
    pub fn warnings(&self) -> impl Iterator<Item = (&PreludeSource, &Diagnostic)> {
        self.warnings.iter().map(|(component, warning)| (&self.components[*component].source, warning))
    }

    /// The export of a reference `namespace/name`.
    fn find(&self, reference: &str) -> Option<&LinkedDefinition> {
        let (namespace, name) = reference.split_once('/')?;
        self.export(namespace, name).map(|number| &self.definitions[number as usize])
    }

    fn export(&self, namespace: &str, name: &str) -> Option<u32> {
        let at = self.namespaces.binary_search_by(|known| known.namespace.name().cmp(namespace)).ok()?;
        let AttachedNamespace { namespace, definitions, .. } = &self.namespaces[at];
        let at = namespace.exports().binary_search_by(|export| (*export.name).cmp(name)).ok()?;
        definitions.get(at).copied()
    }

    /// A location in one of its texts, as `crm.clj:3:5`, with line and excerpt.
    fn location(&self, definition: u32, span: Span) -> (String, Location) {
        let source = &self.components[self.definitions[definition as usize].component].source;
        let location = Location::resolve(&source.text, span);
        (format!("{}:{}:{}", source.name, location.start.line, location.start.column), location)
    }
}

impl LinkedDefinition {
    fn export(&self) -> Export {
        let PreludeDefinition { name, arity, parameters, effects, .. } = &self.compiled;
        Export { name: name.clone(), arity: *arity, parameters: parameters.clone(), effects: *effects }
    }
}

fn twice(name: &str, first: &PreludeSource, second: &PreludeSource, span: Span) -> Failure {
    let ids = match (&first.id, &second.id) {
        (None, None) => String::new(),
        _ => {
            let [first, second] = [first, second].map(|source| source.id.as_ref().unwrap_or(&source.name));
            format!(" ({first:?} and {second:?})")
        }
    };
    let message = format!("namespace `{name}` is declared by more than one selected prelude{ids}");
    let error = Diagnostic::error(Reason::InvalidNamespace, span, message)
        .hint(format!("It is declared in {} as well: leave one of them out.", first.name));
    rendering::rejection(&error.into(), &second.text)
}

/// SHA-256 of texts in this order; for a single text, its own hash.
fn hash_of_all(texts: &[&str]) -> String {
    sha256_hex(texts.join("\n\n;; --- prelude component ---\n\n").as_bytes())
}
