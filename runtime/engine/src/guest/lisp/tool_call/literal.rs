//! Checks tool calls with literal (constant) arguments when a program is compiled: that the server and tool exist, and
//! that the arguments fit the tool's schema. Only what a complete, current tool list proves wrong is an error.

use super::parse::syntax;
use crate::broker::ToolBroker;
use ptc_base::secrets::{Cut, dotted};
use ptc_calls::schema::judge::{Judge, Names, ValueShape, Verdict, below, items, mismatch};
use ptc_calls::tools::call_messages::{
    Notation, Path, Problem, WrongCall, configured, no_such_server, no_such_tool, refused_tool,
    undeclared_note,
};
use ptc_calls::tools::suggest::nearest;
use ptc_calls::tools::{Catalog, LookUp, Refusal, UpstreamTool};
use ptc_compiler::meter::Meter;
use ptc_compiler::tool_catalog::{Literal, LiteralCall, LiteralEntry, LiteralKind, ToolCatalog};
use ptc_compiler::{Diagnostic, Severity};
use ptc_vm::{BoundedText, Reason, Span};
use serde_json::Value as Json;
use std::collections::HashSet;

/// Steps in a schema per step of the meter.
const JUDGED: usize = 8;

/// Limit of findings about one call.
const MOST: usize = 10;

/// Checks literal calls against the catalog of one moment, for the compiler.
pub(crate) struct StaticCheck<'c> {
    pub(crate) catalog: &'c Catalog,
    /// Knows which servers are healthy.
    pub(crate) broker: &'c ToolBroker,
}

impl std::fmt::Debug for StaticCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.catalog.fmt(f)
    }
}

impl StaticCheck<'_> {
    /// What is wrong with a call of any tool, in the words that a computed call gets.
    fn malformed(&self, literal: &LiteralCall<'_>) -> Option<Diagnostic> {
        let wrong = |span, message| {
            Some(Diagnostic::error(Reason::RuntimeError, span, message).hint(syntax(literal.form)))
        };
        let form = literal.form.qualified_name();
        let (server, span) = literal.server;
        if server.is_empty() {
            let servers: Vec<&str> = self.catalog.servers().map(|server| &*server.name).collect();
            let text = format!("{form} requires :server (string), got \"\".{}", configured(&servers));
            return wrong(span, text);
        }
        let (tool, span) = literal.tool?;
        if tool.is_empty() {
            let text = format!("{form} on upstream '{server}' requires :tool (string), got \"\"");
            return wrong(span, text);
        }
        None
    }
}

/// Byte limit of a value in a message.
const SHOWN: usize = 200;

/// Prints a literal as programs do; `None` if a part of it is not known before the program runs.
fn written(kind: &LiteralKind<'_>, text: &mut String) -> Option<()> {
    match kind {
        LiteralKind::Nil => text.push_str("nil"),
        LiteralKind::Bool(value) => text.push_str(&value.to_string()),
        LiteralKind::Int(value) => text.push_str(&value.to_string()),
        LiteralKind::BigInt(digits) => text.push_str(digits),
        LiteralKind::Float(value) => text.push_str(&format!("{value:?}")),
        LiteralKind::Text(value) => text.push_str(&format!("{value:?}")),
        LiteralKind::List(items) if text.len() <= SHOWN => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { " " } else { "" });
                written(&item.kind, text)?;
            }
            text.push(']');
        }
        LiteralKind::List(_) | LiteralKind::Map { .. } | LiteralKind::Computed => return None,
    }
    Some(())
}

impl ToolCatalog for StaticCheck<'_> {
    fn findings(&self, literal: &LiteralCall<'_>, meter: &Meter<'_>) -> Vec<Diagnostic> {
        if let Some(wrong) = self.malformed(literal) {
            return vec![wrong];
        }
        let (server, server_span) = literal.server;
        let (name, span) = literal.tool.unwrap_or(("", server_span));
        let tool = match self.catalog.look_up(server, name) {
            LookUp::Ready(tool) => tool,
            LookUp::NoServer => {
                let wrong = no_such_server(server, name, self.catalog, Notation::Lisp);
                return vec![unknown(server_span, wrong)];
            }
            // The tool is not known before the program runs.
            _ if literal.tool.is_none() => return Vec::new(),
            LookUp::NotLoaded => return Vec::new(),
            // The program gets that as data.
            LookUp::Refused(Refusal::Changed) => return Vec::new(),
            LookUp::Refused(refusal) => return vec![unknown(span, refused_tool(server, name, refusal))],
            // Only the list of a healthy server proves that it has no such tool; otherwise the call itself
            // will tell.
            LookUp::NoTool(_) if matches!(self.broker.look_up(server, name), LookUp::NotLoaded) => {
                return Vec::new();
            }
            LookUp::NoTool(tools) => {
                return vec![unknown(span, no_such_tool(server, name, &tools, self.catalog, Notation::Lisp))];
            }
        };
        let judge = Judge::new(&tool.input_schema, u64::MAX);
        let mut check = ArgumentCheck { server, tool: &tool, judge, meter, findings: Vec::new() };
        check.arguments(literal);
        check.findings
    }
}

fn unknown(span: Span, wrong: WrongCall) -> Diagnostic {
    diagnostic(Reason::UnknownTool, span, wrong)
}

