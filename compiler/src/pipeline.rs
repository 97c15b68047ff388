//! Runs the passes of the compiler in order, from source text to verified bytecode, within the budget of the
//! compilation.

use crate::diagnostic::{self, Diagnostic, Failed};
use crate::externals::{CompileOptions, Compiled, Externals, Rejection};
use crate::meter::{Meter, Stopped};
use crate::namespace::ExportEffects;
use crate::scratch::Scratch;
use crate::{codegen, flows, ir, names, reader, resolve};
use ptc_vm::bytecode::Program;
use ptc_vm::bytecode::verify::verify_while;
use ptc_vm::{Reason, Span};
use std::sync::Arc;

/// Compiles a program.
///
/// # Errors
/// All errors of the text, the most basic first; or that the budget is used up.
pub fn compile(
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> Result<Compiled, Rejection> {
    compile_counting(source, externals, options).0
}

/// Compiles a program, and counts the steps of the meter.
pub(crate) fn compile_counting(
    source: &str,
    externals: &Externals<'_>,
    options: &CompileOptions,
) -> (Result<Compiled, Rejection>, u64) {
    within_budget(source, options, |pass| compile_in(pass, externals))
}

/// The shared state of the passes over one text.
pub(crate) struct Pass<'p, 'a> {
    pub(crate) meter: &'p Meter<'a>,
    pub(crate) arena: &'a bumpalo::Bump,
    pub(crate) buffers: &'p mut Vec<codegen::Buffers>,
    pub(crate) source: &'a str,
    pub(crate) options: &'p CompileOptions,
}

/// Compiles a text within its budget, and counts the steps of the meter.
pub(crate) fn within_budget<T>(
    source: &str,
    options: &CompileOptions,
    compile: impl for<'p, 'a> FnOnce(Pass<'p, 'a>) -> Result<T, Rejection>,
) -> (Result<T, Rejection>, u64) {
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
        let compiled = compile(Pass { meter: &meter, arena, buffers, source, options });
        // A compilation that was stopped reports only that, whatever else was found.
        let compiled = match meter.verdict() {
            Ok(()) => compiled,
            Err(stopped) => Err((*stopped).into()),
        };
        (compiled, meter.steps())
    };
    scratch.keep(source);
    compiled
}

fn compile_in(pass: Pass<'_, '_>, externals: &Externals<'_>) -> Result<Compiled, Rejection> {
    let Pass { meter, arena, buffers, source, options } = pass;
    let mut names = names::Names::for_text(arena, source);
    let (forms, mut read) = reader::read(arena, meter, source, &mut names, options.max_symbols);
    if read.in_doubt {
        return Err(read.errors.into());
    }
    let defined = &read.defined;
    let mut resolver = resolve::Resolver::new(arena, meter, source, &mut names, externals, forms, defined);
    let main = resolver.program(forms);
    let (found, more) = resolver.finish_errors();
    refuse(read.errors, found, more)?;
    let mut warnings = std::mem::take(&mut read.warnings);
    warnings.append(&mut resolver.warnings);
    let servers = resolver.servers;
    let flows = options.flows.then(|| {
        let is_session = |name: &str| externals.session.iter().any(|known| known.name == name);
        let export = |namespace: &str, name: &str| {
            let of_name = externals.namespaces.iter().find(|known| known.name() == namespace);
            // What is not known may do anything.
            of_name.and_then(|known| known.export(name)).map_or(ExportEffects::ANY, |export| export.effects)
        };
        let outside = flows::Outside { is_session: &is_session, export: &export };
        Arc::new(flows::plan(meter, source, &resolver.tables, main, outside))
    });
    let program = assemble(meter, source, main, resolver.tables, options.last_uses, buffers)?;
    Ok(Compiled { program, warnings, servers, flows })
}

/// The errors of a text, if there are any; errors of reading come first.
pub(crate) fn refuse(
    mut errors: Vec<Diagnostic>,
    mut found: Vec<Diagnostic>,
    mut more: usize,
) -> Result<(), Rejection> {
    errors.append(&mut found);
    more += errors.len().saturating_sub(diagnostic::MAX_ERRORS);
    errors.truncate(diagnostic::MAX_ERRORS);
    if errors.is_empty() { Ok(()) } else { Err(Rejection { errors, more }) }
}

/// A resolved program as verified bytecode.
pub(crate) fn assemble<'m>(
    meter: &'m Meter<'m>,
    source: &str,
    main: &ir::Function<'_>,
    tables: ir::tables::Tables<'m>,
    last_uses: bool,
    buffers: &mut Vec<codegen::Buffers>,
) -> Result<Arc<Program>, Rejection> {
    if last_uses {
        ir::liveness::analyse(meter, main);
    }
    let (protos, tables) =
        codegen::generate(meter, main, tables, last_uses, buffers).map_err(|error| *error)?;
    let program = Program {
        source_bytes: source.len() as u32,
        protos,
        entry: ptc_vm::bytecode::ProtoIndex(0),
        constants: tables.constants,
        symbols: tables.symbols,
        globals: tables.globals,
    };
    match verify_while(&program, &|instructions| meter.work(instructions).is_ok()) {
        Some(Ok(())) => Ok(Arc::new(program)),
        Some(Err(error)) => {
            debug_assert!(false, "{error}\n{}", program.disassemble());
            let message = format!("internal: {error}");
            Err(Diagnostic::error(Reason::CompileError, Span::default(), message).into())
        }
        None => Err((*Failed::from(Stopped)).into()),
    }
}
