//! Literal calls, judged when a program is compiled (decision 4): only what a complete, current tool list
//! proves wrong is an error.

use super::ParsedCall;
use crate::tools::expectation::{Names, Shape, Verdict, below, items, mismatch};
use crate::tools::suggest::nearest;
use crate::tools::words::{Path, Problem, no_such_server, no_such_tool, undeclared_note};
use crate::tools::{Catalog, Tool};
use ptc_compiler::meter::Meter;
use ptc_compiler::tool_catalog::{Literal, LiteralCall, LiteralEntry, LiteralKind, ToolCatalog};
use ptc_compiler::{Diagnostic, Severity};
use ptc_vm::{Brief, Fault, Reason, Span};
use serde_json::Value as Json;
use std::collections::HashSet;

/// Findings of one call.
const MOST: usize = 10;

/// The catalog of one moment, for the compiler.
#[derive(Debug)]
pub(crate) struct StaticCheck<'c> {
    pub(crate) catalog: &'c Catalog,
}

impl ToolCatalog for StaticCheck<'_> {
    fn findings(&self, literal: &LiteralCall<'_>, meter: &Meter<'_>) -> Vec<Diagnostic> {
        let (server_name, server_span) = literal.server;
        let mut call = ParsedCall { server: server_name.to_owned(), tool: String::new() };
        let Some(server) = self.catalog.server(server_name) else {
            call.tool = literal.tool.map(|(tool, _)| tool.to_owned()).unwrap_or_default();
            return vec![unknown(server_span, *no_such_server(&call, self.catalog))];
        };
        let (Some(tools), Some((tool_name, tool_span))) = (server.proven(), literal.tool) else {
            return Vec::new();
        };
        call.tool = tool_name.to_owned();
        let Some(tool) = tools.get(tool_name) else {
            return vec![unknown(
                tool_span,
                match tools.refusal(tool_name) {
                    Some(refusal) => *call.refused_tool(refusal),
                    None => *no_such_tool(&call, tools, self.catalog),
                },
            )];
        };
        let mut check = ArgumentCheck { server: server_name, tool, meter, findings: Vec::new() };
        check.arguments(literal);
        check.findings
    }
}

fn unknown(span: Span, fault: Fault) -> Diagnostic {
    Diagnostic { hints: fault.hints, ..Diagnostic::error(Reason::UnknownTool, span, fault.message) }
}

struct ArgumentCheck<'c> {
    server: &'c str,
    tool: &'c Tool,
    meter: &'c Meter<'c>,
    findings: Vec<Diagnostic>,
}

impl<'c> ArgumentCheck<'c> {
    fn arguments(&mut self, call: &LiteralCall<'_>) {
        let schema = &self.tool.input_schema;
        match &call.arguments.kind {
            LiteralKind::Map { entries, open } => {
                self.map(schema, entries, *open, call.span, &Path::default(), true);
            }
            LiteralKind::Computed | LiteralKind::Nil => {}
            other => {
                let got = shape(other).shown();
                let what = Problem { what: format!(":args must be a map, got {got}"), hint: None };
                self.error(call.arguments.span, what);
            }
        }
    }