fn diagnostic(reason: Reason, span: Span, wrong: WrongCall) -> Diagnostic {
    let hints = wrong.hints.into_iter().map(BoundedText::new).collect();
    Diagnostic { hints, ..Diagnostic::error(reason, span, wrong.message) }
}

struct ArgumentCheck<'c> {
    server: &'c str,
    tool: &'c UpstreamTool,
    judge: Judge<'c>,
    meter: &'c Meter<'c>,
    findings: Vec<Diagnostic>,
}

impl<'c> ArgumentCheck<'c> {
    fn arguments(&mut self, call: &LiteralCall<'_>) {
        let schema = &self.tool.input_schema;
        match &call.arguments.kind {
            LiteralKind::Map { entries, open } => {
                self.map(schema, entries, *open, call.span, &Path::root(Notation::Lisp), true);
            }
            LiteralKind::Computed | LiteralKind::Nil => {}
            other => {
                let mut text = String::new();
                let got = match written(other, &mut text) {
                    Some(()) => dotted(&text, Cut::Bytes(SHOWN)),
                    None => shape(other).shown().into(),
                };
                let what = Problem { what: format!(":args must be a map, got {got}"), hint: None };
                self.error(call.arguments.span, what);
            }
        }
    }

    /// Checks a map. Forms nest at most as deep as the reader allows, and so does this.
    fn map(
        &mut self,
        schema: &'c Json,
        entries: &[LiteralEntry<'_>],
        open: bool,
        span: Span,
        path: &Path,
        is_top: bool,
    ) {
        let names = Names::for_object(&self.judge, schema);
        let given: Vec<_> = entries.iter().map(|entry| names.spelled(entry.key, entry.is_keyword)).collect();
        let is_given: HashSet<&str> = given.iter().map(|name| &**name).collect();
        let free: Vec<&str> = names.declared().into_iter().filter(|name| !is_given.contains(name)).collect();
        let required: HashSet<&str> = names.required().collect();
        // Names that misspelled ones most likely stand for: they are not reported as missing.
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
                        let note = undeclared_note(self.server, self.tool, name, Notation::Lisp);
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
            if let Some(below) = below(&self.judge, schema, name) {
                self.value(below, &entry.value, &here);
            }
        }
        let is_there = |name: &&str| is_given.contains(name) || meant.contains(name);
        let missing: Vec<&str> = names.required().filter(|name| !is_there(name)).collect();
        if !open && !missing.is_empty() {
            self.error(span, Problem::missing(path, &missing));
        }
    }

    /// The nearest of the names; `None` when the search would cost too much.
    fn nearest<'k>(&self, name: &str, known: &[&'k str]) -> Option<&'k str> {
        self.meter.work(known.len()).ok()?;
        nearest(name, known)
    }

    /// Further findings would be dropped.
    fn is_enough(&self) -> bool {
        self.findings.len() >= MOST && self.has_error()
    }

    fn has_error(&self) -> bool {
        self.findings.iter().any(|known| known.severity == Severity::Error)
    }

    fn value(&mut self, schema: &'c Json, value: &Literal<'_>, path: &Path) {
        let work = usize::try_from(self.judge.take_work()).unwrap_or(usize::MAX);
        if self.is_enough() || self.meter.work(work / JUDGED + 1).is_err() {
            return;
        }
        let shape = shape(&value.kind);
        if let Some(why) = mismatch(&self.judge, schema, &shape) {
            return self.error(value.span, Problem::mismatch(path, &why, &shape));
        }
        match &value.kind {
            LiteralKind::Map { entries, open } => self.map(schema, entries, *open, value.span, path, false),
            LiteralKind::List(list) => {
                let Some(schema) = items(&self.judge, schema) else { return };
                for (at, item) in list.iter().enumerate() {
                    self.value(schema, item, &path.item(at));
                }
            }
            _ => {}
        }
    }

    fn error(&mut self, span: Span, problem: Problem) {
        let mut wrong = problem.into_wrong_call(self.server, self.tool);
        if self.has_error() && wrong.hints.len() > 1 {
            // Only the first error of a call shows the signature.
            wrong.hints.pop();
        }
        self.add(diagnostic(Reason::InvalidToolArgs, span, wrong));
    }

    fn add(&mut self, finding: Diagnostic) {
        let errors = self.findings.iter().filter(|known| known.severity == Severity::Error).count();
        if self.findings.len() < MOST || (errors == 0 && finding.severity == Severity::Error) {
            self.findings.push(finding);
        }
    }
}

fn shape<'l>(kind: &'l LiteralKind<'_>) -> ValueShape<'l> {
    match kind {
        LiteralKind::Nil => ValueShape::Nil,
        LiteralKind::Bool(value) => ValueShape::Bool(*value),
        LiteralKind::Int(value) => ValueShape::Int(*value),
        LiteralKind::BigInt(digits) => ValueShape::BigInt((*digits).into()),
        LiteralKind::Float(value) => ValueShape::Float(*value),
        LiteralKind::Text(text) => ValueShape::Text((*text).into()),
        LiteralKind::List(_) => ValueShape::List,
        LiteralKind::Map { .. } => ValueShape::Map,
        LiteralKind::Computed => ValueShape::Unknown,
    }
}
