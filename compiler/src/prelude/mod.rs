//! Texts that define namespaces for other programs: `ns`, `defn`, `defn-` and `def`.
//!
//! Each definition becomes a program of its own, whose main function gives the value. So whoever links a prelude into an
//! isolate links the definitions that are called, and what those call, and nothing else.
//!
//! # Layout
//! - `declare`: the forms of the text as namespaces and definitions; `metadata`: what they say beside their code
//! - `reach`: which definitions refer to which, and what they need of a host
//! - `source`: a form on one line; `assertions`: tests of preludes
//! - here: each definition through the passes of a program

mod assertions;
mod declare;
mod metadata;
mod reach;
mod source;

use crate::diagnostic::{Diagnostic, MAX_ERRORS};
use crate::externals::{CompileOptions, Externals, Rejection};
use crate::ir::tables::Tables;
use crate::namespace::CallArity;
use crate::pipeline::{Pass, assemble, refuse, within_budget};
use crate::{names, reader, resolve};
pub use assertions::{Assertion, Expectation, PreludeTest, tests_in};
use declare::{Declarations, Declared, DeclaredBody, parameters};
pub use metadata::{ExportEffect, Visibility};
use ptc_vm::bytecode::instruction::Instruction;
use ptc_vm::bytecode::{Program, ProtoIndex};
use ptc_vm::{Reason, Span};
use reach::Backing;
use resolve::Resolver;
use std::sync::Arc;

/// A compiled text. It depends on the text alone.
#[derive(Clone, Debug)]
pub struct CompiledPrelude {
    /// In the order of the text.
    pub namespaces: Vec<PreludeNamespace>,
    /// In the order of the text.
    pub definitions: Vec<PreludeDefinition>,
    /// Findings that do not stop it.
    pub warnings: Vec<Diagnostic>,
}

/// A namespace that a text declares.
#[derive(Clone, Debug)]
pub struct PreludeNamespace {
    /// Its name.
    pub name: Box<str>,
    /// What it is for.
    pub doc: Option<Box<str>>,
    /// The form that declares it.
    pub span: Span,
}

/// A definition.
#[derive(Clone, Debug)]
pub struct PreludeDefinition {
    /// Its namespace, an index into [`CompiledPrelude::namespaces`].
    pub namespace: usize,
    /// Its name in that namespace.
    pub name: Box<str>,
    /// What it is for.
    pub doc: Option<Box<str>>,
    /// The form.
    pub span: Span,
    /// Programs cannot refer to it.
    pub is_private: bool,
    /// What it gives its name.
    pub body: DefinitionBody,
    /// Its code: the main function gives the value.
    pub program: Arc<Program>,
    /// Numbers of arguments; `None` for a constant.
    pub arity: Option<CallArity>,
    /// Parameters as `x y`, one text for each arity; of one that is taken apart, its number.
    pub parameters: Vec<Box<str>>,
    /// Whether prompts list it.
    pub visibility: Visibility,
    /// What a call may change.
    pub effect: ExportEffect,
    /// The operation that it stands for.
    pub provider: Option<Box<str>>,
    /// What it needs of its host, through whatever it calls: `upstream:server/tool`, `tool:name`. Sorted.
    pub requires: Vec<Box<str>>,
    /// Some call that it reaches computes its server or tool.
    pub is_dynamic: bool,
    /// Definitions that it refers to, sorted; itself not.
    pub refers_to: Vec<usize>,
    /// Definitions that it reaches, itself included; sorted.
    pub reaches: Vec<usize>,
    /// The form on one line.
    pub source: Box<str>,
}

/// What a definition gives its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionBody {
    /// This function of its program.
    Function(ProtoIndex),
    /// The value of its program, computed once.
    Constant,
}

/// Compiles a prelude.
///
/// # Errors
/// Everything that is wrong with the text, the most basic first; or that the budget is used up.
pub fn compile(source: &str, options: &CompileOptions) -> Result<CompiledPrelude, Rejection> {
    within_budget(source, options, |pass| compile_in(pass, None)).0
}

/// Compiles a prelude of the host itself, which may declare this namespace although it is reserved.
///
/// # Errors
/// As [`compile`].
pub fn compile_reserved(
    source: &str,
    namespace: &str,
    options: &CompileOptions,
) -> Result<CompiledPrelude, Rejection> {
    within_budget(source, options, |pass| compile_in(pass, Some(namespace))).0
}

