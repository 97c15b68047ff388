//! One run with the schema's verdict: everything that a profile may show.

use super::schema::Schema;
use super::validate::validate;
use super::{EdgeReason, caps::Profile};
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::{Failure, JsonRefusal, Outcome, RenderedValue};
use serde_json::Value;

/// Largest JSON text that is checked against an output schema.
const MAX_VALIDATED_BYTES: usize = 4 << 20;

/// How a call of `lisp_eval` ended.
#[derive(Clone, Debug)]
pub enum EvalEnding {
    /// The program answered, and the answer matches the schema if there was one.
    Ok {
        /// The answer.
        answer: RenderedValue,
        /// Present when the call had an `output_schema`.
        validated: Option<Validated>,
    },
    /// No answer.
    Error(ErrorEnding),
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
pub struct ErrorEnding {
    /// The class.
    pub reason: &'static str,
    /// The raw reason; `None` when no program ran.
    pub kind: Option<&'static str>,
    /// One line.
    pub message: String,
    /// The message with place, caret and hints; equal to the message when there is no more to say.
    pub detail: String,
    /// `pr-str` of `v` for `(fail v)`.
    pub value: Option<String>,
    /// Line and column.
    pub position: Option<(u32, u32)>,
}

/// A finished call.
#[derive(Clone, Debug)]
pub struct Record {
    /// Answer or error.
    pub ending: EvalEnding,
    /// The run behind it; `None` when no program ran. Its `result` has moved into `ending`.
    pub run: Option<RunEffects>,
}

/// The parts of an outcome beside its result.
#[derive(Clone, Debug)]
pub struct RunEffects {
    /// Printed lines.
    pub prints: Vec<String>,
    /// Upstream calls in completion order.
    pub calls: Vec<ptc_runtime::outcome::CallRecord>,
    /// Remarks that belong to the result.
    pub notes: Vec<String>,
    /// Cost.
    pub usage: ptc_runtime::outcome::Usage,
}

/// Asks the runtime for what the record of this profile and schema needs.
pub fn run_options(profile: Profile, schema: Option<&Schema>, options: &mut RunOptions) {
    let caps = profile.caps();
    options.result_bytes = caps.result_bytes;
    options.want_json = schema.is_some() || profile != Profile::Slim;
    options.json_bytes = if schema.is_some() { MAX_VALIDATED_BYTES } else { caps.value_bytes };
}

impl Record {
    /// Judges an outcome.
    pub fn of(outcome: Outcome, schema: Option<&Schema>) -> Record {
        let Outcome { result, prints, upstream_calls, notes, usage } = outcome;
        let ending = match result {
            Ok(answer) => match schema.map(|schema| judge(&answer, schema)).transpose() {
                Ok(validated) => EvalEnding::Ok { answer, validated },
                Err(message) => EvalEnding::Error(ErrorEnding::validation(message)),
            },
            Err(failure) => EvalEnding::Error(ErrorEnding::of(failure)),
        };
        Record { ending, run: Some(RunEffects { prints, calls: upstream_calls, notes, usage }) }
    }

    /// A call that was refused before any program ran.
    pub fn refused(reason: EdgeReason, message: impl Into<String>) -> Record {
        let message = message.into();
        let detail = message.clone();
        let ending =
            ErrorEnding { reason: reason.name(), kind: None, message, detail, value: None, position: None };
        Record { ending: EvalEnding::Error(ending), run: None }
    }
}

impl ErrorEnding {
    fn of(failure: Failure) -> ErrorEnding {
        let (detail, position) = (failure.compact(), failure.position());
        let Failure { reason, message, value, .. } = failure;
        ErrorEnding {
            reason: reason.class().name(),
            kind: Some(reason.raw()),
            detail,
            message,
            value,
            position: position.map(|place| (place.line, place.column)),
        }
    }

    fn validation(message: String) -> ErrorEnding {
        let reason = ptc_vm::Reason::ValidationError;
        ErrorEnding {
            reason: reason.class().name(),
            kind: Some(reason.raw()),
            detail: message.clone(),
            message,
            value: None,
            position: None,
        }
    }
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
