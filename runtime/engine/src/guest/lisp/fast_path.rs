//! The fast path: tiny programs run at once on the caller's thread, because handing them to a worker costs
//! more than they do.
//!
//! Gain: a tiny program over HTTP takes 22 % less processor time (`ptc-bench http`, median of three turns with and
//! without it: 13, 22, 40 %). Programs that are new or call tools gain nothing.
//!
//! It takes only a program that was tiny in its last run and made no host call. The program gets an allowance of
//! fuel and bytes far below its own limits, so it cannot hold its thread. When it needs more, fails, or makes
//! a host call, its run is discarded and a worker runs it again. That is safe: only host calls have effects,
//! and none was issued.

use super::Lisp;
use super::pool::{self, Allowance, Prepared};
use super::rendering::{self, may_have_media};
use ptc_base::panics::caught;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Completion, Outcome, RenderedValue};
use ptc_calls::run::release::release;
use ptc_vm::print::{plain_into, pr_str_into};
use ptc_vm::{Exit, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program that used at most this much fuel counts as tiny.
const TINY_FUEL: u64 = 4_000;
/// Fuel that such a program gets: its next run may cost a little more.
const ALLOWED_FUEL: u64 = 8_000;
/// A program with at most this many live bytes counts as tiny.
const TINY_BYTES: u64 = 128 << 10;
/// Live bytes that such a program gets.
const ALLOWED_BYTES: u64 = 512 << 10;
/// Size limit of the context: decoding it costs time before the fuel limit applies.
const TINY_CONTEXT: usize = 4 << 10;

/// The fuel of a run, if the next run of its program may use the fast path.
pub(crate) fn was_tiny(outcome: &Outcome, options: &RunOptions, host_calls: bool) -> Option<u64> {
    let is_tiny = !host_calls
        && outcome.result.as_ref().is_ok_and(|answer| answer.media.is_empty())
        && outcome.usage.peak_bytes <= TINY_BYTES
        && is_tiny_context(options.context.as_deref());
    outcome.usage.fuel.filter(|fuel| is_tiny && *fuel <= TINY_FUEL)
}

fn is_tiny_context(context: Option<&str>) -> bool {
    context.is_none_or(|context| context.len() <= TINY_CONTEXT)
}

/// Runs a tiny program to its end and passes its outcome to `show`. Returns `None`, without calling `show`,
/// when a worker has to run it.
pub(crate) fn try_run<T>(
    lisp: &Arc<Lisp>,
    source: &str,
    context: Option<&str>,
    options: &RunOptions,
    look: impl FnOnce(&Outcome) -> T,
) -> Option<T> {
    let limits = &options.limits;
    let context_bytes = context.map_or(0, str::len) as u64;
    if source.len() as u64 > limits.max_program_bytes
        || context_bytes > limits.max_context_bytes
        || !is_tiny_context(context)
        || lisp.broker.recorder().is_some()
        || options.journal.is_some()
    {
        return None;
    }
    let begun = options.timed.then(Instant::now);
    let mut prepared = prepare(lisp, source, options)?;
    let needed = &prepared.program.needed;
    let is_known = needed.is_empty() || lisp.environment.unproven(needed, &lisp.broker).is_empty();
    // Checked after the lists are known, so that no change is missed.
    if !is_known || lisp.environment.check(&lisp.broker).is_err() {
        // A worker waits for the servers, and reports what is missing.
        pool::put(lisp, prepared);
        return None;
    }
    let ran = caught(|| prepared.run(context, options));
    let Ok(true) = ran else {
        // A worker also handles defects; it reports them to the caller.
        prepared.program.set_tiny(None);
        prepared.close();
        return None;
    };
    prepared.outcome.usage.duration = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    release(&mut prepared.outcome, lisp.broker.secrets());
    let seen = look(&prepared.outcome);
    pool::put(lisp, prepared);
    Some(seen)
}

/// An isolate in which this program is loaded; `None` when it is not tiny.
fn prepare(lisp: &Arc<Lisp>, source: &str, options: &RunOptions) -> Option<Box<Prepared>> {
    let allowance = Allowance::within(lisp, options, ALLOWED_BYTES, ALLOWED_FUEL);
    if let Some(prepared) = pool::take(lisp, source, &allowance) {
        if prepared.program.is_tiny(options.caller_fuel) && prepared.program.is_current(lisp.broker.catalog())
        {
            return Some(prepared);
        }
        prepared.close();
    }
    let program = lisp
        .cache
        .get(allowance.key, source, lisp.broker.catalog())
        .filter(|program| program.is_tiny(options.caller_fuel))?;
    let load = || Prepared::new(lisp, source, program.clone(), options, allowance);
    let prepared = caught(load).unwrap_or_default();
    if prepared.is_none() {
        // A program that does not load within the allowance is not tiny, and defects are left to a worker.
        program.set_tiny(None);
    }
    prepared
}

/// True if each key can be written as `data/<key>`, or without a context. Other keys are reported when a
/// worker runs the program.
fn are_names(context: &Value) -> bool {
    let Value::Map(map) = context else { return true };
    let is_name =
        |key: &Value| key.as_str().is_some_and(|key| !key.is_empty() && !key.as_bytes().contains(&b'/'));
    map.keys().iter().all(is_name)
}

impl Prepared {
    /// Runs the program once and records the result; false when it was not tiny this time.
    fn run(&mut self, context: Option<&str>, options: &RunOptions) -> bool {
        let Prepared { isolate, unit, outcome, .. } = self;
        isolate.attempt(*unit, context, ALLOWED_FUEL, |cx, ended| {
            let Outcome { result: Ok(answer), prints, usage, .. } = outcome else { return false };
            // The keys of a context are known only after it was decoded. The run can still be discarded here.
            if !are_names(&cx.data) {
                return false;
            }
            let RenderedValue {
                completion,
                text,
                is_plain,
                truncated,
                text_bytes,
                saved_bytes,
                is_nil,
                json,
                media: _,
            } = answer;
            *completion = match ended.exit {
                Exit::Done => Completion::Value,
                Exit::Return => Completion::Return,
                _ => return false,
            };
            // A tiny program has no answers of discovery.
            let plain = match options.plain_text {
                true => plain_into(cx, ended.value, options.text_limit(), &|_| false, text),
                false => Ok(None),
            };
            let Ok(plain) = plain else { return false };
            *is_plain = plain.is_some();
            let printed = match plain {
                Some(extent) => Ok(extent),
                None => pr_str_into(cx, ended.value, options.text_limit(), text),
            };
            let Ok(extent) = printed else { return false };
            if may_have_media(text, options) {
                return false;
            }
            (*truncated, *text_bytes) = (extent.truncated, extent.bytes as u64);
            *saved_bytes = extent.saved as u64;
            *is_nil = ended.value.is_nil();
            *json = None;
            if options.want_json {
                // Both texts exist at the same time.
                let encode = |cx: &mut _| rendering::json(cx, ended.value, options.json_limit());
                let Ok(encoded) = cx.holding(text.len(), encode) else { return false };
                *json = Some(encoded);
            }
            if cx.prints.remark().is_some() {
                return false;
            }
            *prints = cx.prints.take();
            (usage.fuel, usage.peak_bytes) = (Some(cx.fuel.used()), ended.peak_bytes);
            true
        })
    }
}
