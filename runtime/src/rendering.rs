//! The end of a run as plain data: answers rendered while their isolate is alive, failures as text.

use crate::context::RunContext;
use crate::options::RunOptions;
use crate::outcome::{Answer, CallStatus, Completion, Failure, JsonRefusal, Outcome, Position, Usage};
use crate::secrets::SecretRegistry;
use ptc_compiler::diagnostic::{Diagnostic, Severity, line_column, render};
use ptc_vm::json::{Dialect, EncodeFailure, encode};
use ptc_vm::{Exit, Fault, Isolate, Reason, Span};

/// Findings of the compiler that are rendered.
const SHOWN: usize = 5;

/// Renders the value of a program that ended by itself.
pub(crate) fn result(
    isolate: &mut Isolate,
    exit: &Exit,
    options: &RunOptions,
) -> Result<Result<Answer, Failure>, Box<Fault>> {
    let completion = match exit {
        Exit::Return => Completion::Return,
        _ => Completion::Value,
    };
    let failed = matches!(exit, Exit::Fail);
    isolate.result(|cx, value| {
        let printed = ptc_vm::print::pr_str(cx, value, options.result_bytes)?;
        if failed {
            let message = match value.as_str() {
                Some(text) if !printed.truncated => text.to_owned(),
                _ => printed.text.clone(),
            };
            return Ok(Err(Failure {
                reason: Reason::Fail,
                rendered: format!("{}: {message}", Reason::Fail.raw()),
                message,
                position: None,
                hints: Vec::new(),
                value: Some(printed.text),
            }));
        }
        let json = match options.want_json {
            true => Some(json(cx, value, options.json_bytes)?),
            false => None,
        };
        Ok(Ok(Answer {
            completion,
            truncated: printed.truncated,
            text_bytes: printed.bytes as u64,
            text: printed.text,
            is_nil: value.is_nil(),
            json,
        }))
    })
}

fn json(
    cx: &mut ptc_vm::Context,
    value: &ptc_vm::Value,
    limit: usize,
) -> Result<Result<String, JsonRefusal>, Box<Fault>> {
    Ok(encode(cx, value, Dialect::Names, limit)?.map_err(|failure| match failure {
        EncodeFailure::NotJson { path, .. } => JsonRefusal::NotEncodable { path },
        EncodeFailure::TooLarge { limit } => JsonRefusal::TooLarge { bytes: limit as u64 },
    }))
}

/// A fault of the running program.
pub(crate) fn fault(fault: &Fault, source: &str, options: &RunOptions) -> Failure {
    let mut fault = fault.clone();
    if fault.reason == Reason::Timeout {
        fault.message = format!("execution exceeded {}ms limit", options.limits.timeout_ms);
        if fault.hints.is_empty() {
            fault.hints.push(
                "Do less work, call tools in parallel with pmap, or ask for a higher time limit.".into(),
            );
        }
    }
    let span = fault.place.map(|(_, span)| span);
    let rendered = render(source, &options.source_name, fault.reason, &fault.message, span, &fault.hints);
    Failure {
        reason: fault.reason,
        message: fault.message,
        position: span.map(|span| position(source, span)),
        hints: fault.hints,
        value: None,
        rendered,
    }
}

/// A program that the compiler refused.
pub(crate) fn rejection(diagnostics: &[Diagnostic], source: &str, source_name: &str) -> Failure {
    let errors: Vec<&Diagnostic> =
        diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let Some(first) = errors.first() else {
        return defect("the compiler refused the program without a reason");
    };
    let mut rendered: Vec<String> = errors
        .iter()
        .take(SHOWN)
        .map(|e| render(source, source_name, e.reason, &e.message, Some(e.span), &e.hints))
        .collect();
    if errors.len() > SHOWN {
        rendered.push(format!("… and {} more", errors.len() - SHOWN));
    }
    Failure {
        reason: first.reason,
        message: first.message.clone(),
        position: Some(position(source, first.span)),
        hints: first.hints.clone(),
        value: None,
        rendered: rendered.join("\n\n"),
    }
}

/// The caller gave up before the program started.
pub(crate) fn cancelled() -> Failure {
    plain(Reason::Cancelled, "the program was cancelled")
}

/// A defect of this implementation.
pub(crate) fn defect(message: &str) -> Failure {
    plain(Reason::ExecutionError, message)
}

fn plain(reason: Reason, message: &str) -> Failure {
    Failure {
        reason,
        message: message.to_owned(),
        position: None,
        hints: Vec::new(),
        value: None,
        rendered: format!("{}: {message}", reason.raw()),
    }
}

/// The outcome of a program that has no isolate (any more).
pub(crate) fn without_isolate(failure: Failure, context: &RunContext) -> Outcome {
    let usage =
        Usage { duration: context.elapsed(), upstream_calls: context.calls_made(), ..Usage::default() };
    Outcome { result: Err(failure), prints: Vec::new(), upstream_calls: context.take_ledger(), usage }
}

/// The one place where secrets are taken out of what leaves the runtime.
pub(crate) fn scrub(outcome: &mut Outcome, secrets: &SecretRegistry) {
    if secrets.is_empty() {
        return;
    }
    match &mut outcome.result {
        Ok(answer) => {
            secrets.scrub_string(&mut answer.text);
            if let Some(Ok(json)) = &mut answer.json {
                secrets.scrub_string(json);
            }
        }
        Err(failure) => {
            secrets.scrub_string(&mut failure.message);
            secrets.scrub_string(&mut failure.rendered);
            failure.hints.iter_mut().for_each(|hint| secrets.scrub_string(hint));
            if let Some(value) = &mut failure.value {
                secrets.scrub_string(value);
            }
        }
    }
    outcome.prints.iter_mut().for_each(|line| secrets.scrub_string(line));
    for call in &mut outcome.upstream_calls {
        if let CallStatus::Error { error, .. } = &mut call.status {
            secrets.scrub_string(error);
        }
    }
}

fn position(source: &str, span: Span) -> Position {
    let (line, column) = line_column(source, span.start);
    Position { line, column }
}
