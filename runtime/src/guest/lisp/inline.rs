//! Tiny programs run at once, on the caller's thread: handing them to a worker costs more than they do.
//!
//! Only a program that was tiny before, and asked its host for nothing, gets this far. It has an allowance
//! of fuel and bytes far below its own limits, so it cannot hold its thread. When it needs more, fails, or
//! asks its host for something, it is forgotten and run again by a worker: nothing of it was seen by
//! anybody, since only host calls have effects and none was issued.
//!
//! A caller that runs many keeps some isolates with their programs loaded; see [`Warm`].

use super::Lisp;
use super::compile::run_budget;
use crate::guest::lisp::program_cache::{CachedProgram, ProgramKey};
use crate::guest::lisp::rendering;
use crate::run::limits::Limits;
use crate::run::options::RunOptions;
use crate::run::outcome::{Completion, Ending, JsonRefusal, Outcome, RenderedValue, Usage};
use crate::run::release::release;
use ptc_vm::print::{Extent, pr_str_into};
use ptc_vm::{Budget, Exit, Interrupt, Isolate, UnitId};
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
pub(crate) fn was_tiny(ending: &Ending, options: &RunOptions, host_calls: bool) -> bool {
    !host_calls
        && ending.result.is_ok()
        && ending.fuel.is_some_and(|fuel| fuel <= TINY_FUEL)
        && ending.peak_bytes <= TINY_BYTES
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
    /// Where the program that ran last is: clients often ask for the same one again.
    recent: usize,
    /// Runs so far.
    runs: u64,
    /// Text of the last answer; its memory is kept for the next.
    text: String,
}

/// Loaded programs kept by one caller.
const KEPT: usize = 16;

/// Most memory for the text of an answer that is kept for the next.
const KEPT_TEXT: usize = 64 << 10;

/// What is left of a run when its isolate has been taken back; the text is in [`Warm`].
struct Seen {
    completion: Completion,
    extent: Extent,
    is_nil: bool,
    json: Option<Result<String, JsonRefusal>>,
    prints: Vec<String>,
    usage: Usage,
}

struct Loaded {
    source: Box<str>,
    program: Arc<CachedProgram>,
    limits: Limits,
    strict_data: bool,
    isolate: Isolate,
    unit: UnitId,
    /// The run that used it last.
    used: u64,
}

impl Warm {
    /// Where the isolate of a program is; it is loaded if need be. `None`: the program is not tiny.
    fn place(&mut self, lisp: &Lisp, source: &str, options: &RunOptions) -> Option<usize> {
        self.runs += 1;
        let fits = |loaded: &Loaded| {
            *loaded.source == *source
                && loaded.strict_data == options.strict_data
                && loaded.limits == options.limits
        };
        let place = match self.loaded.get(self.recent) {
            Some(recent) if fits(recent) => Some(self.recent),
            _ => self.loaded.iter().position(fits),
        };
        if let Some(place) = place {
            let loaded = &mut self.loaded[place];
            if loaded.program.is_tiny() && loaded.program.is_current(lisp.broker.catalog()) {
                loaded.used = self.runs;
                self.recent = place;
                return Some(place);
            }
            self.close(place);
        }
        let loaded = Loaded::new(lisp, source, options, self.runs)?;
        if self.loaded.len() >= KEPT
            && let Some((oldest, _)) = self.loaded.iter().enumerate().min_by_key(|(_, loaded)| loaded.used)
        {
            self.close(oldest);
        }
        self.recent = self.loaded.len();
        self.loaded.push(loaded);
        Some(self.recent)
    }

    fn close(&mut self, place: usize) {
        self.loaded.swap_remove(place).close();
    }
}