    /// Checks a map; forms nest at most as deep as the reader allows, and so does this.
    fn map(
        &mut self,
        schema: &'c Json,
        entries: &[LiteralEntry<'_>],
        open: bool,
        span: Span,
        path: &Path,
        is_top: bool,
    ) {
        let root = &self.tool.input_schema;
        let names = Names::of(root, schema);
        let given: Vec<_> = entries.iter().map(|entry| names.spelled(entry.key, entry.is_keyword)).collect();
        let is_given: HashSet<&str> = given.iter().map(|name| &**name).collect();
        let free: Vec<&str> = names.declared().into_iter().filter(|name| !is_given.contains(name)).collect();
        let required: HashSet<&str> = names.required().collect();
        // Names that a misspelled one most likely stands for: they are not missing as well.
        let mut meant: Vec<&str> = Vec::new();
        for (entry, name) in entries.iter().zip(&given) {
            if self.is_enough() || self.meter.text(name.len()).is_err() {
                return;
            }
            let here = path.entry(name);
            match names.judge(name) {
                Verdict::Known => {}
                Verdict::Undeclared if self.nearest(name, &free).is_none() => {
                    if is_top {
                        let note = undeclared_note(self.server, self.tool, name);
                        self.add(Diagnostic::warning(Reason::InvalidToolArgs, entry.key_span, note));
                    }
                    continue;
                }
                Verdict::Undeclared | Verdict::Refused => {
                    meant.extend(self.nearest(name, &free));
                    self.error(entry.key_span, Problem::unknown(&here, name, &free));
                    continue;
                }
            }
            // An optional entry that is nil counts as left out.
            let is_nil = matches!(entry.value.kind, LiteralKind::Nil);
            if is_nil && !required.contains(&**name) {
                continue;
            }
            if let Some(below) = below(root, schema, name) {
                self.value(below, &entry.value, &here);
            }
        }
        let is_there = |name: &&str| is_given.contains(name) || meant.contains(name);
        let missing: Vec<&str> = names.required().filter(|name| !is_there(name)).collect();
        if !open && !missing.is_empty() {
            self.error(span, Problem::missing(path, &missing));
        }
    }

    /// The nearest of the names; nothing for a name when the work is too much.
    fn nearest<'k>(&self, name: &str, known: &[&'k str]) -> Option<&'k str> {
        self.meter.work(known.len()).ok()?;
        nearest(name, known)
    }

    /// Further findings would not be kept.
    fn is_enough(&self) -> bool {
        self.findings.len() >= MOST && self.has_error()
    }

    fn has_error(&self) -> bool {
        self.findings.iter().any(|known| known.severity == Severity::Error)
    }

    fn value(&mut self, schema: &'c Json, value: &Literal<'_>, path: &Path) {
        if self.is_enough() || self.meter.step().is_err() {
            return;
        }
        let root = &self.tool.input_schema;
        let shape = shape(&value.kind);
        if let Some(why) = mismatch(root, schema, &shape) {
            return self.error(value.span, Problem::mismatch(path, &why, &shape));
        }
        match &value.kind {
            LiteralKind::Map { entries, open } => self.map(schema, entries, *open, value.span, path, false),
            LiteralKind::List(list) => {
                let Some(schema) = items(root, schema) else { return };
                for (at, item) in list.iter().enumerate() {
                    self.value(schema, item, &path.item(at));
                }
            }
            _ => {}
        }
    }

    fn error(&mut self, span: Span, problem: Problem) {
        let message = problem.message(self.server, &self.tool.name);
        let mut hints = problem.hints(self.server, self.tool);
        if self.has_error() && hints.len() > 1 {
            // The signature stands beside the first error of the call.
            hints.pop();
        }
        let hints = hints.into_iter().map(Brief::of).collect();
        self.add(Diagnostic { hints, ..Diagnostic::error(Reason::InvalidToolArgs, span, message) });
    }

    fn add(&mut self, finding: Diagnostic) {
        let errors = self.findings.iter().filter(|known| known.severity == Severity::Error).count();
        if self.findings.len() < MOST || (errors == 0 && finding.severity == Severity::Error) {
            self.findings.push(finding);
        }
    }
}

fn shape<'l>(kind: &'l LiteralKind<'_>) -> Shape<'l> {
    match kind {
        LiteralKind::Nil => Shape::Nil,
        LiteralKind::Bool(value) => Shape::Bool(*value),
        LiteralKind::Int(value) => Shape::Int(*value),
        LiteralKind::BigInt(digits) => Shape::BigInt((*digits).into()),
        LiteralKind::Float(value) => Shape::Float(*value),
        LiteralKind::Text(text) => Shape::Text((*text).into()),
        LiteralKind::List(_) => Shape::List,
        LiteralKind::Map { .. } => Shape::Map,
        LiteralKind::Computed => Shape::Unknown,
    }
}
