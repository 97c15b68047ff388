//! Describes the functions of a prelude (a preloaded Lisp library) that clients may call as MCP tools: schemas,
//! parameters, and hints of what a call may do.

use super::requirements::operation;
use super::{LinkedDefinition, Prelude};
use ptc_calls::tools::Catalog;
use ptc_compiler::prelude::ExportEffect;
use serde_json::Value;

/// An export with `:tool` in its metadata.
#[derive(Clone, Debug)]
pub struct ExposedExport {
    /// `namespace/name`.
    pub reference: String,
    /// Its description for models.
    pub description: String,
    /// JSON Schema of its arguments, if it says one.
    pub input: Option<Value>,
    /// JSON Schema of its result, if it says one.
    pub output: Option<Value>,
    /// The names of its parameters, for each arity; a destructured one is named by its number.
    pub parameters: Vec<Vec<String>>,
}

/// What a call of an export may do, under the names of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportHints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// A repeated call has no further effect.
    pub idempotent: bool,
    /// It reaches systems outside of this process.
    pub open_world: bool,
}

impl ExportHints {
    /// Of an export that may call anything.
    pub const UNKNOWN: ExportHints =
        ExportHints { read_only: false, destructive: true, idempotent: false, open_world: true };

    /// Of an export that calls nothing.
    const PURE: ExportHints =
        ExportHints { read_only: true, destructive: false, idempotent: true, open_world: false };

    fn and(self, other: ExportHints) -> ExportHints {
        ExportHints {
            read_only: self.read_only && other.read_only,
            destructive: self.destructive || other.destructive,
            idempotent: self.idempotent && other.idempotent,
            open_world: self.open_world || other.open_world,
        }
    }
}

impl Prelude {
    /// Its exports that say how they are offered as tools.
    #[doc(hidden)]
    pub fn exposed(&self) -> impl Iterator<Item = ExposedExport> {
        self.exports().filter_map(|export| {
            let tool = export.compiled.tool.as_ref()?;
            let schema = |text: &Option<Box<str>>| serde_json::from_str(text.as_deref()?).ok();
            let description = tool.description.as_deref().or(export.compiled.doc.as_deref());
            let parameters = export.compiled.parameters.iter();
            Some(ExposedExport {
                reference: export.reference.clone(),
                description: description.unwrap_or(&export.reference).to_owned(),
                input: schema(&tool.input),
                output: schema(&tool.output),
                parameters: parameters
                    .map(|names| names.split_whitespace().map(str::to_owned).collect())
                    .collect(),
            })
        })
    }

    /// What a call of an export may do, from the literal calls of its code and what is known of their tools.
    #[doc(hidden)]
    pub fn hints(&self, reference: &str, catalog: &Catalog) -> ExportHints {
        self.find(reference).map_or(ExportHints::UNKNOWN, |export| hints(export, catalog))
    }
}

fn hints(export: &LinkedDefinition, catalog: &Catalog) -> ExportHints {
    let compiled = &export.compiled;
    if compiled.is_dynamic {
        return ExportHints::UNKNOWN;
    }
    let of_call = |id: &str| {
        let Some((server, tool)) = operation(id) else { return ExportHints::UNKNOWN };
        let Some(tool) = catalog.tool(server, tool) else { return ExportHints::UNKNOWN };
        let annotations = &tool.annotations;
        let read_only =
            annotations.read_only_hint == Some(true) && annotations.destructive_hint != Some(true);
        ExportHints {
            read_only,
            destructive: !read_only && annotations.destructive_hint != Some(false),
            idempotent: read_only || annotations.idempotent_hint == Some(true),
            open_world: annotations.open_world_hint != Some(false),
        }
    };
    let all = compiled.requires.iter().map(|id| of_call(id)).fold(ExportHints::PURE, ExportHints::and);
    // Its author knows more than its calls show.
    let says_write = compiled.effect == ExportEffect::Write;
    ExportHints { read_only: all.read_only && !says_write, idempotent: all.idempotent && !says_write, ..all }
}
