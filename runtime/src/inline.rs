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
pub struct Warm {
    loaded: Vec<Loaded>,
    /// Runs so far.
    runs: u64,
}

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
    /// The run that used it last.
    used: u64,
}

impl Warm {
    /// Where the isolate of a program is; it is loaded if need be. `None`: the program is not tiny.
    fn place(&mut self, engine: &Engine, source: &str, options: &RunOptions) -> Option<usize> {
        self.runs += 1;
        let fits = |loaded: &Loaded| {
            *loaded.source == *source
                && loaded.limits == options.limits
                && loaded.strict_data == options.strict_data
        };
        if let Some(place) = self.loaded.iter().position(fits) {
            let loaded = &mut self.loaded[place];
            loaded.used = self.runs;
            if loaded.program.is_tiny() && loaded.program.is_current(&engine.catalog) {
                return Some(place);
            }
            self.close(place);
        }
        let loaded = Loaded::new(engine, source, options, self.runs)?;
        if self.loaded.len() >= KEPT
            && let Some((oldest, _)) = self.loaded.iter().enumerate().min_by_key(|(_, loaded)| loaded.used)
        {
            self.close(oldest);
        }
        self.loaded.push(loaded);
        Some(self.loaded.len() - 1)
    }

    fn close(&mut self, place: usize) {
        self.loaded.swap_remove(place).close();
    }
}

impl Loaded {
    /// Loads a program that was tiny the last time.
    fn new(engine: &Engine, source: &str, options: &RunOptions, used: u64) -> Option<Loaded> {
        let program = engine.cache.get(source, &engine.catalog).filter(|program| program.is_tiny())?;
        let full = isolate_options(options, Interrupt::default());
        let mut isolate = Isolate::new(IsolateOptions {
            memory_bytes: full.memory_bytes.min(ALLOWED_BYTES),
            fuel: full.fuel.min(ALLOWED_FUEL),
            ..full
        });
        let context = options.context.as_deref().map_or(Ok(()), |text| isolate.set_context(text.as_bytes()));
        let Ok(unit) = context.and_then(|()| isolate.load(program.program.clone())) else {
            // What cannot be loaded within the allowance is not tiny.
            program.set_tiny(false);
            return None;
        };
        let mark = isolate.mark(unit);
        let (limits, strict_data) = (options.limits, options.strict_data);
        Some(Loaded { source: source.into(), program, limits, strict_data, isolate, unit, mark, used })
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
        warm.loaded.clear();
        None
    })
}

fn attempt(engine: &Engine, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Outcome> {
    let begun = options.timed.then(Instant::now);
    let mut outcome;
    if options.context.is_some() {
        // A context is read before the program is loaded, so the isolate is of no use for another one.
        let mut loaded = Loaded::new(engine, source, options, 0)?;
        outcome = loaded.finish(source, options, begun);
        loaded.close();
    } else {
        let place = warm.place(engine, source, options)?;
        let loaded = &mut warm.loaded[place];
        outcome = loaded.finish(source, options, begun);
        if outcome.is_none() || !loaded.isolate.rewind(&loaded.mark) {
            warm.close(place);
        }
    }
    if let Some(outcome) = &mut outcome {
        rendering::scrub(outcome, &engine.secrets);
    }
    outcome
}

impl Loaded {
    /// Runs it. `None`: it was not tiny this time.
    fn finish(&mut self, source: &str, options: &RunOptions, begun: Option<Instant>) -> Option<Outcome> {
        let outcome = self.run(source, options, begun);
        if outcome.is_none() {
            self.program.set_tiny(false);
        }
        outcome
    }

    fn run(&mut self, source: &str, options: &RunOptions, begun: Option<Instant>) -> Option<Outcome> {
        let Loaded { isolate, unit, .. } = self;
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
}
