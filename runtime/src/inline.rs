//! Tiny programs run at once, on the caller's thread: handing them to a worker costs more than they do.
//!
//! Only a program that was tiny before, and asked its host for nothing, gets this far. It has an allowance
//! of fuel and bytes far below its own limits, so it cannot hold its thread. When it needs more, fails, or
//! asks its host for something, it is forgotten and run again by a worker: nothing of it was seen by
//! anybody, since only host calls have effects and none was issued.
//!
//! A caller that runs many keeps some isolates with their programs loaded; see [`Warm`].

use crate::driver::isolate_options;
use crate::engine::Engine;
use crate::limits::Limits;
use crate::options::RunOptions;
use crate::outcome::{Outcome, Usage};
use crate::program_cache::CachedProgram;
use crate::rendering;
use ptc_vm::{Exit, Interrupt, Isolate, IsolateOptions, Mark, UnitId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
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

/// Isolates of one thread in which a tiny program is loaded and ready to run again. Each is as it was before
/// its first run: one that cannot be taken back there is closed.
#[derive(Default)]
pub struct Warm(Vec<Box<Loaded>>);

/// Loaded programs kept by one caller.
const KEPT: usize = 16;

struct Loaded {
    source: Box<str>,
    program: Arc<CachedProgram>,
    limits: Limits,
    strict_data: bool,
    isolate: Isolate,
    unit: UnitId,
    mark: Mark,
}

impl Warm {
    /// Takes the isolate of a program out, if it is there and the program is still good.
    fn take(&mut self, engine: &Engine, source: &str, options: &RunOptions) -> Option<Box<Loaded>> {
        // A context is read before the program is loaded, so it cannot be changed for another one.
        if options.context.is_some() {
            return None;
        }
        let fits = |loaded: &Loaded| {
            *loaded.source == *source
                && loaded.limits == options.limits
                && loaded.strict_data == options.strict_data
        };
        let place = self.0.iter().rposition(|loaded| fits(loaded))?;
        let loaded = self.0.remove(place);
        if loaded.program.is_tiny() && loaded.program.is_current(&engine.catalog) {
            return Some(loaded);
        }
        loaded.close();
        None
    }

    /// Keeps an isolate, the one that has not been used for longest giving way.
    fn keep(&mut self, loaded: Box<Loaded>) {
        if self.0.len() >= KEPT {
            self.0.remove(0).close();
        }
        self.0.push(loaded);
    }
}

impl Loaded {
    /// Loads a program that was tiny the last time.
    fn new(engine: &Engine, source: &str, options: &RunOptions) -> Option<Box<Loaded>> {
        let program = engine.cache.get(source, &engine.catalog).filter(|program| program.is_tiny())?;
        let full = isolate_options(options, Interrupt::default());
        let mut isolate = Isolate::new(IsolateOptions {
            memory_bytes: full.memory_bytes.min(ALLOWED_BYTES),
            fuel: full.fuel.min(ALLOWED_FUEL),
            ..full
        });
        if let Some(context) = &options.context {
            if isolate.set_context(context.as_bytes()).is_err() {
                program.set_tiny(false);
                return None;
            }
        }
        // A program that cannot be loaded within the allowance is not tiny.
        let Ok(unit) = isolate.load(program.program.clone()) else {
            program.set_tiny(false);
            return None;
        };
        let mark = isolate.mark(unit);
        let (limits, strict_data) = (options.limits, options.strict_data);
        Some(Box::new(Loaded { source: source.into(), program, limits, strict_data, isolate, unit, mark }))
    }

    fn close(self) {
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(leaked, "a program left bytes on its account");
        }
    }
}

/// Runs a tiny program to its end; `None` when a worker has to run it.
pub(crate) fn run(engine: &Engine, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Outcome> {
    if !has_tiny_context(options) || source.len() as u64 > options.limits.max_program_bytes {
        return None;
    }
    catch_unwind(AssertUnwindSafe(|| attempt(engine, warm, source, options))).unwrap_or_else(|_| {
        // A defect shows again on the worker, which knows how to tell its caller.
        if let Some(program) = engine.cache.get(source, &engine.catalog) {
            program.set_tiny(false);
        }
        None
    })
}

fn attempt(engine: &Engine, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Outcome> {
    let begun = options.timed.then(Instant::now);
    let mut loaded = match warm.take(engine, source, options) {
        Some(loaded) => loaded,
        None => Loaded::new(engine, source, options)?,
    };
    let mut outcome = finish(&mut loaded, source, options, begun);
    match &mut outcome {
        Some(outcome) => rendering::scrub(outcome, &engine.secrets),
        None => loaded.program.set_tiny(false),
    }
    if outcome.is_some() && options.context.is_none() && loaded.isolate.rewind(&loaded.mark) {
        warm.keep(loaded);
    } else {
        loaded.close();
    }
    outcome
}

fn finish(
    loaded: &mut Loaded,
    source: &str,
    options: &RunOptions,
    begun: Option<Instant>,
) -> Option<Outcome> {
    let Loaded { isolate, unit, .. } = loaded;
    isolate.start(*unit);
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
            duration: begun.map(|begun| begun.elapsed()).unwrap_or_default(),
            upstream_calls: 0,
        },
    })
}
