//! The calls that stand in the text of a program, found without running it.

use crate::run::account::{PlannedCall, ProgramPlan};
use crate::sync::Locked;
use ptc_compiler::diagnostic::{Diagnostic, Location, Position};
use ptc_compiler::meter::Meter;
use ptc_compiler::tool_catalog::{Literal, LiteralCall, LiteralKind, ToolCatalog};
use ptc_compiler::{CompileOptions, Compiled, Externals, Namespace};
use serde_json::{Map, Value as Json};
use std::sync::Mutex;

impl ProgramPlan {
    /// The calls of a program that may use these namespaces. A program that does not compile makes none.
    pub fn for_program(source: &str, namespaces: &[&Namespace]) -> ProgramPlan {
        ProgramPlan::recorded(source, |catalog| {
            let externals = Externals { namespaces, catalog: Some(catalog), ..Externals::default() };
            ptc_compiler::compile(source, &externals, &CompileOptions::default()).ok()
        })
    }

    /// The calls of a program that is compiled with this catalog.
    pub(crate) fn recorded(
        source: &str,
        compile: impl FnOnce(&dyn ToolCatalog) -> Option<Compiled>,
    ) -> ProgramPlan {
        let recorder = Recorder { source, calls: Mutex::default() };
        match compile(&recorder) {
            Some(compiled) => {
                ProgramPlan { calls: recorder.calls.locked().clone(), is_open: compiled.servers.dynamic }
            }
            None => ProgramPlan::default(),
        }
    }
}

/// Records calls while a program is compiled.
#[derive(Debug)]
struct Recorder<'s> {
    source: &'s str,
    calls: Mutex<Vec<PlannedCall>>,
}

impl ToolCatalog for Recorder<'_> {
    fn findings(&self, call: &LiteralCall<'_>, _: &Meter<'_>) -> Vec<Diagnostic> {
        let Position { line, column } = Location::resolve(self.source, call.span).start;
        self.calls.locked().push(PlannedCall {
            server: call.server.0.to_owned(),
            tool: call.tool.map(|(tool, _)| tool.to_owned()),
            arguments: json(&call.arguments).map(|arguments| arguments.to_string()),
            line,
            column,
        });
        Vec::new()
    }
}

/// A literal as JSON; `None` if a part of it is computed.
fn json(literal: &Literal<'_>) -> Option<Json> {
    Some(match &literal.kind {
        LiteralKind::Nil => Json::Null,
        LiteralKind::Bool(value) => Json::Bool(*value),
        LiteralKind::Int(value) => Json::from(*value),
        // It is out of the range of numbers that are compared exactly.
        LiteralKind::BigInt(_) | LiteralKind::Computed => return None,
        LiteralKind::Float(value) => Json::from(*value),
        LiteralKind::Text(text) => Json::from(*text),
        LiteralKind::List(items) => Json::Array(items.iter().map(json).collect::<Option<_>>()?),
        LiteralKind::Map { open: true, .. } => return None,
        LiteralKind::Map { entries, open: false } => {
            let members = entries.iter().map(|entry| Some((entry.key.to_owned(), json(&entry.value)?)));
            Json::Object(members.collect::<Option<Map<_, _>>>()?)
        }
    })
}