fn compile_in(pass: Pass<'_, '_>, allowed: Option<&str>) -> Result<CompiledPrelude, Rejection> {
    let Pass { meter, arena, buffers, source, options } = pass;
    let mut names = names::Names::for_text(arena, source);
    let (forms, mut read) = reader::read(arena, meter, source, &mut names, options.max_symbols);
    for error in &mut read.errors {
        error.message = ptc_vm::BoundedText::of(format_args!("prelude parse error: {}", error.message));
    }
    if read.in_doubt {
        return Err(read.errors.into());
    }
    let Declarations { namespaces, definitions, errors, mut warnings } =
        declare::declare(meter, source, &names, forms, allowed);
    warnings.append(&mut read.warnings);
    refuse(read.errors, errors, 0)?;

    let externals = Externals::default();
    let (mut errors, mut more) = (Vec::new(), 0);
    let mut compiled: Vec<(&Declared<'_>, Coded)> = Vec::with_capacity(definitions.len());
    for (number, namespace) in namespaces.iter().enumerate() {
        let own = || definitions.iter().filter(|declared| declared.namespace == number);
        let defined: Vec<_> = own().map(|declared| declared.name).collect();
        let mut resolver = Resolver::new(arena, meter, source, &mut names, &externals, &[], &[]);
        resolver.define_in(arena.alloc_str(&namespace.name), &defined);
        for declared in own() {
            if let Some(arity) = declared.arity() {
                resolver.globals.set_arity(declared.name, arity);
            }
        }
        for declared in own() {
            match code_of(&mut resolver, declared, buffers, options) {
                Ok(coded) => compiled.push((declared, coded)),
                Err(rejection) => {
                    errors.extend(rejection.errors);
                    more += rejection.more;
                }
            }
        }
        let (found, others) = resolver.finish_errors();
        errors.extend(found);
        more += others;
        warnings.append(&mut resolver.warnings);
    }
    for error in errors.iter_mut().filter(|error| error.reason == Reason::InvalidForm) {
        let name = error.message.strip_prefix("unknown namespace ").and_then(|name| name.strip_suffix('/'));
        if namespaces.iter().any(|namespace| Some(&*namespace.name) == name) {
            error.hints = vec![ptc_vm::BoundedText::of(
                "Definitions see the names of their own namespace alone: put both into one, or write what they share in each.",
            )];
        }
    }
    for error in errors.iter_mut().filter(|error| error.reason == Reason::UnboundVar) {
        let name = error.message.split_once(": ").map_or("", |(_, name)| name).to_owned();
        error.message =
            ptc_vm::BoundedText::of(format_args!("prelude body references undefined variable(s): {name}"));
        error.reason = Reason::CompileError;
    }
    errors.sort_by_key(|error| error.span.start);
    more += errors.len().saturating_sub(MAX_ERRORS);
    refuse(Vec::new(), errors, more)?;
    // Namespaces may be written in turns only of themselves, so this is the order of the text.
    let definitions = reach::complete(meter, &namespaces, compiled, |form| source::on_one_line(source, form));
    let namespaces = namespaces
        .into_iter()
        .map(|declared| PreludeNamespace { name: declared.name, doc: declared.doc, span: declared.span })
        .collect();
    Ok(CompiledPrelude { namespaces, definitions, warnings })
}

/// A definition as code.
struct Coded {
    program: Arc<Program>,
    body: DefinitionBody,
    parameters: Vec<Box<str>>,
    /// What its own text names.
    backing: Backing,
}

fn code_of<'a>(
    resolver: &mut Resolver<'a, '_>,
    declared: &Declared<'a>,
    buffers: &mut Vec<crate::codegen::Buffers>,
    options: &CompileOptions,
) -> Result<Coded, Rejection> {
    let value = match declared.body {
        DeclaredBody::Function(parts) => resolver.exported_function(declared.name, declared.span, parts),
        DeclaredBody::Constant(form) => resolver.resolve(form, false),
    };
    let main = resolver.main(declared.span, value);
    let meter = resolver.meter;
    let tables = std::mem::replace(&mut resolver.tables, Tables::with_names(meter, 0));
    let operations = std::mem::take(&mut resolver.operations);
    let servers = std::mem::take(&mut resolver.servers);
    let program = assemble(meter, resolver.source, main, tables, options.last_uses, buffers)?;
    let body = match declared.body {
        DeclaredBody::Function(_) => match function_of(&program) {
            Some(function) => DefinitionBody::Function(function),
            // It has failed, and the error is recorded.
            None => DefinitionBody::Constant,
        },
        DeclaredBody::Constant(_) => DefinitionBody::Constant,
    };
    let parameters = match declared.body {
        DeclaredBody::Function(parts) => parameters(resolver.names, parts),
        DeclaredBody::Constant(_) => Vec::new(),
    };
    let backing = Backing::of(operations, servers.dynamic);
    Ok(Coded { program, body, parameters, backing })
}

/// The function that the main function makes.
fn function_of(program: &Program) -> Option<ProtoIndex> {
    let main = program.protos.get(usize::from(program.entry.0))?;
    main.code.iter().find_map(|instruction| match instruction {
        Instruction::MakeClosure { template, .. } => Some(template.proto),
        _ => None,
    })
}
