//! Compiles preludes, Lisp libraries that are loaded before a program and define namespaces for it (`ns`, `defn`,
//! `defn-`, `def`).
//!
//! Each definition becomes a program of its own; its main function gives the value. An isolate so links only the
//! definitions that are called, and those that these call.
//!
//! # Layout
//! - `declare`: parses the forms into namespaces and definitions; `metadata`: parses their metadata
//! - `reach`: references between definitions, and their requirements of a host; `effects`: what their code may do
//! - `source`: prints a form on one line; `assertions`: tests of preludes
//! - this file: runs each definition through the passes of the compiler

mod assertions;
mod declare;
mod effects;
mod metadata;
mod reach;
mod source;

use crate::diagnostic::{Diagnostic, MAX_ERRORS};
use crate::externals::{CompileOptions, Externals, Rejection};
use crate::ir::tables::Tables;
use crate::namespace::{CallArity, ExportEffects};
use crate::pipeline::{Pass, assemble, refuse, within_budget};
use crate::{names, reader, resolve};
pub use assertions::{Assertion, Expectation, PreludeTest, tests_in};
use declare::{Declarations, Declared, DeclaredBody};
pub use metadata::{ExportEffect, ToolMetadata, Visibility};
use ptc_vm::bytecode::instruction::Instruction;
use ptc_vm::bytecode::{Program, ProtoIndex};
use ptc_vm::{Reason, Span};
use reach::Backing;
use resolve::Resolver;
use std::sync::Arc;

/// A compiled prelude. It depends only on the text.
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
    /// Its documentation.
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
    /// Its documentation.
    pub doc: Option<Box<str>>,
    /// The form.
    pub span: Span,
    /// Programs cannot refer to it.
    pub is_private: bool,
    /// How the definition gives its value.
    pub body: DefinitionBody,
    /// Its code: the main function gives the value.
    pub program: Arc<Program>,
    /// Numbers of arguments; `None` for a constant.
    pub arity: Option<CallArity>,
    /// Parameters as `x y`, one text for each arity; a destructured one is named by its number.
    pub parameters: Vec<Box<str>>,
    /// Whether prompts list it.
    pub visibility: Visibility,
    /// Effect of a call.
    pub effect: ExportEffect,
    /// What a call of it may do.
    pub effects: ExportEffects,
    /// The operation that it wraps.
    pub provider: Option<Box<str>>,
    /// How it is offered as a tool of its own.
    pub tool: Option<ToolMetadata>,
    /// Its requirements of the host, including those of everything it calls: `upstream:server/tool`, `tool:name`.
    /// Sorted.
    pub requires: Vec<Box<str>>,
    /// Some reachable call computes its server or tool.
    pub is_dynamic: bool,
    /// Definitions that it refers to, without itself; sorted.
    pub refers_to: Vec<usize>,
    /// Definitions that it reaches, itself included; sorted.
    pub reaches: Vec<usize>,
    /// Its source on one line.
    pub source: Box<str>,
}

/// How a definition gives its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionBody {
    /// As this function of its program.
    Function(ProtoIndex),
    /// The value of its program, computed once.
    Constant,
}

/// Compiles a prelude.
///
/// # Errors
/// All errors of the text, the most basic first; or that the budget is used up.
pub fn compile(source: &str, options: &CompileOptions) -> Result<CompiledPrelude, Rejection> {
    within_budget(source, options, |pass| compile_in(pass, None)).0
}

/// Compiles a prelude of the host itself, which may declare this reserved namespace.
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
        error.message = ptc_vm::BoundedText::new(format_args!("prelude parse error: {}", error.message));
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
    let mut compiled: Vec<(&Declared<'_>, CompiledDefinition)> = Vec::with_capacity(definitions.len());
    for (number, (namespace, _)) in namespaces.iter().enumerate() {
        let own = || definitions.iter().filter(|declared| declared.namespace == number);
        let defined: Vec<_> = own().map(|declared| declared.name).collect();
        let mut resolver = Resolver::new(arena, meter, source, &mut names, &externals, &[], &[]);
        resolver.define_in(arena.alloc_str(&namespace.name), &defined);
        for declared in own() {
            if let Some(arity) = declared.arity {
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
        if namespaces.iter().any(|(namespace, _)| Some(&*namespace.name) == name) {
            error.hints = vec![ptc_vm::BoundedText::new(
                "Definitions see the names of their own namespace alone: put both into one, or write what they share in each.",
            )];
        }
    }
    for error in errors.iter_mut().filter(|error| error.reason == Reason::UnboundVar) {
        let name = error.message.split_once(": ").map_or("", |(_, name)| name).to_owned();
        error.message =
            ptc_vm::BoundedText::new(format_args!("prelude body references undefined variable(s): {name}"));
        error.reason = Reason::CompileError;
    }
    errors.sort_by_key(|error| error.span.start);
    more += errors.len().saturating_sub(MAX_ERRORS);
    refuse(Vec::new(), errors, more)?;
    // Declarations of one namespace are adjacent, so this is the order of the text.
    let definitions =
        reach::complete(meter, &namespaces, &compiled, |form| source::on_one_line(source, form));
    let namespaces = namespaces.into_iter().map(|(namespace, _)| namespace).collect();
    Ok(CompiledPrelude { namespaces, definitions, warnings })
}

/// The code of a definition.
struct CompiledDefinition {
    program: Arc<Program>,
    body: DefinitionBody,
    /// References of its own text.
    backing: Backing,
}

fn code_of<'a>(
    resolver: &mut Resolver<'a, '_>,
    declared: &Declared<'a>,
    buffers: &mut Vec<crate::codegen::Buffers>,
    options: &CompileOptions,
) -> Result<CompiledDefinition, Rejection> {
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
    let body = match (declared.body, function_of(&program)) {
        (DeclaredBody::Function(_), Some(function)) => DefinitionBody::Function(function),
        // Compilation of a function without one has failed, and the error is recorded.
        _ => DefinitionBody::Constant,
    };
    let backing = Backing::from_operations(operations, servers.dynamic);
    Ok(CompiledDefinition { program, body, backing })
}

/// The function that the main function makes.
fn function_of(program: &Program) -> Option<ProtoIndex> {
    let main = program.protos.get(usize::from(program.entry.0))?;
    main.code.iter().find_map(|instruction| match instruction {
        Instruction::MakeClosure { template, .. } => Some(template.proto),
        _ => None,
    })
}
