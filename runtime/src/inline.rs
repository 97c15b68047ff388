//! Tiny programs run at once, on the caller's thread: handing them to a worker costs more than they do.
//!
//! Only a program that was tiny before, and asked its host for nothing, gets this far. It has an allowance
//! of fuel and bytes far below its own limits, so it cannot hold its thread. When it needs more, fails, or
//! asks its host for something, it is forgotten and run again by a worker: nothing of it was seen by
//! anybody, since only host calls have effects and none was issued.

use crate::driver::isolate_options;
use crate::engine::Engine;
use crate::options::RunOptions;
use crate::outcome::{Outcome, Usage};
use crate::program_cache::CachedProgram;
use crate::rendering;
use ptc_vm::{Exit, Interrupt, Isolate, IsolateOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Fuel of a program that counts as tiny.
const TINY_FUEL: u64 = 4_000;
/// Fuel that such a program gets; its next run may cost a little more.
const ALLOWED_FUEL: u64 = 8_000;
/// Live bytes of a program that counts as tiny.
const TINY_BYTES: u64 = 128 << 10;
/// Live bytes that such a program gets.
const ALLOWED_BYTES: u64 = 512 << 10;
/// Context of a program that counts as tiny: decoding it is paid for before fuel is looked at.
const TINY_CONTEXT: usize = 4 << 10;

/// True when a run like this one may be done on its caller's thread the next time.
pub(crate) fn was_tiny(outcome: &Outcome, options: &RunOptions, host_calls: bool) -> bool {
    !host_calls
        && outcome.result.is_ok()
        && outcome.usage.fuel <= TINY_FUEL
        && outcome.usage.peak_bytes <= TINY_BYTES
        && has_tiny_context(options)
}

fn has_tiny_context(options: &RunOptions) -> bool {
    options.context.as_ref().is_none_or(|context| context.len() <= TINY_CONTEXT)
}

/// Runs a tiny program to its end; `None` when a worker has to run it.
pub(crate) fn run(engine: &Engine, source: &str, options: &RunOptions) -> Option<Outcome> {
    if !has_tiny_context(options) || source.len() as u64 > options.limits.max_program_bytes {
        return None;
    }
    let cached = engine.cache.get(source, &engine.catalog)?;
    if !cached.is_tiny() {
        return None;
    }
    // A defect shows again on the worker, which knows how to tell its caller.
    let outcome = catch_unwind(AssertUnwindSafe(|| attempt(engine, &cached, source, options))).ok().flatten();
    if outcome.is_none() {
        cached.set_tiny(false);
    }
    outcome
}

fn attempt(engine: &Engine, cached: &CachedProgram, source: &str, options: &RunOptions) -> Option<Outcome> {
    let begun = Instant::now();
    let full = isolate_options(options, Interrupt::default());
    let mut isolate = Isolate::new(IsolateOptions {
        memory_bytes: full.memory_bytes.min(ALLOWED_BYTES),
        fuel: full.fuel.min(ALLOWED_FUEL),
        ..full
    });
    let outcome = finish(&mut isolate, cached, source, options, begun);
    let leaked = isolate.close();
    if leaked != 0 {
        tracing::error!(leaked, source = %options.source_name, "a program left bytes on its account");
    }
    let mut outcome = outcome?;
    rendering::scrub(&mut outcome, &engine.secrets);
    Some(outcome)
}

fn finish(
    isolate: &mut Isolate,
    cached: &CachedProgram,
    source: &str,
    options: &RunOptions,
    begun: Instant,
) -> Option<Outcome> {
    if let Some(context) = &options.context {
        isolate.set_context(context.as_bytes()).ok()?;
    }
    let unit = isolate.load(cached.program.clone()).ok()?;
    isolate.start(unit);
    let exit = isolate.run(ALLOWED_FUEL);
    if !matches!(exit, Exit::Done | Exit::Return) {
        return None;
    }
    let result = rendering::result(isolate, &exit, source, options).ok()?;
    Some(Outcome {
        result,
        prints: isolate.prints(),
        upstream_calls: Vec::new(),
        notes: Vec::new(),
        usage: Usage {
            fuel: isolate.fuel_used(),
            peak_bytes: isolate.peak_bytes(),
            duration: begun.elapsed(),
            upstream_calls: 0,
        },
    })
}
