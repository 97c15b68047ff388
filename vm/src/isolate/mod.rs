//! An isolate holds the values, names and fibers of one program or session, runs in slices, and suspends whenever the
//! host must do something.
//!
//! The driver's loop:
//!
//! ```text
//! isolate.load(program) -> isolate.start(unit)
//! loop { match isolate.run(slice) {
//! HostCall(id) => read isolate.call(id, …), start the work
//! SliceEnd     => let others run
//! Blocked      => wait for an answer, then isolate.resume(id, …)
//! Done | Return | Fail => isolate.result(…)
//! Fault(fault) => report it
//! } }
//! ```
//!
//! # Runs
//! Whatever an isolate does belongs to a *run*, and a run ends in one of two ways: [`Isolate::commit`] keeps what it
//! has defined for later runs, [`Isolate::rollback`] leaves no trace of it. A new isolate is in its first run; the next
//! one begins where one ends, with the same budget or, after [`Isolate::begin`], with another.
//!
//! # Layout
//! - `run`: beginning, commit and rollback of runs; `sweep`: freeing retained values that nothing reaches any more
//! - `budget`: limits of a run
//! - `definitions`: definitions by name; `attached`: those of the host; `history`: names of earlier results; `names`:
//!   the slots of all names
//! - `freeze`: a result as data; `link`, `units`: loaded programs
//! - `schedule`: fibers, branches of `pmap`, host calls in flight; `sources`: the host's view of source tracking

mod attached;
mod budget;
mod definitions;
mod free_ranges;
mod freeze;
mod history;
mod link;
mod names;
mod run;
mod schedule;
pub(crate) mod sources;
mod sweep;
mod units;

use crate::builtins::{DIRECT, FACTS, HostFunction};
use crate::bytecode::instruction::Signal;
use crate::bytecode::{Builtins, Program};
use crate::context::{Context, Prints, Unit};
use crate::fault::{BoundedText, Fault, Reason, Result, Span, UnitId};
use crate::interpreter::globals::Globals;
use crate::interpreter::{Stop, hints};
use crate::isolate::link::link;
use crate::isolate::names::GlobalSlots;
use crate::memory::{Fuel, Interrupt, Meter, account};
use crate::sources::Tracker;
use crate::value::garbage::{self, Heap};
use crate::value::symbol::Symbols;
use crate::value::{Store, Value};
pub use budget::{Budget, Tuning};
pub use definitions::{Arity, Definition};
pub use freeze::NotData;
pub use run::{Ended, OverLimit};
use schedule::Schedule;
use std::sync::Arc;
use units::Units;

/// Values freed at the end of an isolate between two points of preemption.
const FREE_STEP: usize = 1 << 14;

/// Number of a host call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Why [`Isolate::run`] returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program ended with the value of its last form.
    Done,
    /// The program ended with `(return v)`.
    Return,
    /// The program ended with `(fail v)`; the fault has a location but no message.
    Fail(Box<Fault>),
    /// The program faulted.
    Fault(Box<Fault>),
    /// A fiber made a host call; other fibers may be able to run, so call `run` again.
    HostCall(CallId),
    /// Every fiber waits for the host.
    Blocked,
    /// The slice is used up.
    SliceEnd,
}

/// The world of one program. Not `Send`: it stays on its thread.
pub struct Isolate {
    heap: Heap,
    world: Option<World>,
    cancelled: Vec<CallId>,
    /// Live logical bytes at the beginning of the run.
    begun_with: u64,
}

/// Everything that holds values; used only inside the heap's scope.
struct World {
    cx: Context,
    globals: Globals,
    slots: GlobalSlots,
    units: Units,
    schedule: Schedule,
    result: Value,
    /// The program that was started last.
    started: UnitId,
    /// Live logical bytes after the last sweep.
    swept: u64,
    /// Number of ended runs.
    runs: u64,
    /// Where values of earlier runs come from, while a run does not track it.
    tracker: Option<Box<Tracker>>,
}

impl Isolate {
    /// An empty isolate in its first run.
    pub fn new(budget: Budget) -> Isolate {
        Isolate::tuned(budget, Tuning::default())
    }

