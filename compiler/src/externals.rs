//! Types of the compiler's interface: what the caller supplies in addition to the source text (known names, tools,
//! limits), and the result, which is a compiled program or errors.

use crate::diagnostic::Diagnostic;
use crate::flows::FlowPlan;
use crate::meter::CompileBudget;
use crate::namespace::{CallArity, Namespace};
use crate::tool_catalog::ToolCatalog;
use ptc_vm::bytecode::Program;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// A name that an earlier program of the session defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionName<'a> {
    /// The name.
    pub name: &'a str,
    /// Numbers of arguments that it accepts, if it holds a function and they are known.
    pub arity: Option<CallArity>,
}

/// Names that a program can refer to without defining them. By default nothing is attached.
///
/// The forms of the language (`ToolForm`) are always known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Externals<'a> {
    /// Namespaces that the program may call. They take precedence over those of the language.
    pub namespaces: &'a [&'a Namespace],
    /// Names that earlier programs of the session defined, `*1` and its kin included.
    pub session: &'a [SessionName<'a>],
    /// Tools that the host granted (`tool/name`). If empty, a call of an unknown tool fails only at run time.
    pub tools: &'a [&'a str],
    /// Tools that only namespaces of the host may call.
    pub private_tools: &'a [&'a str],
    /// Names of the configured upstream servers, for suggestions; empty if not known.
    pub servers: &'a [&'a str],
    /// Judges literal tool calls.
    pub catalog: Option<&'a dyn ToolCatalog>,
}

/// Limits of a compilation.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Longest source text in bytes.
    pub max_program_bytes: usize,
    /// Distinct symbols and keywords.
    pub max_symbols: usize,
    /// Time and memory.
    pub budget: CompileBudget,
    /// Locals are taken by their last reader. Without it every local lives to the end of its scope. Programs cannot
    /// observe the difference, and tests prove that.
    #[doc(hidden)]
    pub last_uses: bool,
    /// The data flows of the program are planned too.
    pub flows: bool,
}

impl CompileOptions {
    /// Bytes of source text by default.
    pub const MAX_PROGRAM_BYTES: usize = 1_000_000;
    /// Distinct symbols and keywords by default.
    pub const MAX_SYMBOLS: usize = 10_000;
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            max_program_bytes: CompileOptions::MAX_PROGRAM_BYTES,
            max_symbols: CompileOptions::MAX_SYMBOLS,
            budget: CompileBudget::default(),
            last_uses: true,
            flows: false,
        }
    }
}

/// The upstream servers that a program can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServersUsed {
    /// Servers named by literals.
    pub named: BTreeSet<String>,
    /// Some call computes its server, so it may be any server.
    pub dynamic: bool,
}

/// A compiled program and the compiler's findings.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The verified program.
    pub program: Arc<Program>,
    /// Findings that do not stop it.
    pub warnings: Vec<Diagnostic>,
    /// Upstream servers it can reach.
    pub servers: ServersUsed,
    /// Its data flows, if they were to be planned.
    pub flows: Option<Arc<FlowPlan>>,
}

/// Why a program was refused: at least one error, the most basic first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The errors that are listed.
    pub errors: Vec<Diagnostic>,
    /// The number of further errors.
    pub more: usize,
}

impl Deref for Rejection {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.errors
    }
}

impl From<Vec<Diagnostic>> for Rejection {
    fn from(errors: Vec<Diagnostic>) -> Rejection {
        Rejection { errors, more: 0 }
    }
}

impl From<Diagnostic> for Rejection {
    fn from(error: Diagnostic) -> Rejection {
        vec![error].into()
    }
}
