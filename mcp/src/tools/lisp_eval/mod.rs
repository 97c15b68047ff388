//! `lisp_eval`: runs one PTC-Lisp program.
//!
//! # Layout
//!
//! - [`evaluator`]: what runs programs, so that tests can replace it.
//! - [`arguments`]: `{program, context?, output_schema?}`, checked in a fixed order.
//! - [`definition`]: the entry of `tools/list`. [`description`]: the text in it that teaches a model the language
//!   and the configured servers.
//! - [`log`]: what a run tells a client that wants log messages.

pub mod arguments;
pub mod definition;
pub mod description;
pub mod evaluator;
pub mod log;

pub use evaluator::{Evaluator, RuntimeEvaluator};

use super::job::{Cancel, Job, Reporter};
use super::{Begun, CallContext, Definition, Facts, Tool, ToolAnswer};
use crate::answer::caps::Profile;
use crate::answer::profile::apply;
use crate::answer::record::{Record, run_options};
use crate::answer::schema::Schema;
use crate::answer::{EdgeReason, refused};
use crate::protocol::borrowed::Raw;
use arguments::EvalCall;
use ptc_runtime::limits::Limits;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Name of the tool.
pub const NAME: &str = "lisp_eval";

/// The tool.
pub struct LispEval {
    evaluator: Arc<dyn Evaluator>,
    limits: Limits,
    /// Options of a call that has but a program, for each of [`Profile::ALL`].
    usual: [RunOptions; Profile::ALL.len()],
}

impl LispEval {
    /// Programs run on this evaluator, each within these limits.
    pub fn new(evaluator: Arc<dyn Evaluator>, limits: Limits) -> LispEval {
        let usual = Profile::ALL.map(|profile| {
            // Nobody sees how long a program took that is over at once, unless there is a place to see it.
            let timed = profile == Profile::Debug;
            let mut options = RunOptions { strict_data: true, limits, timed, ..RunOptions::default() };
            run_options(profile, None, &mut options);
            options
        });
        LispEval { evaluator, limits, usual }
    }
}

impl Tool for LispEval {
    fn name(&self) -> &str {
        NAME
    }

    fn definition(&self, facts: &Facts) -> Definition {
        definition::definition(facts)
    }

    fn begin(&self, arguments: Option<Raw<'_>>, call: &CallContext) -> Begun {
        let EvalCall { program, context, schema } = match arguments::read(arguments, &self.limits) {
            Ok(call) => call,
            Err(message) => {
                return Begun::Answer(refused(call.profile, EdgeReason::ArgsError, message).into());
            }
        };
        let mut options = Cow::Borrowed(&self.usual[call.profile as usize]);
        if context.is_some() || schema.is_some() || call.log.is_some() {
            let options = options.to_mut();
            options.context = context;
            options.timed |= call.log.is_some();
            run_options(call.profile, schema.as_ref(), options);
        }
        let rendering = Rendering { call: *call, schema };
        if let Some(outcome) = self.evaluator.run_now(&program, &options) {
            return Begun::Answer(rendering.answer(outcome));
        }
        let (evaluator, program) = (self.evaluator.clone(), program.into_owned());
        // The time at the gate counts: else the last of many requests would wait once more behind it.
        let options = RunOptions { since: Some(Instant::now()), ..options.into_owned() };
        // The runtime counts the memory of its programs itself.
        Begun::Run(Job::new(0, move |reporter| -> Cancel {
            evaluator.submit(program, options, Box::new(CallWatcher { reporter, rendering }))
        }))
    }
}

/// How the outcome of a call is shown.
struct Rendering {
    call: CallContext,
    schema: Option<Schema>,
}

impl Rendering {
    fn answer(&self, outcome: Outcome) -> ToolAnswer {
        let log = self.call.log.map(|level| log::of_run(level, &outcome)).unwrap_or_default();
        ToolAnswer { result: apply(self.call.profile, &Record::of(outcome, self.schema.as_ref())), log }
    }
}

/// Follows one program, and renders its outcome on the thread that it ended on.
struct CallWatcher {
    reporter: Box<dyn Reporter>,
    rendering: Rendering,
}

impl RunWatcher for CallWatcher {
    fn begun(&mut self) {
        self.reporter.begun();
    }

    fn call_ended(&mut self, ended: u64) {
        self.reporter.progress(ended, "upstream call");
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let answer = self.rendering.answer(outcome);
        self.reporter.ended(answer);
    }
}
