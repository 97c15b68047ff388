//! Unit tests across modules, and their shared meter, on a small native stack.

mod agreement;
mod dialect;
mod payment;

use crate::{Meter, Pattern, PatternError, Regex, SearchError};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Native stack of a test: nothing recurses over texts, and over patterns only as deep as they may nest.
const STACK: usize = 256 * 1024;

/// A meter with limits.
pub(crate) struct Limits {
    units: u64,
    bytes: usize,
    used: u64,
    live: Rc<Cell<usize>>,
}

/// Why a search ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Work,
    Memory,
    Refused(SearchError),
    Pattern(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl From<SearchError> for Stop {
    fn from(error: SearchError) -> Stop {
        Stop::Refused(error)
    }
}

/// Bytes of one memory, and the sum of all.
#[derive(Default)]
pub(crate) struct Held {
    bytes: usize,
    live: Rc<Cell<usize>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.live.set(self.live.get() - self.bytes);
    }
}

impl Meter for Limits {
    type Error = Stop;
    type Memory = Held;

    fn pay(&mut self, units: u64) -> Result<(), Stop> {
        assert!(units < 64 << 10, "{units} units at once");
        self.used += units;
        if self.used > self.units { Err(Stop::Work) } else { Ok(()) }
    }

    fn hold(&mut self, memory: &mut Held, bytes: usize) -> Result<(), Stop> {
        let more = bytes.saturating_sub(memory.bytes);
        if self.live.get() + more > self.bytes {
            return Err(Stop::Memory);
        }
        if memory.bytes == 0 {
            memory.live = self.live.clone();
        }
        memory.bytes += more;
        self.live.set(self.live.get() + more);
        Ok(())
    }
}

impl Limits {
    pub(crate) fn new(units: u64, bytes: usize) -> Limits {
        Limits { units, bytes, used: 0, live: Rc::default() }
    }

    /// Enough for everything.
    pub(crate) fn ample() -> Limits {
        Limits::new(1_000_000_000, 1 << 30)
    }

    pub(crate) fn compile(&mut self, pattern: &str) -> Result<Regex<Limits>, Stop> {
        match Pattern::new(pattern, &mut |units| self.pay(units)) {
            Ok(pattern) => Ok(Regex::new(Arc::new(pattern))),
            Err(PatternError::Pattern(message)) => Err(Stop::Pattern(message)),
            Err(PatternError::Stopped(stop)) => Err(stop),
        }
    }
}

/// Runs a test on the small stack.
pub(crate) fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread starts");
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
