//! Records the complete result of one call of `lisp_eval`, the tool that runs a program, from which a short or a
//! detailed response to the client is then made. The result is the run with an answer or error; an answer is already
//! validated against the output schema. Each response profile (how much of a result the client gets) selects from the
//! record.

use super::RefusalReason;
use super::caps::{COUNTED_BYTES, MEDIA_BYTES, Profile};
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, JsonRefusal, Outcome, RenderedValue};
use ptc_calls::schema::output::Schema;
use ptc_calls::schema::validate;
use serde_json::Value;
use std::borrow::Cow;

/// Largest JSON text that is checked against an output schema.
const MAX_VALIDATED_BYTES: usize = 4 << 20;

/// How a call of `lisp_eval` ended.
#[derive(Clone, Debug)]
pub enum EvalEnding<'o> {
    /// The program answered, and the answer matches the schema if there was one.
    Ok {
        /// The answer.
        answer: &'o RenderedValue,
        /// Present when the call had an `output_schema`.
        validated: Option<Box<Validated>>,
    },
    /// There is no answer.
    Error(Box<ErrorEnding<'o>>),
}

/// The value that matched an `output_schema`.
#[derive(Clone, Debug)]
pub struct Validated {
    /// The value; property names are spelled as in the schema.
    pub value: Value,
    /// Its JSON text.
    pub json: String,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub struct ErrorEnding<'o> {
    /// Class of the error.
    pub reason: &'static str,
    /// The raw reason; `None` when no program ran.
    pub kind: Option<&'static str>,
    /// One line.
    pub message: Cow<'o, str>,
    /// The message with location, caret and hints; the message alone if there is no more.
    pub detail: String,
    /// `pr-str` of `v` for `(fail v)`.
    pub value: Option<&'o str>,
    /// Line and column of the error.
    pub position: Option<(u32, u32)>,
}

/// A finished call.
#[derive(Clone, Debug)]
pub struct Record<'o> {
    /// Answer or error.
    pub ending: EvalEnding<'o>,
    /// The run behind it; `None` when no program ran.
    pub run: Option<&'o Outcome>,
}

/// Sets the run options that a record for this profile and schema needs.
pub fn run_options(profile: Profile, schema: Option<&Schema>, options: &mut RunOptions) {
    let caps = profile.caps();
    options.result_bytes = caps.result_bytes;
    // A caller with a schema gets data, as in the other profiles.
    options.plain_text = schema.is_none() && profile == Profile::Slim;
    options.want_json = schema.is_some() || profile != Profile::Slim;
    options.json_bytes = if schema.is_some() { MAX_VALIDATED_BYTES } else { caps.value_bytes };
    options.counted_bytes = COUNTED_BYTES;
    options.brief_text = true;
    // A caller with a schema wants the data itself, unshortened.
    options.brief_json = schema.is_none();
    options.media_bytes = MEDIA_BYTES;
    options.limited_answer = schema.is_some_and(Schema::is_limited);
}

impl<'o> Record<'o> {
    /// Records an outcome, and validates its answer.
    pub fn from_outcome(outcome: &'o Outcome, schema: Option<&Schema>) -> Record<'o> {
        let ending = match &outcome.result {
            Ok(answer) => match schema.map(|schema| judge(answer, schema)).transpose() {
                Ok(validated) => EvalEnding::Ok { answer, validated: validated.map(Box::new) },
                Err(message) => EvalEnding::Error(Box::new(ErrorEnding::validation(message))),
            },
            Err(failure) => EvalEnding::Error(Box::new(ErrorEnding::from_failure(failure))),
        };
        Record { ending, run: Some(outcome) }
    }

    /// A call that was refused before any program ran.
    pub fn refused(reason: RefusalReason, message: impl Into<String>) -> Record<'static> {
        let ending = ErrorEnding { kind: None, ..ErrorEnding::from_message(reason.name(), message.into()) };
        Record { ending: EvalEnding::Error(Box::new(ending)), run: None }
    }
}

impl ErrorEnding<'_> {
    fn from_failure(failure: &Failure) -> ErrorEnding<'_> {
        ErrorEnding {
            reason: failure.reason.class().name(),
            kind: Some(failure.reason.raw()),
            message: failure.message.as_str().into(),
            detail: failure.compact(),
            value: failure.value.as_deref(),
            position: failure.position().map(|place| (place.line, place.column)),
        }
    }

    fn validation(message: String) -> ErrorEnding<'static> {
        let reason = ptc_vm::Reason::ValidationError;
        ErrorEnding { kind: Some(reason.raw()), ..ErrorEnding::from_message(reason.class().name(), message) }
    }

    /// An error with nothing but this message.
    fn from_message(reason: &'static str, message: String) -> ErrorEnding<'static> {
        let detail = message.clone();
        ErrorEnding { reason, kind: None, message: message.into(), detail, value: None, position: None }
    }
}

/// Validates an answer against a schema; the error is the message of a `validation_error`.
pub fn check(answer: &RenderedValue, schema: &Schema) -> Result<(), String> {
    judge(answer, schema).map(|_| ())
}

fn judge(answer: &RenderedValue, schema: &Schema) -> Result<Validated, String> {
    let json = match &answer.json {
        Some(Ok(json)) => json,
        Some(Err(refusal @ (JsonRefusal::NotEncodable { .. } | JsonRefusal::SameName { .. }))) => {
            return Err(format!("validated value: {refusal}"));
        }
        Some(Err(JsonRefusal::TooLarge { .. })) | None => {
            return Err(format!("validated value: larger than {MAX_VALIDATED_BYTES} bytes of JSON"));
        }
    };
    let value = serde_json::from_str(json).map_err(|error| format!("validated value: {error}"))?;
    let value = validate(value, schema)?;
    let json = value.to_string();
    Ok(Validated { value, json })
}
