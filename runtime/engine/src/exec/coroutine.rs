//! Stackful coroutines: they suspend a program in the middle of a native operation, such as a sort, so that its worker
//! thread can run another program meanwhile.
//!
//! A worker runs its programs on stacks of their own. Between two slices a program leaves its stack, so one
//! stack serves them all. When a quantum is over while native work is under way, that work is suspended at
//! its next poll ([`Preempt`]); it keeps the stack, and the worker takes another one. So every operation that
//! polls can be preempted without being a state machine: sort, equality, printing, JSON, compilation.
//!
//! Architecture invariant: a suspended coroutine is resumed until its task is done, and never dropped before.
//! What is on its stack is not written to be unwound there.

use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, Yielder};
use ptc_base::panics::{caught, panic_text};
use ptc_vm::{Preempt, Preemption};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Stack size of a coroutine; the system commits it as it is used. Native work of VM and compiler is tested
/// on a quarter of it.
const STACK_BYTES: usize = 1 << 20;

/// The quantum: how long native work may run while other programs wait.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// Idle coroutines that a worker retains.
const KEPT: usize = 16;

/// Work for a coroutine. It runs from start to end and need not know of suspensions.
pub(crate) trait Task: 'static {
    /// What it reports to its worker.
    type Done: 'static;

    /// Does the work.
    fn run(&mut self) -> Self::Done;

    /// Ends the work after a panic.
    fn abandon(&mut self, message: &str) -> Self::Done;
}

/// Why a coroutine came back.
pub(crate) enum Switch<T: Task> {
    /// The task is done for now, and given back.
    Done(T, T::Done),
    /// The task is suspended half-way, with this many live bytes.
    Preempted(Suspended<T>, u64),
}

/// Signal from a coroutine to its worker; results go through the slot.
enum CoroutineSignal {
    Done,
    Preempted(u64),
}

type Stack = corosensei::Coroutine<bool, CoroutineSignal, (), DefaultStack>;

/// Data that worker and coroutine exchange.
struct StackSlot<T: Task> {
    task: Cell<Option<T>>,
    done: Cell<Option<T::Done>>,
}

/// A coroutine without a task.
struct Coroutine<T: Task> {
    stack: Stack,
    slot: Rc<StackSlot<T>>,
}

/// A coroutine with a task that is suspended half-way. It has to be resumed until it is done.
pub(crate) struct Suspended<T: Task>(Coroutine<T>);

/// The coroutines of one worker.
pub(crate) struct Coroutines<T: Task> {
    idle: Vec<Coroutine<T>>,
}

thread_local! {
    /// The coroutine that runs on this thread.
    static CURRENT: Cell<Option<NonNull<Yielder<bool, CoroutineSignal>>>> = const { Cell::new(None) };
    /// End of its quantum; `None` if no other program waits.
    static TURN_ENDS: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The preemption hook of every isolate that a worker runs. Outside a coroutine it does nothing.
struct AtPolls;

/// [`AtPolls`] for isolates.
pub(crate) const PREEMPTION: Preemption = Preemption::by(&AtPolls);

impl Preempt for AtPolls {
    fn is_due(&self) -> bool {
        is_due()
    }

    fn suspend(&self, live_bytes: u64) {
        suspend(live_bytes);
    }
}

/// True when the quantum of this thread's coroutine is over.
fn is_due() -> bool {
    CURRENT.get().is_some() && TURN_ENDS.get().is_some_and(|end| Instant::now() >= end)
}

fn suspend(live_bytes: u64) {
    let Some(current) = CURRENT.take() else { return };
    // SAFETY: `CURRENT` is set by the body of a coroutine to its own yielder, which lives as long as that body, and
    // is taken whenever the body is left: at the end of a task (`Coroutine::new`) and here. So it points to the
    // yielder of the coroutine that runs on this thread at this moment.
    let yielder = unsafe { current.as_ref() };
    yielder.suspend(CoroutineSignal::Preempted(live_bytes));
    CURRENT.set(Some(current));
}

impl<T: Task> Coroutine<T> {
    fn new() -> std::io::Result<Coroutine<T>> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let slot = Rc::new(StackSlot { task: Cell::new(None), done: Cell::new(None) });
        let own = slot.clone();
        let body = move |yielder: &Yielder<bool, CoroutineSignal>, mut more: bool| {
            while more {
                if let Some(mut task) = own.task.take() {
                    CURRENT.set(Some(NonNull::from(yielder)));
                    let done = guarded(&mut task);
                    CURRENT.set(None);
                    own.task.set(Some(task));
                    own.done.set(Some(done));
                }
                more = yielder.suspend(CoroutineSignal::Done);
            }
        };
        Ok(Coroutine { stack: Stack::with_stack(stack, body), slot })
    }

    /// Resumes the task.
    fn resume(mut self, pool: &mut Coroutines<T>) -> Switch<T> {
        match self.stack.resume(true) {
            CoroutineResult::Yield(CoroutineSignal::Preempted(live_bytes)) => {
                Switch::Preempted(Suspended(self), live_bytes)
            }
            CoroutineResult::Yield(CoroutineSignal::Done) | CoroutineResult::Return(()) => {
                let given_back = (self.slot.task.take(), self.slot.done.take());
                let (Some(task), Some(done)) = given_back else {
                    unreachable!("a coroutine is resumed with a task, and gives it back with its result")
                };
                pool.keep(self);
                Switch::Done(task, done)
            }
        }
    }
}

