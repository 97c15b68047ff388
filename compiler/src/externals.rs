//! What a compilation knows beside the text, and what it gives back.

use crate::diagnostic::Diagnostic;
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
    /// Numbers of arguments it accepts, when it holds a function and that is known.
    pub arity: Option<CallArity>,
}

/// What a program can refer to without defining it. The default attaches nothing.
///
/// `tool/call` and `tool/servers` are always known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Externals<'a> {
    /// Namespaces that the program may call into. They go before those of the language.
    pub namespaces: &'a [&'a Namespace],
    /// Names that earlier programs of the session defined, `*1` and its kin included.
    pub session: &'a [SessionName<'a>],
    /// Tools the host granted (`tool/name`). When empty, a call of an unknown tool fails at run time only.
    pub tools: &'a [&'a str],
    /// Tools that only namespaces of the host may call.
    pub private_tools: &'a [&'a str],
    /// Names of the configured upstream servers, for suggestions; empty when not known.
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
    /// Locals are taken by their last reader. Without it every local lives to the end of its scope: no
    /// program may tell the difference, which is what tests use it for.
    #[doc(hidden)]
    pub last_uses: bool,
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
        }
    }
}

/// The upstream servers that a program can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServersUsed {
    /// Servers named by literals.
    pub named: BTreeSet<String>,
    /// Some call computes its server, so any may be meant.
    pub dynamic: bool,
}

/// A compiled program and what the compiler noticed.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The verified program.
    pub program: Arc<Program>,
    /// Findings that do not stop it.
    pub warnings: Vec<Diagnostic>,
    /// Upstream servers it can reach.
    pub servers: ServersUsed,
}

/// Why a program was refused: its errors, the most basic first. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Those that are kept.
    pub errors: Vec<Diagnostic>,
    /// How many others there are.
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
