//! The compiler of PTC-Lisp: source text to verified register bytecode.
//!
//! # Layout
//! The data flows from top to bottom.
//!
//! - `lexer`: source text to tokens; `reader`: tokens to forms (`form`), `duplicate`: repeated literal keys
//! - `resolve`: names to slots, captures, globals, builtins; `syntax`: one module for each family of special
//!   forms; together they make the IR (`ir`)
//! - `names`: interned names; `index`: the hash table of their and of the constants' numbers
//! - `liveness`: last uses and the places where locals die
//! - `codegen`: IR to instructions; `constants`: the tables of the program
//! - `scratch`: memory that one compilation leaves for the next
//! - [`tool_catalog`]: literal tool calls, for a host that can judge them
//! - [`externals`]: what a compilation knows beside the text, and its result
//! - [`diagnostic`]: findings and their rendering; `inspect`: tokens and forms as tests see them
//! - [`mod@reference`]: what the language has, with documentation and examples

#![forbid(unsafe_code)]

mod codegen;
mod constants;
pub mod diagnostic;
mod duplicate;
pub mod externals;
mod form;
mod index;
#[doc(hidden)]
pub mod inspect;
mod ir;
mod lexer;
mod liveness;
mod names;
mod reader;
pub mod reference;
mod resolve;
mod scratch;
mod syntax;
pub mod tool_catalog;

pub use diagnostic::{Diagnostic, Severity};
pub use externals::{CallArity, CompileOptions, Compiled, Externals, ServersUsed, SessionName};
use ptc_vm::bytecode::Program;
use ptc_vm::{Reason, Span};
pub use reader::{MAX_DIGITS, MAX_NESTING};
use scratch::Scratch;
use std::sync::Arc;
pub use syntax::function::MAX_PLACEHOLDER;

/// Compiles a program.
///
/// # Errors
/// Everything that is wrong with the text, the most basic first.
pub fn compile(
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> Result<Compiled, Vec<Diagnostic>> {
    if source.len() > options.max_program_bytes {
        let message =
            format!("program size {} bytes exceeds limit of {}", source.len(), options.max_program_bytes);
        return Err(vec![Diagnostic::error(Reason::ProgramTooLarge, Span::default(), message)]);
    }
    let mut scratch = Scratch::take(source);
    let compiled = compile_in(&mut scratch, source, externals, options);
    scratch.keep(source);
    compiled
}

fn compile_in(
    scratch: &mut Scratch,
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> Result<Compiled, Vec<Diagnostic>> {
    let Scratch { arena, buffers } = scratch;
    let arena: &bumpalo::Bump = arena;
    let mut names = names::Names::for_text(arena, source);
    let (forms, mut read) = reader::read(arena, source, &mut names, options.max_symbols);
    if read.in_doubt {
        return Err(read.errors);
    }
    let mut resolver = resolve::Resolver::new(arena, source, &mut names, externals, forms, &read.defined);
    let main = resolver.program(forms);
    let mut errors = read.errors;
    errors.append(&mut resolver.finish_errors());
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut warnings = std::mem::take(&mut read.warnings);
    warnings.append(&mut resolver.warnings);
    if options.last_uses {
        liveness::analyse(main);
    }
    let (servers, uses_tools) = (resolver.servers, resolver.uses_tools);
    let (protos, tables) =
        codegen::generate(main, resolver.tables, options.last_uses, buffers).map_err(|error| vec![*error])?;
    let program = Program {
        source_bytes: source.len() as u32,
        protos,
        entry: ptc_vm::bytecode::ProtoIndex(0),
        constants: tables.constants,
        symbols: tables.symbols,
        globals: tables.globals,
    };
    if let Err(error) = ptc_vm::bytecode::verify::verify(&program) {
        debug_assert!(false, "{error}\n{}", program.disassemble());
        return Err(vec![Diagnostic::error(
            Reason::CompileError,
            Span::default(),
            format!("internal: {error}"),
        )]);
    }
    Ok(Compiled { program: Arc::new(program), warnings, servers, uses_tools })
}
