//! Interrupts programs that run past their deadline, so that even a long native operation stops soon.
//! Programs that wait are watched by their worker.

use ptc_base::sync::Locked;
use ptc_calls::run::account::RunAccount;
use ptc_vm::InterruptKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Interval of checks.
const TICK: Duration = Duration::from_millis(5);

/// Idle ticks after which the thread sleeps until it is woken.
const IDLE_TICKS: u32 = 40;

/// What each worker is running.
pub(crate) struct Watchdog {
    slots: Vec<Mutex<Option<Watched>>>,
    asleep: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

struct Watched {
    deadline: Instant,
    account: Arc<RunAccount>,
}

impl Watchdog {
    /// Starts the thread.
    pub(crate) fn start(workers: usize) -> std::io::Result<(Arc<Watchdog>, JoinHandle<()>)> {
        let watchdog = Arc::new(Watchdog {
            slots: (0..workers).map(|_| Mutex::default()).collect(),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let watching = watchdog.clone();
        let thread =
            std::thread::Builder::new().name("ptc-watchdog".into()).spawn(move || watching.watch())?;
        *watchdog.thread.locked() = Some(thread.thread().clone());
        Ok((watchdog, thread))
    }

    /// The worker runs this program from now on.
    pub(crate) fn enter(&self, worker: usize, account: &Arc<RunAccount>) {
        let Some(deadline) = account.deadline() else { return };
        self.set(worker, Some(Watched { deadline, account: account.clone() }));
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The worker runs nothing.
    pub(crate) fn leave(&self, worker: usize) {
        self.set(worker, None);
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn set(&self, worker: usize, watched: Option<Watched>) {
        if let Some(slot) = self.slots.get(worker) {
            *slot.locked() = watched;
        }
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.locked() {
            thread.unpark();
        }
    }

    fn watch(&self) {
        let mut idle = 0;
        while !self.stop.load(Ordering::SeqCst) {
            idle = if self.check_deadlines() { 0 } else { idle + 1 };
            if idle < IDLE_TICKS {
                std::thread::park_timeout(TICK);
                continue;
            }
            self.asleep.store(true, Ordering::SeqCst);
            // A program may have started between the check and the flag.
            if !self.check_deadlines() {
                std::thread::park();
            }
            self.asleep.store(false, Ordering::SeqCst);
            idle = 0;
        }
    }

    /// Interrupts overdue programs; true when any program runs.
    fn check_deadlines(&self) -> bool {
        let now = Instant::now();
        let mut busy = false;
        for slot in &self.slots {
            if let Some(watched) = &*slot.locked() {
                busy = true;
                if now >= watched.deadline && watched.account.is_overdue(now) {
                    watched.account.interrupt(InterruptKind::Deadline);
                }
            }
        }
        busy
    }
}
