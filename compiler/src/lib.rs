//! The compiler of PTC-Lisp: source text to verified register bytecode.
//!
//! # Layout
//! The data flows from top to bottom.
//!
//! - `lexer`: source text to tokens; `reader`: tokens to forms (`form`), `duplicate`: repeated literal keys;
//!   `unreadable`: hints for what is no token
//! - `resolve`: names to slots, captures, globals, builtins; `syntax`: one module for each family of special
//!   forms; together they make the IR (`ir`)
//! - `names`: interned names; `index`: the hash table of their and of the constants' numbers
//! - `liveness`: last uses and the places where locals die
//! - `codegen`: IR to instructions; `constants`: the tables of the program
//! - [`meter`]: the budget of a compilation, which every pass draws on
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
pub mod meter;
mod names;
mod reader;
pub mod reference;
mod resolve;
mod scratch;
mod syntax;
pub mod tool_catalog;
mod unreadable;

pub use diagnostic::{Diagnostic, Severity};
pub use externals::{CallArity, CompileOptions, Compiled, Externals, Rejection, ServersUsed, SessionName};
pub use meter::CompileBudget;
use meter::{Meter, Stopped};
use ptc_vm::bytecode::Program;
use ptc_vm::bytecode::verify::verify_while;
use ptc_vm::{Reason, Span};
pub use reader::{MAX_DIGITS, MAX_NESTING};
use resolve::Failed;
use scratch::Scratch;
use std::sync::Arc;
pub use syntax::function::MAX_PLACEHOLDER;

/// Compiles a program.
///
/// # Errors
/// Everything that is wrong with the text, the most basic first; or that the budget is used up.
pub fn compile(
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> Result<Compiled, Rejection> {
    compile_counting(source, externals, options).0
}

/// Compiles a program, and counts the steps of the meter.
fn compile_counting(
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> (Result<Compiled, Rejection>, u64) {
    if source.len() > options.max_program_bytes {
        let message =
            format!("program size {} bytes exceeds limit of {}", source.len(), options.max_program_bytes);
        let error = Diagnostic::error(Reason::ProgramTooLarge, Span::default(), message);
        return (Err(error.into()), 0);
    }
    let mut scratch = Scratch::take(source);
    let compiled = {
        let Scratch { arena, buffers } = &mut *scratch;
        let meter = Meter::new(arena, &options.budget, source);
        let compiled = compile_in(&meter, arena, buffers, source, externals, options);
        // Whatever else was found: a compilation that was cut short says only that.
        let compiled = match meter.verdict() {
            Ok(()) => compiled,
            Err(stopped) => Err((*stopped).into()),
        };
        (compiled, meter.steps())
    };
    scratch.keep(source);
    compiled
}

fn compile_in<'a>(
    meter: &Meter<'a>,
    arena: &'a bumpalo::Bump,
    buffers: &mut Vec<codegen::Buffers>,
    source: &'a str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> Result<Compiled, Rejection> {
    let mut names = names::Names::for_text(arena, source);
    let (forms, mut read) = reader::read(arena, meter, source, &mut names, options.max_symbols);
    if read.in_doubt {
        return Err(read.errors.into());
    }
    let defined = &read.defined;
    let mut resolver = resolve::Resolver::new(arena, meter, source, &mut names, externals, forms, defined);
    let main = resolver.program(forms);
    let mut errors = read.errors;
    let (mut found, mut more) = resolver.finish_errors();
    errors.append(&mut found);
    more += errors.len().saturating_sub(diagnostic::MAX_ERRORS);
    errors.truncate(diagnostic::MAX_ERRORS);
    if !errors.is_empty() {
        return Err(Rejection { errors, more });
    }
    let mut warnings = std::mem::take(&mut read.warnings);
    warnings.append(&mut resolver.warnings);
    if options.last_uses {
        liveness::analyse(meter, main);
    }
    let (servers, uses_tools) = (resolver.servers, resolver.uses_tools);
    let (protos, tables) = codegen::generate(meter, main, resolver.tables, options.last_uses, buffers)
        .map_err(|error| *error)?;
    let program = Program {
        source_bytes: source.len() as u32,
        protos,
        entry: ptc_vm::bytecode::ProtoIndex(0),
        constants: tables.constants,
        symbols: tables.symbols,
        globals: tables.globals,
    };
    match verify_while(&program, &|instructions| meter.work(instructions).is_ok()) {
        Some(Ok(())) => Ok(Compiled { program: Arc::new(program), warnings, servers, uses_tools }),
        Some(Err(error)) => {
            debug_assert!(false, "{error}\n{}", program.disassemble());
            let message = format!("internal: {error}");
            Err(Diagnostic::error(Reason::CompileError, Span::default(), message).into())
        }
        None => Err((*Failed::from(Stopped)).into()),
    }
}
