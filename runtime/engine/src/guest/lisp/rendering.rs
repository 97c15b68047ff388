//! Converts the outcome of a Lisp program to plain data for its caller: a value to text, JSON and media, and a fault or
//! a compile error to a report. Values are rendered while their isolate is alive.

use super::media;
use super::prelude::{Attached, Prelude};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Completion, Failure, JsonRefusal, RenderedValue, Report};
use ptc_compiler::Rejection;
use ptc_compiler::diagnostic::{Diagnostic, Severity, line_column};
use ptc_vm::json::{EncodeFailure, Keys, encode};
use ptc_vm::print::{Extent, Printed, TextLimit, plain_into, pr_str};
use ptc_vm::{BoundedText, Exit, Fault, Isolate, Reason, UnitId};

/// How many findings of the compiler are rendered.
const SHOWN: usize = 5;

/// Renders the value of a program that ended by itself.
pub(crate) fn result(
    isolate: &mut Isolate,
    exit: &Exit,
    source: &str,
    options: &RunOptions,
    account: &RunAccount,
) -> Result<Result<RenderedValue, Failure>, Box<Fault>> {
    let completion = match exit {
        Exit::Return => Completion::Return,
        _ => Completion::Value,
    };
    isolate.result(|cx, value| {
        let (printed, is_plain) = text(cx, value, options, account, exit)?;
        if let Exit::Fail(fault) = exit {
            let message = String::from(match value.as_str() {
                Some(text) if !printed.truncated => BoundedText::new(text),
                _ => BoundedText::new(&printed.text),
            });
            // The value is stored once, in full. The failure and its report begin with as much of it as a
            // message may have.
            cx.holding(printed.text.len(), |cx| cx.reserve(2 * message.len()))?;
            let report = Report { message, ..Report::from_fault(fault, source) };
            return Ok(Err(Failure { value: Some(printed.text), ..Failure::from(report) }));
        }
        let json = match options.want_json {
            // Both texts exist at the same time.
            true => Some(cx.holding(printed.text.len(), |cx| json(cx, value, options.json_limit()))?),
            false => None,
        };
        let mut media = Vec::new();
        if options.media_bytes > 0 && printed.truncated || may_have_media(&printed.text, options) {
            let found = media::find(cx, value, options.media_bytes)?;
            found.left_out.into_iter().for_each(|remark| account.note(remark));
            media = found.shown;
        }
        Ok(Ok(RenderedValue {
            completion,
            truncated: printed.truncated,
            text_bytes: printed.bytes as u64,
            saved_bytes: printed.saved as u64,
            text: printed.text,
            is_plain,
            is_nil: value.is_nil(),
            json,
            media,
        }))
    })
}

/// The text of a value, and whether it is plain.
fn text(
    cx: &mut ptc_vm::Context,
    value: &ptc_vm::Value,
    options: &RunOptions,
    account: &RunAccount,
    exit: &Exit,
) -> Result<(Printed, bool), Box<Fault>> {
    let mut text = String::new();
    if options.plain_text && !matches!(exit, Exit::Fail(_)) {
        let is_listed = |text: &str| account.is_discovered(text);
        let plain = plain_into(cx, value, options.text_limit(), &is_listed, &mut text)?;
        if let Some(Extent { truncated, bytes, saved }) = plain {
            return Ok((Printed { text, truncated, bytes, saved }, true));
        }
    }
    Ok((pr_str(cx, value, options.text_limit())?, false))
}

/// Whether a value with this text, which is not cut, may contain images or sounds.
pub(crate) fn may_have_media(text: &str, options: &RunOptions) -> bool {
    options.media_bytes > 0 && text.contains("mimeType")
}

/// The JSON text of a value.
pub(crate) fn json(
    cx: &mut ptc_vm::Context,
    value: &ptc_vm::Value,
    limit: TextLimit,
) -> Result<Result<String, JsonRefusal>, Box<Fault>> {
    Ok(encode(cx, value, Keys::Names, limit)?.map_err(|failure| match failure {
        EncodeFailure::NotJson { path, .. } => JsonRefusal::NotEncodable { path },
        EncodeFailure::SameName { path, key, other } => JsonRefusal::SameName { path, key, other },
        EncodeFailure::TooLarge { bytes, .. } => JsonRefusal::TooLarge { bytes: bytes as u64 },
    }))
}

