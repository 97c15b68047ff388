//! Redacts secrets in the outcome of a run before it leaves the runtime.
//!
//! Texts are redacted here while they are complete; response profiles may cut them later. Every structure is
//! destructured by field name, so a field that is added to an outcome does not compile until this file
//! handles it.

use super::outcome::{
    CallRecord, CallStatus, Failure, JsonRefusal, Location, Media, Outcome, RenderedValue, Report, Usage,
};
use ptc_base::secrets::{DocumentShape, SecretRegistry};
use ptc_compiler::diagnostic::Call;
use std::borrow::Cow;
use std::sync::Arc;

/// Redacts all texts.
pub fn release(outcome: &mut Outcome, secrets: &SecretRegistry) {
    if !secrets.is_empty() {
        clean(outcome, secrets);
    }
}

fn clean(outcome: &mut Outcome, secrets: &SecretRegistry) {
    // The prelude's facts are the host's own text, which is redacted when it is sent.
    let Outcome { result, prints, stderr, upstream_calls, call_totals: _, notes, usage, prelude_trace: _ } =
        outcome;
    let Usage { fuel: _, peak_bytes: _, duration: _, upstream_calls: _ } = usage;
    match result {
        Ok(answer) => clean_answer(answer, secrets),
        Err(failure) => clean_failure(failure, secrets),
    }
    prints.iter_mut().chain(stderr).chain(notes).for_each(|text| secrets.scrub_string(text));
    upstream_calls.iter_mut().for_each(|call| clean_call(call, secrets));
}

/// Redacts the record of a call.
pub(super) fn clean_call(call: &mut CallRecord, secrets: &SecretRegistry) {
    let CallRecord {
        server,
        tool,
        status,
        begun: _,
        duration: _,
        result_bytes: _,
        effect: _,
        arguments_hash: _,
        cached: _,
        ruling: _,
        number: _,
        place: _,
    } = call;
    for name in [server, tool] {
        clean_name(name, secrets);
    }
    match status {
        CallStatus::Ok => {}
        CallStatus::Error { reason: _, error } => clean_cut(error, secrets),
    }
}

/// Redacts the name of a server or tool.
pub(super) fn clean_name(name: &mut Arc<str>, secrets: &SecretRegistry) {
    if let Cow::Owned(clean) = secrets.scrub(name) {
        *name = clean.into();
    }
}

fn clean_answer(answer: &mut RenderedValue, secrets: &SecretRegistry) {
    let RenderedValue {
        completion: _,
        text,
        is_plain: _,
        truncated,
        text_bytes: _,
        saved_bytes: _,
        is_nil: _,
        json,
        media,
    } = answer;
    for Media { kind: _, data, mime_type } in media {
        secrets.scrub_string(data);
        secrets.scrub_string(mime_type);
    }
    if *truncated {
        clean_cut(text, secrets);
    } else {
        secrets.scrub_string(text);
    }
    match json {
        Some(Ok(json)) => {
            if let Cow::Owned(clean) = secrets.scrub_json(json, &DocumentShape::DATA) {
                *json = clean;
            }
        }
        Some(Err(JsonRefusal::NotEncodable { path })) => secrets.scrub_string(path),
        Some(Err(JsonRefusal::SameName { path, key, other })) => {
            [path, key, other].into_iter().for_each(|text| secrets.scrub_string(text));
        }
        Some(Err(JsonRefusal::TooLarge { bytes: _ })) | None => {}
    }
}

fn clean_failure(failure: &mut Failure, secrets: &SecretRegistry) {
    let Failure { reason: _, message, value, reports, more: _ } = failure;
    // The value of a failure is cut without an ellipsis, and may be the message.
    clean_cut(message, secrets);
    value.iter_mut().for_each(|value| clean_cut(value, secrets));
    reports.iter_mut().for_each(|report| clean_report(report, secrets));
}

fn clean_report(report: &mut Report, secrets: &SecretRegistry) {
    let Report { severity: _, reason: _, message, location, calls, types: _, hints } = report;
    clean_cut(message, secrets);
    hints.iter_mut().for_each(|text| secrets.scrub_string(text));
    location.iter_mut().for_each(|location| clean_location(location, secrets));
    for Call { function, location } in calls {
        secrets.scrub_string(function);
        clean_location(location, secrets);
    }
}

fn clean_location(location: &mut Location, secrets: &SecretRegistry) {
    let Location { start: _, end: _, line_text, indent: _, width: _, excerpt } = location;
    clean_cut(line_text, secrets);
    secrets.scrub_string(excerpt);
}

fn clean_cut(text: &mut String, secrets: &SecretRegistry) {
    if let Cow::Owned(clean) = secrets.scrub_cut(text) {
        *text = clean;
    }
}
