//! Turns the tests of a prelude (a Lisp library), such as `(deftest name (is expr))`, into one runnable program for
//! each assertion.
//!
//! Such a program contains the definitions of the file, the forms before the assertion in its test, and the asserted
//! expression, all at their positions in the file, so that error locations are locations of the file. Everything else
//! is blanks.

use super::declare::head_of;
use crate::diagnostic::{Diagnostic, Fallible, Hint, error};
use crate::externals::{CompileOptions, Rejection};
use crate::form::{Form, FormKind, Forms};
use crate::names::{Name, Names};
use crate::pipeline::{Pass, refuse, within_budget};
use crate::reader;
use ptc_vm::{Reason, Span};
use std::collections::HashSet;

/// A test.
#[derive(Clone, Debug)]
pub struct PreludeTest {
    /// Its name.
    pub name: String,
    /// Its assertions, in order.
    pub assertions: Vec<Assertion>,
}

/// `(is …)`.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// Where it stands.
    pub span: Span,
    /// The expected result of its expression.
    pub expects: Expectation,
    /// A program with the expression as its value.
    pub program: String,
    /// For `(= a b)`: the text of each side, and a program with its value.
    pub sides: Vec<(String, String)>,
}

/// What an assertion expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// A value that is neither nil nor false.
    Truth,
    /// Any failure, of `(is (thrown? expr))`.
    Failure,
}

/// The tests of a file.
///
/// # Errors
/// Errors of the text that reading finds.
pub fn tests_in(source: &str) -> Result<Vec<PreludeTest>, Rejection> {
    within_budget(source, &CompileOptions::default(), tests_of).0
}

fn tests_of(pass: Pass<'_, '_>) -> Result<Vec<PreludeTest>, Rejection> {
    let Pass { meter, arena, source, options, .. } = pass;
    let mut names = Names::for_text(arena, source);
    let (forms, read) = reader::read(arena, meter, source, &mut names, options.max_symbols);
    refuse(read.errors, Vec::new(), 0)?;
    let (mut shared, mut tests, mut errors) = (Vec::new(), Vec::new(), Vec::<Diagnostic>::new());
    let mut seen: HashSet<Name> = HashSet::new();
    for form in forms {
        match head_of(&names, form) {
            Some(("deftest", rest)) => tests.push((form, rest)),
            _ => shared.push(form.span),
        }
    }
    let mut found = Vec::with_capacity(tests.len());
    for (form, rest) in tests {
        match test(source, &names, &shared, form, rest, &mut seen) {
            Ok(test) => found.push(test),
            Err(failed) => errors.push(*failed),
        }
    }
    refuse(errors, Vec::new(), 0)?;
    Ok(found)
}

fn test<'a>(
    source: &str,
    names: &Names<'a>,
    shared: &[Span],
    form: &Form<'a>,
    rest: Forms<'a>,
    seen: &mut HashSet<Name>,
) -> Fallible<PreludeTest> {
    const USAGE: &str = "Write (deftest name (is (= expected actual)) …).";
    let invalid = |span, message: &str| error(Reason::InvalidForm, span, message).hint(USAGE);
    let Some((name_form, body)) = rest.split_first() else {
        return Err(invalid(form.span, "a test needs a name"));
    };
    let Some(name) = name_form.symbol() else {
        return Err(invalid(name_form.span, "the name of a test must be a symbol"));
    };
    if !seen.insert(name) {
        return Err(invalid(name_form.span, "there is a test of this name already"));
    }
    // A definition after the test would become the last form of its programs.
    let before = shared.iter().copied().filter(|shared| shared.start < form.span.start);
    let (mut kept, mut assertions) = (before.collect::<Vec<Span>>(), Vec::new());
    for form in body {
        let Some(("is", parts)) = head_of(names, form) else {
            kept.push(form.span);
            continue;
        };
        let expression = match parts {
            [expression] => expression,
            [expression, Form { kind: FormKind::Str(_), .. }] => expression,
            _ => return Err(invalid(form.span, "(is …) takes one expression, and perhaps a text")),
        };
        let program = |part: Span| only(source, &[&kept[..], &[part]].concat());
        let text = |span: Span| source.get(span.start as usize..span.end as usize).unwrap_or("").to_owned();
        let (expects, of, sides) = match head_of(names, expression) {
            Some(("thrown?", [.., thrown])) => (Expectation::Failure, thrown.span, Vec::new()),
            Some(("=", sides)) => {
                let sides = sides.iter().map(|side| (text(side.span), program(side.span)));
                (Expectation::Truth, expression.span, sides.collect())
            }
            _ => (Expectation::Truth, expression.span, Vec::new()),
        };
        assertions.push(Assertion { span: form.span, expects, program: program(of), sides });
    }
    if assertions.is_empty() {
        return Err(invalid(form.span, "a test without (is …) asserts nothing"));
    }
    Ok(PreludeTest { name: names.text(name).to_owned(), assertions })
}

/// The text with everything but these parts replaced by blanks.
fn only(source: &str, parts: &[Span]) -> String {
    let is_kept = |at: usize| parts.iter().any(|part| (part.start as usize..part.end as usize).contains(&at));
    source.char_indices().map(|(at, c)| if c == '\n' || is_kept(at) { c } else { ' ' }).collect()
}