impl Loaded {
    /// Loads a program that was tiny the last time.
    fn new(lisp: &Lisp, source: &str, options: &RunOptions, used: u64) -> Option<Loaded> {
        let environment = &lisp.environment;
        let key = ProgramKey::new(environment, options);
        let program =
            lisp.cache.get(key, source, lisp.broker.catalog()).filter(|program| program.is_tiny())?;
        let full = run_budget(options, Interrupt::default());
        let mut isolate = Isolate::new(Budget {
            memory_bytes: full.memory_bytes.min(ALLOWED_BYTES),
            fuel: full.fuel.min(ALLOWED_FUEL),
            ..full
        });
        let attached = environment.attach(&mut isolate);
        let context = options.context.as_deref();
        let prepared =
            attached.and_then(|()| context.map_or(Ok(()), |text| isolate.set_context(text.as_bytes())));
        let loaded = prepared.and_then(|()| {
            let unit = isolate.attach(program.program.clone())?;
            // A context is one run's, and so is what was loaded beside it.
            if options.context.is_none() { isolate.commit(u64::MAX) } else { Ok(()) }.map(|()| unit)
        });
        let Ok(unit) = loaded else {
            // What cannot be loaded within the allowance is not tiny.
            program.set_tiny(false);
            return None;
        };
        let (limits, strict_data) = (options.limits, options.strict_data);
        Some(Loaded { source: source.into(), program, limits, strict_data, isolate, unit, used })
    }

    fn close(self) {
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(leaked, "a program left bytes on its account");
        }
    }
}

/// Runs a tiny program to its end; `None` when a worker has to run it.
pub(crate) fn run(lisp: &Lisp, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Outcome> {
    let Seen { completion, extent, is_nil, json, prints, usage } = guarded(lisp, warm, source, options)?;
    let text = std::mem::take(&mut warm.text);
    let (truncated, text_bytes) = (extent.truncated, extent.bytes as u64);
    let outcome = Outcome {
        result: Ok(RenderedValue { completion, text, truncated, text_bytes, is_nil, json }),
        prints,
        upstream_calls: Vec::new(),
        notes: Vec::new(),
        usage,
    };
    Some(release(outcome, lisp.broker.secrets()))
}

/// Runs a program, and leaves a defect to a worker, which knows how to tell its caller.
fn guarded(lisp: &Lisp, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Seen> {
    if source.len() as u64 > options.limits.max_program_bytes || !has_tiny_context(options) {
        return None;
    }
    catch_unwind(AssertUnwindSafe(|| attempt(lisp, warm, source, options))).unwrap_or_else(|_| {
        let key = ProgramKey::new(&lisp.environment, options);
        if let Some(program) = lisp.cache.get(key, source, lisp.broker.catalog()) {
            program.set_tiny(false);
        }
        warm.loaded.clear();
        None
    })
}

fn attempt(lisp: &Lisp, warm: &mut Warm, source: &str, options: &RunOptions) -> Option<Seen> {
    let begun = options.timed.then(Instant::now);
    if warm.text.capacity() > KEPT_TEXT {
        warm.text = String::new();
    }
    let mut seen;
    if options.context.is_some() {
        // A context is read before the program is loaded, so the isolate is of no use for another one.
        let mut loaded = Loaded::new(lisp, source, options, 0)?;
        seen = loaded.run(&mut warm.text, options);
        loaded.close();
    } else {
        let place = warm.place(lisp, source, options)?;
        seen = warm.loaded[place].run(&mut warm.text, options);
    }
    if let (Some(seen), Some(begun)) = (&mut seen, begun) {
        seen.usage.duration = begun.elapsed();
    }
    seen
}

impl Loaded {
    /// Runs it. `None`: it was not tiny this time.
    fn run(&mut self, text: &mut String, options: &RunOptions) -> Option<Seen> {
        let seen = self.isolate.attempt(self.unit, ALLOWED_FUEL, |cx, ended| {
            let completion = match ended.exit {
                Exit::Done => Completion::Value,
                Exit::Return => Completion::Return,
                _ => return None,
            };
            if !cx.remarks.is_empty() {
                // Only a worker has somebody to tell.
                return None;
            }
            let extent = pr_str_into(cx, ended.value, options.result_bytes, text).ok()?;
            let json = match options.want_json {
                true => {
                    let json = |cx: &mut _| rendering::json(cx, ended.value, options.json_bytes);
                    Some(cx.holding(text.len(), json).ok()?)
                }
                false => None,
            };
            let usage =
                Usage { fuel: Some(cx.fuel.used()), peak_bytes: ended.peak_bytes, ..Usage::default() };
            let is_nil = ended.value.is_nil();
            Some(Seen { completion, extent, is_nil, json, prints: cx.prints.take(), usage })
        });
        if seen.is_none() {
            self.program.set_tiny(false);
        }
        seen
    }
}
