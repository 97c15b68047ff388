//! Properties that hold for any input, one function for each fuzz target. `fuzz/` searches for inputs that violate
//! them; the tests replay the inputs found so far (`fuzz/regressions/`). A violation is a panic.
//!
//! # Layout
//! - [`lex`], [`parse`], [`compile`]: the stages of the compiler
//! - [`run`]: programs under small limits, with every optimisation on and off
//! - [`programs`]: the same for programs of a grammar, which compile and mostly run
//! - [`json_decode`]: JSON against serde_json, and back
//! - [`regex_translate`]: patterns of the regex dialect

mod compile;
mod json_decode;
mod lex;
mod parse;
mod programs;
mod regex_translate;
mod run;

pub use compile::compile;
pub use json_decode::json_decode;
pub use lex::lex;
pub use parse::parse;
pub use programs::programs;
pub use regex_translate::regex_translate;
pub use run::run;

use ptc_compiler::Diagnostic;
use ptc_compiler::diagnostic::{Palette, Report};
use ptc_vm::Span;

/// A check of arbitrary bytes.
pub type Check = fn(&[u8]);

/// The fuzz targets.
pub const TARGETS: &[(&str, Check)] = &[
    ("lex", lex),
    ("parse", parse),
    ("compile", compile),
    ("run", run),
    ("programs", programs),
    ("json_decode", json_decode),
    ("regex_translate", regex_translate),
];

/// A span lies inside the text and does not cut a character.
fn check_span(source: &str, span: Span) {
    let (start, end) = (span.start as usize, span.end as usize);
    assert!(start <= end && source.get(start..end).is_some(), "{span:?} is no part of {source:?}");
}

/// A diagnostic has a message, points into the text, and renders.
fn check_diagnostic(source: &str, diagnostic: &Diagnostic) {
    check_span(source, diagnostic.span);
    assert!(!diagnostic.message.is_empty(), "no message in {diagnostic:?}");
    let text = Report::from_diagnostic(diagnostic, source).text("program", Palette::PLAIN);
    assert!(text.contains("program:") && text.contains('^'), "no place in {text}");
}
