//! Converts the outcome of a program that has just run into a trace, so that the code that draws recorded runs can draw
//! it too.

use super::trace::{Trace, TraceCall, TracePayload, TraceRun};
use super::units::micros;
use crate::answer::outcome::call_fault;
use ptc_calls::outcome::{CallRecord, Outcome};

impl Trace {
    /// The trace of a program that has just run.
    pub fn of_run(program: &str, outcome: &Outcome) -> Trace {
        let failure = outcome.result.as_ref().err();
        let micros = micros(outcome.usage.duration);
        let mut calls: Vec<&CallRecord> = outcome.upstream_calls.iter().collect();
        calls.sort_by_key(|call| call.begun);
        let answer = outcome.result.as_ref().ok();
        Trace {
            tool: "program".to_owned(),
            is_error: failure.is_some(),
            reason: failure.map(|failure| failure.reason.raw().to_owned()),
            message: failure.map(|failure| failure.message.clone()),
            micros,
            run: Some(TraceRun {
                begun: 0,
                micros,
                fuel: outcome.usage.fuel,
                peak_bytes: Some(outcome.usage.peak_bytes),
                prelude: outcome.prelude_trace.as_deref().map(super::trace::prelude_line),
                calls: calls.into_iter().map(TraceCall::of_record).collect(),
            }),
            program: TracePayload::Whole(program.trim().to_owned()),
            answer_bytes: answer.map(|answer| answer.text.len() as u64),
            prints: outcome.prints.clone(),
            ..Trace::default()
        }
    }
}

impl TraceCall {
    /// A call of a run.
    pub(crate) fn of_record(call: &CallRecord) -> TraceCall {
        TraceCall {
            name: format!("{}/{}", call.server, call.tool),
            begun: micros(call.begun),
            micros: micros(call.duration),
            bytes: call.result_bytes,
            fault: call_fault(call).map(|(reason, error)| (reason.to_owned(), error.to_owned())),
        }
    }
}
