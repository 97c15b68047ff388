//! Compiles a program without running it, to report errors, warnings and bytecode.

use super::prelude::Prelude;
use crate::run::outcome::Report;
use ptc_compiler::{CompileOptions, Externals, Rejection};
use ptc_vm::bytecode::Program;
use std::sync::Arc;

/// The result of compiling a program without servers and tools.
pub struct Inspection {
    program: Option<Arc<Program>>,
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
        let namespaces: Vec<_> = prelude.iter().flat_map(|prelude| prelude.namespaces()).collect();
        let externals = Externals { namespaces: &namespaces, ..Externals::default() };
        let compiled = ptc_compiler::compile(source, &externals, &CompileOptions::default());
        let (program, findings, more) = match compiled {
            Ok(compiled) => (Some(compiled.program), compiled.warnings, 0),
            Err(Rejection { errors, more }) => (None, errors, more),
        };
        let findings = findings.iter().map(|finding| Report::from_diagnostic(finding, source)).collect();
        Inspection { program, findings, more }
    }

    /// It compiles.
    pub fn is_ok(&self) -> bool {
        self.program.is_some()
    }

    /// Its bytecode as text, if it compiles.
    pub fn bytecode(&self) -> Option<String> {
        self.program.as_ref().map(|program| program.disassemble())
    }
}