    /// An empty isolate with other optimisations, which programs cannot observe.
    #[doc(hidden)]
    pub fn tuned(budget: Budget, tuning: Tuning) -> Isolate {
        let mut symbols = Symbols::default();
        symbols.plain_keys = !tuning.intern_keys;
        let memory_bytes = budget.memory_bytes;
        let store =
            Store::new(Meter::new(Fuel::new(0, Interrupt::default())), symbols, Builtins::new(&FACTS));
        let mut cx = Context::new(store, &DIRECT, Prints::default());
        cx.hot_loop = tuning.hot_loop;
        let mut world = World {
            cx,
            globals: Globals::default(),
            slots: GlobalSlots::default(),
            units: Units::default(),
            schedule: Schedule::default(),
            result: Value::Nil,
            started: UnitId(0),
            swept: 0,
            runs: 0,
            tracker: None,
        };
        world.set_budget(budget);
        let heap = Heap::new(memory_bytes);
        Isolate { heap, world: Some(world), cancelled: Vec::new(), begun_with: 0 }
    }

    /// Runs `work` inside the scope of the isolate's memory account.
    fn scope<T>(&mut self, work: impl FnOnce(&mut World, &mut Vec<CallId>) -> T) -> T {
        let world = self.world.as_mut();
        self.heap.enter();
        // The world exists until `close`, which consumes the isolate.
        let result = work(world.expect("the world exists until close"), &mut self.cancelled);
        self.heap.leave();
        result
    }

    /// Runs `work` with the isolate's context, for building and reading values.
    pub fn with<T>(&mut self, work: impl FnOnce(&mut Context) -> T) -> T {
        self.scope(|world, _| work(&mut world.cx))
    }

    /// Makes the keys of a JSON object readable as `data/…`.
    ///
    /// # Errors
    /// Text that is not a JSON object; memory.
    pub fn set_context(&mut self, json: &str) -> Result<()> {
        self.scope(|world, _| world.set_context(json))
    }

    /// Adds a program. It stays for the run, and afterwards while something retained reaches it.
    ///
    /// # Errors
    /// Memory; fuel for the patterns of regex literals.
    pub fn load(&mut self, program: Arc<Program>) -> Result<UnitId> {
        self.scope(|world, _| world.load(program))
    }

    /// Adds a program of the host that stays for the isolate's life once the run is committed. Its code is on no
    /// account.
    ///
    /// # Errors
    /// As [`Isolate::load`].
    pub fn attach(&mut self, program: Arc<Program>) -> Result<UnitId> {
        self.scope(|world, _| {
            let unit = world.load(program)?;
            world.attached(unit);
            Ok(unit)
        })
    }

    /// Makes the program the one to run next.
    pub fn start(&mut self, unit: UnitId) {
        self.scope(|world, _| world.start(unit));
    }

    /// Runs up to `slice` units of fuel.
    pub fn run(&mut self, slice: u64) -> Exit {
        self.scope(|world, cancelled| {
            let exit = world.run(slice);
            cancelled.append(&mut world.schedule.cancelled);
            exit
        })
    }

    /// The number that the next host call gets. Numbers are never used twice.
    pub fn next_call(&self) -> CallId {
        self.world.as_ref().map_or(CallId(0), |world| world.schedule.next_call())
    }

    /// Gives access to the arguments of a host call in flight; `None` if it is not in flight (any more).
    pub fn call<T>(
        &mut self,
        id: CallId,
        look: impl FnOnce(&mut Context, HostFunction, &[Value]) -> T,
    ) -> Option<T> {
        self.scope(|world, _| {
            let call = world.schedule.calls.get(&id)?;
            let (function, arguments) = (call.function, &call.arguments);
            Some(look(&mut world.cx, function, arguments))
        })
    }

    /// Where the program that was started last makes a host call; `None`: it does not do so itself, but another unit.
    pub fn call_place(&mut self, id: CallId) -> Option<Span> {
        self.scope(|world, _| {
            let (unit, span) = world.schedule.place(id, &world.cx)?;
            (unit == world.started).then_some(span)
        })
    }