/// The fault with a location in the program's own text. If it happened in a namespace, or in a function of an
/// earlier program of the session, its location is the call that led there: the text of the others is not at
/// hand.
pub(super) fn seen_from(
    program: Option<UnitId>,
    fault: &Fault,
    prelude: Option<&Prelude>,
    attached: &Attached,
) -> Fault {
    let mut fault = fault.clone();
    let is_own = |unit: UnitId| program.is_none_or(|program| unit == program);
    if let Some((unit, span)) = fault.location
        && !is_own(unit)
    {
        let described = prelude.zip(attached.definition(unit));
        let described = described.map(|(prelude, definition)| prelude.described(definition, span));
        let calls = std::mem::take(&mut fault.calls);
        let call = calls.iter().find(|call| is_own(call.unit));
        fault.location = call.map(|call| (call.unit, call.span));
        if let Some(call) = call {
            // The hint of `fail` addresses the code that calls it, which is not this program.
            fault.hints.retain(|hint| fault.reason != Reason::Fail || **hint != *Reason::Fail.hint());
            let hint = match described {
                Some(described) => BoundedText::new(format_args!("It happened in {described}")),
                None => {
                    BoundedText::new(format_args!("It happened in {}, which is called here.", call.function))
                }
            };
            fault.hints.insert(0, hint);
        }
        fault.calls = calls.into_iter().filter(|call| is_own(call.unit)).skip(1).collect();
    } else {
        fault.calls.retain(|call| is_own(call.unit));
    }
    fault
}

/// The failure for a fault of the running program.
pub(crate) fn fault(fault: &Fault, source: &str, options: &RunOptions) -> Failure {
    let mut report = Report::from_fault(fault, source);
    if fault.reason == Reason::Timeout {
        report.message = format!("execution exceeded {}ms limit (--timeout)", options.limits.timeout_ms);
    }
    Failure::from(report)
}

/// The failure for a program that does not compile.
pub(crate) fn rejection(rejection: &Rejection, source: &str) -> Failure {
    let errors: Vec<&Diagnostic> =
        rejection.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let Some(first) = errors.first() else {
        return Failure::defect("the compiler refused the program without a reason");
    };
    Failure {
        reason: first.reason.into(),
        message: summary(first, &errors),
        value: None,
        reports: errors.iter().take(SHOWN).map(|error| Report::from_diagnostic(error, source)).collect(),
        more: rejection.more + errors.len().saturating_sub(SHOWN),
    }
}

/// Most remarks on the text of one program.
const MOST_REMARKS: usize = 5;

/// The warnings that say that a text does not mean what it looks like. What other warnings say of a call, the run says
/// itself when it reaches the call.
pub(crate) fn remarks(warnings: &[Diagnostic], source: &str) -> Box<[String]> {
    let is_remark = |warning: &&Diagnostic| matches!(warning.reason, Reason::ParseError | Reason::AlwaysTrue);
    let remark = |warning: &Diagnostic| {
        let (line, column) = line_column(source, warning.span.start);
        let hints: String = warning.hints.iter().map(|hint| format!(". {hint}")).collect();
        format!("line {line}, column {column}: {}{hints}", warning.message)
    };
    warnings.iter().filter(is_remark).take(MOST_REMARKS).map(remark).collect()
}

/// The failure for a program that ran out of time while it was compiled.
pub(crate) fn compile_timeout(rejection: &Rejection, source: &str, options: &RunOptions) -> Failure {
    let Some(stopped) = rejection.first() else { return self::rejection(rejection, source) };
    let message = format!("compilation exceeded {}ms limit (--timeout)", options.limits.timeout_ms);
    Failure::from(Report { message, ..Report::from_diagnostic(stopped, source) })
}

/// The message of the first error; unbound names are listed together.
fn summary(first: &Diagnostic, errors: &[&Diagnostic]) -> String {
    let unbound = errors.iter().filter(|error| error.reason == Reason::UnboundVar);
    let names: Vec<&str> = unbound.filter_map(|error| Some(error.message.split_once(": ")?.1)).collect();
    match first.reason {
        Reason::UnboundVar if names.len() > 1 => {
            BoundedText::new(format_args!("Undefined variables: {}", names.join(", "))).into()
        }
        _ => first.message.to_string(),
    }
}
