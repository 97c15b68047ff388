//! The tool `lisp_eval`, which runs one PTC-Lisp program. Here are also the jobs with which other tools run and resume
//! programs.
//!
//! # Layout
//!
//! - [`evaluator`]: the interface to the runtime, which tests replace.
//! - [`arguments`]: `{program, context?, output_schema?}`, checked in a fixed order.
//! - [`definition`]: the entry of `tools/list`. [`description`]: the text in it that teaches a model the
//!   language and the configured servers.

pub mod arguments;
pub mod definition;
pub mod description;
pub mod evaluator;

pub use evaluator::Evaluator;

use super::job::{Job, Reporter};
use super::{Begun, CallContext, Definition, Facts, Responder, Started, TaskSupport, Tool, ToolAnswer, log};
use crate::answer::caps::Profile;
use crate::answer::profile::apply;
use crate::answer::record::{Record, run_options};
use crate::answer::{RefusalReason, refused};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use arguments::{EvalArguments, memo, read_context, schema_of};
use ptc_calls::journal::Keepable;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_calls::schema::output::Schema;
use ptc_calls::watcher::RunWatcher;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Name of the tool.
pub const NAME: &str = "lisp_eval";

/// The tool.
pub struct LispEval {
    evaluator: Arc<dyn Evaluator>,
    limits: Limits,
    /// Options of a call with no argument but a program, for each of [`Profile::ALL`].
    common: [RunOptions; Profile::ALL.len()],
}

impl LispEval {
    /// Runs programs on this evaluator, each within these limits.
    pub fn new(evaluator: Arc<dyn Evaluator>, limits: Limits) -> LispEval {
        let common = Profile::ALL.map(|profile| {
            // Only the debug profile shows the duration of a program that ends at once.
            let timed = profile == Profile::Debug;
            let mut options = RunOptions { strict_data: true, limits, timed, ..RunOptions::default() };
            run_options(profile, None, &mut options);
            options
        });
        LispEval { evaluator, limits, common }
    }
}

impl Tool for LispEval {
    fn name(&self) -> &str {
        NAME
    }

    fn task_support(&self) -> TaskSupport {
        TaskSupport::Optional
    }

    fn definition(&self, facts: &Facts) -> Definition {
        definition::definition(facts)
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let EvalArguments { program, context, schema, output_schema, .. } =
            match arguments::read(params.arguments, &self.limits) {
                Ok(call) => call,
                Err(message) => {
                    return reply.with(&refused(call.profile, RefusalReason::ArgsError, message));
                }
            };
        let mut options = Cow::Borrowed(&self.common[call.profile as usize]);
        if schema.is_some() || call.log.is_some() {
            let options = options.to_mut();
            options.timed |= call.log.is_some();
            run_options(call.profile, schema.as_ref(), options);
        }
        let (mut reply, mut begun) = (Some(reply), None);
        self.evaluator.try_run(&program, context.map(Raw::get), &options, &mut |outcome| {
            begun =
                reply.take().map(|reply| render(call, schema.as_ref(), outcome, |answer| reply.with(answer)));
        });
        if let Some(begun) = begun {
            return begun;
        }
        // A program that ran had a valid context.
        let context = context.map(|raw| read_context(raw, self.limits.max_context_bytes)).transpose();
        let context = match (context, reply) {
            (Err(message), Some(reply)) => {
                return reply.with(&refused(call.profile, RefusalReason::ArgsError, message));
            }
            (context, _) => context.unwrap_or_default(),
        };
        let (evaluator, program) = (self.evaluator.clone(), program.into_owned());
        let options = RunOptions {
            context: context.map(str::to_owned),
            // The time at the gate counts towards the deadline. Otherwise the last of many requests would
            // wait for it twice.
            since: Some(Instant::now()),
            trace: call.trace.clone(),
            ..options.into_owned()
        };
        let memo = memo(output_schema);
        Begun::Run(program_job(evaluator, program, options, schema, memo, (call.clone(), Shape::Report)))
    }

    fn resume(&self, run: &str, memo: &str, call: &CallContext) -> Option<Job> {
        resumed_job(self.evaluator.clone(), run, memo, (call.clone(), Shape::Report))
    }
}

/// The job that runs a program; `memo` is for [`resumed_job`]. The runtime accounts for the memory of its programs
/// itself.
pub(super) fn program_job(
    evaluator: Arc<dyn Evaluator>,
    program: String,
    options: RunOptions,
    schema: Option<Schema>,
    memo: String,
    (call, shape): (CallContext, Shape),
) -> Job {
    Job::keepable(0, Some(memo), move |reporter| {
        let (keep, keeper) = Keepable::new();
        let options = RunOptions { client: reporter.caller(), keep: Some(keep), ..options };
        let watcher = EvalWatcher { reporter, schema, call, shape };
        let cancel = evaluator.submit(program, options, Box::new(watcher));
        Started { cancel, keeper: Some(keeper) }
    })
}

/// The job that goes on with a stored run; `None` if the memo is none of ours.
pub(super) fn resumed_job(
    evaluator: Arc<dyn Evaluator>,
    run: &str,
    memo: &str,
    (call, shape): (CallContext, Shape),
) -> Option<Job> {
    let (schema, run) = (schema_of(memo)?, run.to_owned());
    Some(Job::keepable(0, None, move |reporter| {
        let (keep, keeper) = Keepable::new();
        let options = RunOptions { client: reporter.caller(), keep: Some(keep), ..RunOptions::default() };
        let watcher = EvalWatcher { reporter, schema, call, shape };
        let cancel = evaluator.resume(run, options, Box::new(watcher));
        Started { cancel, keeper: Some(keeper) }
    }))
}

/// Answers a call with the outcome of its run.
struct EvalWatcher {
    reporter: Box<dyn Reporter>,
    schema: Option<Schema>,
    call: CallContext,
    shape: Shape,
}

impl RunWatcher for EvalWatcher {
    fn inner(&mut self) -> Option<&mut dyn RunWatcher> {
        Some(&mut self.reporter)
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let EvalWatcher { reporter, schema, call, shape } = *self;
        render(&call, schema.as_ref(), &outcome, |answer| match shape {
            Shape::Report => reporter.ended(answer),
            Shape::Value => reporter.ended(&bare(answer)),
        });
    }
}

/// What the structured result of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A report about the run, with the value in it.
    Report,
    /// The value itself.
    Value,
}

/// An answer with the validated value as its structured result.
fn bare<'a>(answer: &ToolAnswer<'a>) -> ToolAnswer<'a> {
    let mut answer = answer.clone();
    if let Some(mut structured) = answer.structured.take() {
        answer.structured = structured.get_mut("validated").map(serde_json::Value::take);
        if answer.structured.is_none() {
            // A client would reject a result without what the schema promises.
            answer.is_error = true;
        }
    }
    answer
}

/// Makes the answer to a call from its outcome.
fn render<T>(
    call: &CallContext,
    schema: Option<&Schema>,
    outcome: &Outcome,
    show: impl FnOnce(&ToolAnswer<'_>) -> T,
) -> T {
    let log = call.log.map(|level| log::run_messages(level, outcome)).unwrap_or_default();
    let record = Record::from_outcome(outcome, schema);
    show(&ToolAnswer { log, ..apply(call.profile, &record) })
}