    /// Answers a host call; `build` makes the value inside the isolate. The answer to a call that is not in flight
    /// (any more) is ignored. A fault ends the program (or the branch) at the call.
    pub fn resume(&mut self, id: CallId, build: impl FnOnce(&mut Context) -> Result<Value>) {
        self.scope(|world, _| {
            if world.schedule.calls.contains_key(&id) {
                let answer = build(&mut world.cx);
                world.schedule.answer(id, answer);
            }
        });
    }

    /// Host calls of cancelled fibers since the last time this was called.
    pub fn cancelled_calls(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.cancelled)
    }

    /// Gives access to the result after `Done`, `Return` or `Fail`.
    pub fn result<T>(&mut self, look: impl FnOnce(&mut Context, &Value) -> T) -> T {
        self.scope(|world, _| {
            let World { cx, result, .. } = world;
            look(cx, result)
        })
    }

    /// Locates a fault of reading the result at the source of the result.
    pub fn locate_result(&mut self, fault: &mut Fault) {
        self.scope(|world, _| {
            let last = world.cx.unit(world.started).and_then(|unit| {
                let entry = unit.program.protos.get(usize::from(unit.program.entry.0))?;
                entry.spans.last().copied()
            });
            fault.location = fault.location.or(last.map(|span| (world.started, span)));
            hints::complete(fault, None, 0);
        });
    }

    /// The printed lines so far.
    pub fn printed(&self) -> &[String] {
        self.world.as_ref().map_or(&[], |world| world.cx.prints.lines())
    }

    /// Takes the printed lines.
    pub fn prints(&mut self) -> Vec<String> {
        if self.world.as_ref().is_none_or(|world| world.cx.prints.lines().is_empty()) {
            return Vec::new();
        }
        self.scope(|world, _| world.cx.prints.take())
    }

    /// Takes the remarks for the reader of the result.
    pub fn remarks(&mut self) -> impl Iterator<Item = String> + use<> {
        let cx = self.world.as_mut().map(|world| &mut world.cx);
        cx.map(|cx| [cx.remarks.take(), cx.prints.remark()]).into_iter().flatten().flatten()
    }

    /// Fuel spent by the run so far.
    pub fn fuel_used(&self) -> u64 {
        self.world.as_ref().map_or(0, |world| world.cx.fuel.used())
    }

    /// Peak of live logical bytes in the run so far.
    pub fn peak_bytes(&self) -> u64 {
        self.heap.account.peak
    }

    /// Live logical bytes.
    pub fn live_bytes(&self) -> u64 {
        self.heap.account.live
    }

    /// Programs that are loaded.
    pub fn programs(&self) -> usize {
        self.world.as_ref().map_or(0, |world| world.units.count)
    }

    /// Elements that the run has copied because a collection was shared.
    pub fn copied_elements(&self) -> u64 {
        self.heap.account.copied
    }

    /// Frees everything. Bytes left on the account are a leak, which is a defect of the compiler or the VM: 0 is the
    /// invariant.
    pub fn close(mut self) -> u64 {
        self.free();
        self.heap.account.live
    }

    fn free(&mut self) {
        if let Some(world) = self.world.take() {
            let preemption = world.cx.fuel.preemption;
            self.heap.enter();
            drop(world);
            while garbage::drain(FREE_STEP) {
                preemption.point();
            }
            self.heap.leave();
        }
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        self.free();
    }
}

impl World {
    fn start(&mut self, unit: UnitId) {
        self.result = Value::Nil;
        self.cx.extensions.clear();
        self.cx.run = self.cx.run.next();
        self.started = unit;
        let loaded = &self.cx.functions[unit.0 as usize].unit;
        let (entry, linking) = (loaded.program.entry, loaded.linking);
        if linking.run != self.runs {
            // The cost of a run does not depend on which run linked its program.
            self.cx.fuel.spend(linking.fuel);
            account::charge(linking.bytes as usize);
            account::release(linking.bytes as usize);
        }
        self.schedule.start(unit.function(entry));
    }

