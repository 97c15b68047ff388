//! Compiles a program without running it, to report errors, warnings, bytecode and data flows.

use super::prelude::Prelude;
use ptc_calls::run::outcome::Report;
use ptc_compiler::flows::{FlowPlan, SourceSet};
use ptc_compiler::{CompileOptions, Externals, Rejection};
use ptc_vm::bytecode::Program;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The result of compiling a program without servers and tools.
pub struct Inspection {
    program: Option<Arc<Program>>,
    flows: Option<Arc<FlowPlan>>,
    /// The errors, or the warnings of a program that compiles.
    pub findings: Vec<Report>,
    /// How many more errors there are.
    pub more: usize,
}

impl Inspection {
    /// Compiles a program without a prelude.
    pub fn compile(source: &str) -> Inspection {
        Inspection::compile_with(source, None)
    }

    /// Compiles a program that may use the exports of a prelude.
    pub fn compile_with(source: &str, prelude: Option<&Prelude>) -> Inspection {
        Inspection::compile_for(source, prelude, false)
    }

    /// The same, and plans the data flows of the program.
    pub fn compile_with_flows(source: &str, prelude: Option<&Prelude>) -> Inspection {
        Inspection::compile_for(source, prelude, true)
    }

    fn compile_for(source: &str, prelude: Option<&Prelude>, flows: bool) -> Inspection {
        let namespaces: Vec<_> = prelude.iter().flat_map(|prelude| prelude.namespaces()).collect();
        let externals = Externals { namespaces: &namespaces, ..Externals::default() };
        let options = CompileOptions { flows, ..CompileOptions::default() };
        let compiled = ptc_compiler::compile(source, &externals, &options);
        let (program, flows, findings, more) = match compiled {
            Ok(compiled) => (Some(compiled.program), compiled.flows, compiled.warnings, 0),
            Err(Rejection { errors, more }) => (None, None, errors, more),
        };
        let findings = findings.iter().map(|finding| Report::from_diagnostic(finding, source)).collect();
        Inspection { program, flows, findings, more }
    }

    /// It compiles.
    pub fn is_ok(&self) -> bool {
        self.program.is_some()
    }

    /// Its bytecode as text, if it compiles.
    pub fn bytecode(&self) -> Option<String> {
        self.program.as_ref().map(|program| program.disassemble())
    }

    /// Its data flows as text, if it compiles and they were planned.
    pub fn flows_text(&self) -> Option<String> {
        self.flows.as_ref().map(|flows| flows.text())
    }

    /// Its data flows as a flowchart in the notation of Mermaid, if it compiles and they were planned.
    pub fn flows_picture(&self) -> Option<String> {
        self.flows.as_ref().map(|flows| flows.mermaid())
    }

    /// Its data flows as JSON, if it compiles and they were planned.
    pub fn flows_json(&self) -> Option<Json> {
        self.flows.as_ref().map(|flows| flow_json(flows))
    }
}

fn flow_json(plan: &FlowPlan) -> Json {
    let names = |sources: SourceSet| Json::from(plan.names(sources));
    let calls = plan.calls.iter().map(|call| {
        let arguments = call.arguments.iter().map(|argument| (argument.pointer(), names(argument.sources)));
        json!({
            "server": call.server,
            "tool": call.tool,
            "line": call.line,
            "column": call.column,
            "arguments": Json::Object(arguments.collect()),
            "control": names(call.control),
        })
    });
    let definitions = plan.definitions.iter().map(|(name, sources)| (name.to_string(), names(*sources)));
    json!({
        "is_unknown": plan.is_unknown,
        "calls": calls.collect::<Vec<_>>(),
        "result": names(plan.result),
        "prints": names(plan.prints),
        "definitions": Json::Object(definitions.collect()),
    })
}