impl<T: Task> Suspended<T> {
    /// Resumes the task until it is done or, if other programs wait, until `turn_ends`.
    pub(crate) fn resume(self, pool: &mut Coroutines<T>, turn_ends: Option<Instant>) -> Switch<T> {
        TURN_ENDS.set(turn_ends);
        self.0.resume(pool)
    }
}

impl<T: Task> Coroutines<T> {
    pub(crate) fn new() -> Coroutines<T> {
        Coroutines { idle: Vec::new() }
    }

    /// Runs a task until it is done or, if other programs wait, until `turn_ends`. Without memory for a stack
    /// the task runs on the worker's own, where it is not preempted.
    pub(crate) fn run(&mut self, task: T, turn_ends: Option<Instant>) -> Switch<T> {
        let coroutine = match self.idle.pop() {
            Some(coroutine) => Ok(coroutine),
            None => Coroutine::new(),
        };
        match coroutine {
            Ok(coroutine) => {
                TURN_ENDS.set(turn_ends);
                coroutine.slot.task.set(Some(task));
                coroutine.resume(self)
            }
            Err(error) => {
                tracing::warn!(%error, "no memory for a stack");
                let mut task = task;
                let done = guarded(&mut task);
                Switch::Done(task, done)
            }
        }
    }

    fn keep(&mut self, coroutine: Coroutine<T>) {
        if self.idle.len() < KEPT {
            self.idle.push(coroutine);
        } else {
            end(coroutine);
        }
    }
}

impl<T: Task> Drop for Coroutines<T> {
    fn drop(&mut self) {
        self.idle.drain(..).for_each(end);
    }
}

/// Lets the body return, so that nothing is left to unwind.
fn end<T: Task>(mut coroutine: Coroutine<T>) {
    if coroutine.stack.started() && !coroutine.stack.done() {
        coroutine.stack.resume(false);
    }
}

/// A panic ends only the program that caused it.
fn guarded<T: Task>(task: &mut T) -> T::Done {
    caught(|| task.run()).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        tracing::error!(panic = text, "a program hit a defect");
        task.abandon(&format!("internal defect: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts down, and yields between two numbers.
    struct Countdown {
        left: u32,
        suspends: bool,
    }

    impl Task for Countdown {
        type Done = &'static str;

        fn run(&mut self) -> &'static str {
            while self.left > 0 {
                self.left -= 1;
                assert_ne!(self.left, 99, "a defect");
                if self.suspends && is_due() {
                    suspend(u64::from(self.left));
                }
            }
            "done"
        }

        fn abandon(&mut self, message: &str) -> &'static str {
            assert!(message.contains("a defect"), "{message}");
            "abandoned"
        }
    }

    #[test]
    fn tasks_that_are_suspended_half_way_take_turns() {
        let mut pool = Coroutines::new();
        let now = Some(Instant::now());
        let mut suspended: Vec<_> = (0..3)
            .map(|_| match pool.run(Countdown { left: 5, suspends: true }, now) {
                Switch::Preempted(suspended, live) => (suspended, live),
                Switch::Done(..) => panic!("not suspended"),
            })
            .collect();
        // A task that ends at once runs between them.
        let Switch::Done(_, "done") = pool.run(Countdown { left: 9, suspends: false }, now) else {
            panic!("not done")
        };
        for round in (0..4).rev() {
            suspended = suspended
                .into_iter()
                .map(|(suspended, live)| {
                    assert_eq!(live, round + 1);
                    match suspended.resume(&mut pool, now) {
                        Switch::Preempted(suspended, live) => (suspended, live),
                        Switch::Done(..) => panic!("done early"),
                    }
                })
                .collect();
        }
        for (suspended, _) in suspended {
            assert!(matches!(
                suspended.resume(&mut pool, now),
                Switch::Done(Countdown { left: 0, .. }, "done")
            ));
        }
        assert_eq!(pool.idle.len(), 4, "the stacks are kept for the next");
    }

    #[test]
    fn a_panic_ends_only_its_task_and_the_stack_goes_on() {
        let mut pool = Coroutines::new();
        let panics = pool.run(Countdown { left: 100, suspends: false }, None);
        assert!(matches!(panics, Switch::Done(_, "abandoned")));
        let next = pool.run(Countdown { left: 10, suspends: true }, None);
        assert!(matches!(next, Switch::Done(_, "done")), "without a turn's end nothing is suspended");
        assert_eq!(pool.idle.len(), 1);
    }

    #[test]
    fn outside_of_a_coroutine_nothing_is_due() {
        TURN_ENDS.set(Some(Instant::now()));
        assert!(!is_due());
    }
}