    fn load(&mut self, program: Arc<Program>) -> Result<UnitId> {
        let World { cx, slots, globals, units, runs, .. } = self;
        if program.protos.is_empty() {
            return Err(Fault::runtime("a program without functions"));
        }
        let code = units.next(cx, program.protos.len());
        let linked = link(cx, slots, globals, program, code, *runs)?;
        Ok(units.add(cx, linked))
    }

    /// A loaded program; it stays even if no closure reaches it.
    fn attached(&self, unit: UnitId) -> &Unit {
        let loaded = &self.cx.functions[unit.0 as usize].unit;
        loaded.is_attached.set(true);
        loaded
    }

    /// Decoding is paid for like any other work, before the first slice.
    fn set_context(&mut self, json: &str) -> Result<()> {
        let value = crate::json::decode_text(&mut self.cx, json)?;
        if !matches!(value, Value::Map(_)) {
            let word = value.type_word();
            return Err(Fault::runtime(format_args!("the context must be a JSON object, got {word}")));
        }
        self.cx.data = value;
        Ok(())
    }

    fn run(&mut self, slice: u64) -> Exit {
        if let Err(mut fault) = self.cx.fuel.poll() {
            self.schedule.locate(&self.cx, &mut fault);
            return self.fault(fault);
        }
        self.cx.fuel.grant(slice);
        let exit = self.run_fibers();
        self.cx.fuel.surrender();
        exit
    }

    /// Runs fibers while there is fuel.
    fn run_fibers(&mut self) -> Exit {
        let exit = loop {
            let Some(fiber) = self.schedule.next_ready() else { break Exit::Blocked };
            let stop = self.schedule.run_fiber(fiber, &mut self.cx, &mut self.globals);
            match stop {
                Stop::SliceEnd => {
                    self.schedule.requeue(fiber);
                    break if self.cx.fuel.is_empty() {
                        let mut fault = self.cx.fuel.exhausted();
                        self.schedule.locate(&self.cx, &mut fault);
                        self.fault(fault)
                    } else {
                        Exit::SliceEnd
                    };
                }
                Stop::Host(request) => {
                    break Exit::HostCall(self.schedule.suspend(fiber, *request, &self.cx));
                }
                Stop::Fork => {
                    if let Err(fault) = self.schedule.fork(fiber, &mut self.cx) {
                        break self.fault(fault);
                    }
                }
                Stop::Done(value) => {
                    if let Some(value) = self.schedule.finish(fiber, value, &mut self.cx) {
                        self.result = value;
                        break Exit::Done;
                    }
                }
                Stop::Signal(signal, value) => {
                    if self.schedule.is_branch(fiber) {
                        let name = match signal {
                            Signal::Return => "return",
                            Signal::Fail => "fail",
                        };
                        let mut fault = self.schedule.signal_fault(fiber, name);
                        self.schedule.locate_in(fiber, &self.cx, &mut fault);
                        if let Some(fault) = self.schedule.branch_failed(fiber, fault, &self.cx) {
                            break self.fault(fault);
                        }
                        continue;
                    }
                    self.result = value;
                    let exit = match signal {
                        Signal::Return => Exit::Return,
                        Signal::Fail => {
                            let mut fault = Fault::new(Reason::Fail, "");
                            self.schedule.locate_in(fiber, &self.cx, &mut fault);
                            Exit::Fail(fault)
                        }
                    };
                    self.schedule.abandon();
                    break exit;
                }
                Stop::Fault(fault) => {
                    if let Some(fault) = self.schedule.branch_failed(fiber, fault, &self.cx) {
                        break self.fault(fault);
                    }
                }
            }
        };
        if !matches!(exit, Exit::HostCall(_) | Exit::Blocked | Exit::SliceEnd) {
            self.cx.extensions.clear();
        }
        exit
    }

    /// Ends the program with a fault.
    fn fault(&mut self, mut fault: Box<Fault>) -> Exit {
        self.schedule.abandon();
        if fault.reason == Reason::UnboundVar && fault.location.is_some_and(|(unit, _)| unit != self.started)
        {
            fault.hints = vec![BoundedText::new(
                "A function of an earlier program uses this name, which is not defined in this session (any more): \
                 define it again before the call.",
            )];
        }
        Exit::Fault(fault)
    }
}
