//! Renders an error or warning, of the compiler or of a run, with its location and hints as text for people and for
//! models. A [`Report`] needs no source text any more.

use super::location::{Location, Position};
use super::{Diagnostic, Severity, notation};
use ptc_vm::{Fault, Reason, Span};
use std::fmt::Write as _;

/// A call that led to a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that was called; empty for one without a name.
    pub function: String,
    /// The call.
    pub location: Location,
}

/// An error or a warning, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Error or warning.
    pub severity: Severity,
    /// The raw reason.
    pub reason: Reason,
    /// One line that says what is wrong.
    pub message: String,
    /// The location; `None` only without a source, such as for a program that is cancelled before it starts.
    pub location: Option<Location>,
    /// The calls of program functions that led there, the innermost first.
    pub calls: Vec<Call>,
    /// The types of the wrong values, if types are the problem.
    pub types: Vec<&'static str>,
    /// What to change, the most likely first.
    pub hints: Vec<String>,
}

/// Text before and after the parts of a rendered report, such as colours.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    error: &'static str,
    warning: &'static str,
    location: &'static str,
    hint: &'static str,
    end: &'static str,
}

impl Palette {
    /// No marks.
    pub const PLAIN: Palette = Palette { error: "", warning: "", location: "", hint: "", end: "" };
    /// Colours of a terminal.
    pub const COLOUR: Palette = Palette {
        error: "\x1b[31m",
        warning: "\x1b[33m",
        location: "\x1b[2m",
        hint: "\x1b[36m",
        end: "\x1b[0m",
    };
}

impl Report {
    /// A finding of the compiler.
    pub fn from_diagnostic(finding: &Diagnostic, source: &str) -> Report {
        let mut report = Report::new(finding.reason, finding.message.as_str());
        report.severity = finding.severity;
        report.hints = finding.hints.iter().map(ToString::to_string).collect();
        report.set_place(source, finding.span);
        if report.hints.is_empty() {
            report.hints.push(finding.reason.hint().to_owned());
        }
        report
    }

    /// A fault of a running program.
    pub fn from_fault(fault: &Fault, source: &str) -> Report {
        let mut report = Report::new(fault.reason, fault.message.as_str());
        report.hints = fault.hints.iter().map(ToString::to_string).collect();
        report.types = fault.types.clone();
        if let Some((_, span)) = fault.location {
            report.set_place(source, span);
        }
        let call = |call: &ptc_vm::CallSite| Call {
            function: call.function.to_string(),
            location: Location::resolve(source, call.span),
        };
        report.calls = fault.calls.iter().map(call).collect();
        report
    }

    /// An error without a source location.
    pub fn new(reason: Reason, message: impl Into<String>) -> Report {
        Report {
            severity: Severity::Error,
            reason,
            message: message.into(),
            location: None,
            calls: Vec::new(),
            types: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Report {
        self.hints.push(hint.into());
        self
    }

    fn set_place(&mut self, source: &str, span: Span) {
        self.location = Some(Location::resolve(source, span));
        notation::advise(source, span, self.reason, &mut self.hints);
    }

    /// The start of its location.
    pub fn position(&self) -> Option<Position> {
        self.location.as_ref().map(|location| location.start)
    }

    /// `reason: message`, without repeating the reason.
    fn headline(&self) -> String {
        let reason = self.reason.raw();
        if self.message.strip_prefix(reason).is_some_and(|rest| rest.starts_with(':')) {
            self.message.clone()
        } else {
            format!("{reason}: {}", self.message)
        }
    }

    /// For people: location, snippet, caret, calls and hints on lines of their own. No trailing newline.
    ///
    /// ```text
    /// unbound_var: Undefined variable: fooo
    ///  --> program:1:4
    ///   |
    /// 1 | (+ fooo 1)
    ///   |    ^^^^
    /// hint: Did you mean `foo`?
    /// ```
    pub fn text(&self, source_name: &str, palette: Palette) -> String {
        let Palette { error, warning, location: dim, hint, end } = palette;
        let mut out = match self.severity {
            Severity::Error => format!("{error}{}{end}", self.headline()),
            Severity::Warning => format!("{warning}warning: {}{end}", self.headline()),
        };
        if let Some(location) = &self.location {
            let Position { line, column } = location.start;
            let width = line.to_string().len();
            let _ = write!(out, "\n{dim}{:width$}--> {source_name}:{line}:{column}", " ");
            let _ = write!(out, "\n{:width$} |\n{line} |{end} {}", "", location.line_text);
            let _ = write!(out, "\n{dim}{:width$} |{end} {:indent$}", "", "", indent = location.indent);
            let _ = write!(out, "{error}{}{end}", "^".repeat(location.width));
        }
        for call in &self.calls {
            let Position { line, column } = call.location.start;
            let name = if call.function.is_empty() { "a function" } else { &call.function };
            let _ =
                write!(out, "\n{dim}in {name}, called at {line}:{column}:{end} {}", call.location.excerpt);
        }
        for line in &self.hints {
            let _ = write!(out, "\n{hint}hint:{end} {line}");
        }
        out
    }

    /// For models: the same in as few tokens as possible.
    ///
    /// ```text
    /// unbound_var: Undefined variable: fooo
    /// at 1:4: fooo
    /// hint: Did you mean `foo`?
    /// ```
    pub fn compact(&self) -> String {
        let mut out = self.headline();
        if let Some(location) = &self.location {
            let Position { line, column } = location.start;
            let _ = write!(out, "\nat {line}:{column}: {}", location.excerpt);
        }
        // The outermost call is the one that passed the program's own data.
        if let Some(call) = self.calls.last() {
            let Position { line, column } = call.location.start;
            let _ = write!(out, "\ncalled from {line}:{column}: {}", call.location.excerpt);
        }
        for hint in &self.hints {
            let _ = write!(out, "\nhint: {hint}");
        }
        out
    }
}
