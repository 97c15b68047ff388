//! Reads the literal parts of a `tool/call` at compile time, so that its server can be started early, and the call be
//! checked against the known tools before the program runs.

use crate::diagnostic::{Diagnostic, Severity};
use crate::form::{Form, FormKind, Forms, walk};
use crate::meter::Meter;
use crate::names::{Names, split_qualified};
use crate::resolve::Resolver;
use crate::resolve::suggest::nearest;
use crate::resolve::syntax::host::Operation;
use crate::tool_catalog::{Literal, LiteralCall, LiteralEntry, LiteralKind};
use ptc_vm::builtins::ToolForm;
use ptc_vm::{Reason, Span};

/// Names with which a program looks up servers and tools.
const LOOKS: [&str; 5] = ["tool/servers", "apropos", "dir", "doc", "meta"];

impl<'a> Resolver<'a, '_> {
    /// Notes the server of a call, and has the host check the call.
    pub(crate) fn look_at_call(&mut self, span: Span, form: ToolForm, arguments: Forms<'a>) {
        let Some(call) = literal_call(self.meter, self.names, (span, form), arguments) else {
            match arguments.first().map(|first| &first.kind) {
                // This call fails, and its message needs no other server.
                Some(FormKind::Str(text)) => {
                    let server = split_qualified(text).0.unwrap_or(text);
                    self.servers.named.insert(server.to_owned());
                }
                _ => self.servers.dynamic = true,
            }
            return;
        };
        self.servers.named.insert(call.server.0.to_owned());
        if self.defines.is_some()
            && let (server, Some((tool, _))) = (call.server.0, call.tool)
        {
            self.operations.push(Operation::Upstream { server, tool });
        }
        let Some(catalog) = self.externals.catalog else {
            self.check_server(call.server);
            return;
        };
        // A program that looks up the servers itself may know better than the current catalog.
        let is_exempt = self.looks_at_servers && (!self.certain || self.may_have_ended);
        // An error that would not be listed need not be found.
        if self.has_enough_errors() {
            return;
        }
        for mut finding in catalog.findings(&call, self.meter) {
            if is_exempt {
                finding.severity = Severity::Warning;
            }
            match finding.severity {
                Severity::Error => self.record(finding),
                Severity::Warning => self.warn(finding),
            }
        }
    }

    /// Without a catalog: a server that is not configured causes a fault at the call; `ptc check` can report it
    /// before.
    fn check_server(&mut self, (server, span): (&str, Span)) {
        let known = self.externals.servers;
        if known.is_empty() || known.contains(&server) {
            return;
        }
        let mut sorted = known.to_vec();
        sorted.sort_unstable();
        let message = format!("no upstream server is named {server}. Configured: {}", sorted.join(", "));
        let warning = Diagnostic::warning(Reason::UnknownTool, span, message);
        self.warn(match nearest(server, &sorted) {
            Some(near) => warning.hint(format!("Did you mean `{near}`?")),
            None => warning,
        });
    }
}

/// True if the program mentions a form that looks up servers and tools.
pub(crate) fn looks_at_servers(meter: &Meter<'_>, forms: &[Form<'_>], names: &Names<'_>) -> bool {
    if !LOOKS.iter().any(|look| names.find(look).is_some()) {
        return false;
    }
    let looks = LOOKS.map(|look| names.find(look));
    walk(meter, forms).any(|form| form.symbol().is_some_and(|name| looks.contains(&Some(name))))
}

/// Parses a call with a literal server; `None` if the server is computed, or the call is malformed.
fn literal_call<'a>(
    meter: &Meter<'_>,
    names: &Names<'a>,
    (span, form): (Span, ToolForm),
    arguments: Forms<'a>,
) -> Option<LiteralCall<'a>> {
    let (first, rest) = arguments.split_first()?;
    match first.kind {
        FormKind::Quote(name) => {
            let (server, tool) = split_qualified(names.text(name));
            let arguments = match rest {
                [] => no_arguments(first.span),
                [arguments, ..] => literal(meter, names, arguments),
            };
            let (server, tool) = ((server?, first.span), Some((tool, first.span)));
            Some(LiteralCall { span, form, server, tool, arguments })
        }
        FormKind::Map(items) => keyed_call(meter, names, (first.span, form), items),
        FormKind::Keyword(_) => keyed_call(meter, names, (span, form), arguments),
        _ => None,
    }
}

/// Reads `:server "s" :tool "t" :args {…}`.
fn keyed_call<'a>(
    meter: &Meter<'_>,
    names: &Names<'a>,
    (span, form): (Span, ToolForm),
    items: Forms<'a>,
) -> Option<LiteralCall<'a>> {
    let (mut server, mut tool, mut arguments) = (None, None, None);
    for pair in items.chunks_exact(2) {
        let [key, value] = pair else { return None };
        let text = match value.kind {
            FormKind::Str(text) => Some((text, value.span)),
            _ => None,
        };
        match key_text(names, key)?.0 {
            "server" => server = text,
            "tool" => tool = text,
            "args" => arguments = Some(literal(meter, names, value)),
            _ => {}
        }
    }
    let arguments = match arguments {
        None => no_arguments(span),
        Some(Literal { kind: LiteralKind::Nil, span }) => no_arguments(span),
        Some(arguments) => arguments,
    };
    Some(LiteralCall { span, form, server: server?, tool, arguments })
}

fn no_arguments<'a>(span: Span) -> Literal<'a> {
    Literal { span, kind: LiteralKind::Map { entries: Vec::new(), open: false } }
}

/// The text of a key, and whether it is a keyword.
fn key_text<'a>(names: &Names<'a>, form: &Form<'a>) -> Option<(&'a str, bool)> {
    match form.kind {
        FormKind::Keyword(name) => Some((names.text(name), true)),
        FormKind::Str(text) => Some((text, false)),
        _ => None,
    }
}

/// The literal parts of a form. The reader bounds the nesting of forms.
fn literal<'a>(meter: &Meter<'_>, names: &Names<'a>, form: &'a Form<'a>) -> Literal<'a> {
    if meter.step().is_err() {
        return Literal { span: form.span, kind: LiteralKind::Computed };
    }
    let kind = match form.kind {
        FormKind::Nil => LiteralKind::Nil,
        FormKind::Bool(value) => LiteralKind::Bool(value),
        FormKind::Int(value) => LiteralKind::Int(value),
        FormKind::BigInt(digits) => LiteralKind::BigInt(digits),
        FormKind::Float(value) => LiteralKind::Float(value),
        FormKind::Str(text) => LiteralKind::Text(text),
        FormKind::Keyword(name) | FormKind::Quote(name) => LiteralKind::Text(names.text(name)),
        FormKind::Vector(items) | FormKind::Set(items) => {
            LiteralKind::List(items.iter().map(|item| literal(meter, names, item)).collect())
        }
        FormKind::Map(items) => {
            let (mut entries, mut open) = (Vec::new(), false);
            for pair in items.chunks_exact(2) {
                match (key_text(names, &pair[0]), &pair[1]) {
                    (Some((key, is_keyword)), value) => entries.push(LiteralEntry {
                        key,
                        is_keyword,
                        key_span: pair[0].span,
                        value: literal(meter, names, value),
                    }),
                    (None, _) => open = true,
                }
            }
            LiteralKind::Map { entries, open }
        }
        _ => LiteralKind::Computed,
    };
    Literal { span: form.span, kind }
}
