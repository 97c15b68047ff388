//! Analyses a program without running it: lists its tool calls, and the decisions of a policy about the data that may
//! flow into each call.

use super::decide::Policy;
use super::flows::Tainted;
use crate::run::account::{PlannedCall, ProgramPlan};
use crate::run::outcome::PolicyRuling;
use crate::tools::UpstreamTool;
use ptc_base::sync::Locked;
use ptc_compiler::diagnostic::{Diagnostic, Location, Position};
use ptc_compiler::flows::{FlowCall, FlowCallKind};
use ptc_compiler::meter::Meter;
use ptc_compiler::tool_catalog::{Literal, LiteralCall, LiteralKind, ToolCatalog};
use ptc_compiler::{CompileOptions, Compiled, Externals, Namespace};
use serde_json::{Map, Value as Json};
use std::sync::{Arc, Mutex};

/// What a policy says of the data that may reach a call of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFlow {
    /// `server/tool`.
    pub call: String,
    /// Line of the call, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What is said, with source, sink and the shortest change.
    pub ruling: PolicyRuling,
}

impl Policy {
    /// What it says of the data flows that a program may have. `find` looks a tool up.
    #[doc(hidden)]
    pub fn flows(
        &self,
        plan: &ProgramPlan,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> Vec<PlannedFlow> {
        let Some(flows) = &plan.flows else { return Vec::new() };
        let findings = self.planned_findings(&Tainted::of_plan(flows.clone()), find);
        let said = findings.into_iter().map(|(index, finding)| PlannedFlow {
            call: flows.calls[index].name(),
            line: flows.calls[index].line,
            column: flows.calls[index].column,
            ruling: PolicyRuling::new(finding.verdict, finding.text.into()),
        });
        said.collect()
    }
}

impl ProgramPlan {
    /// The calls of a program that may use these namespaces.
    ///
    /// # Errors
    /// The program does not compile: the place and the message of its first error.
    pub fn for_program(source: &str, namespaces: &[&Namespace]) -> Result<ProgramPlan, String> {
        let plan = ProgramPlan::recorded(source, |catalog| {
            let externals = Externals { namespaces, catalog: Some(catalog), ..Externals::default() };
            let options = CompileOptions { flows: true, ..CompileOptions::default() };
            ptc_compiler::compile(source, &externals, &options)
        });
        plan.map_err(|rejection| rejection.first().map_or_else(String::new, |error| placed(source, error)))
    }

    /// The calls of a program that is compiled with this catalog.
    ///
    /// # Errors
    /// It does not compile.
    pub fn recorded<E>(
        source: &str,
        compile: impl FnOnce(&dyn ToolCatalog) -> Result<Compiled, E>,
    ) -> Result<ProgramPlan, E> {
        let recorder = Recorder { source, calls: Mutex::default() };
        let compiled = compile(&recorder)?;
        let calls = recorder.calls.locked().clone();
        // Resources, prompts, tools of the host, and functions of preludes, which may call anything.
        let is_unlisted = |call: &FlowCall| call.kind != FlowCallKind::Tool;
        let calls_more = compiled.flows.as_ref().is_some_and(|plan| plan.calls.iter().any(is_unlisted));
        let is_open = compiled.servers.dynamic || calls_more;
        Ok(ProgramPlan { calls, is_open, flows: compiled.flows })
    }
}

/// An error with its place: `2:7: unbound name`.
fn placed(source: &str, error: &Diagnostic) -> String {
    let Position { line, column } = Location::resolve(source, error.span).start;
    format!("{line}:{column}: {}", error.message)
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
