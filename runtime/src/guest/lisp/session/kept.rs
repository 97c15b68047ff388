//! A table of session isolates on each worker's thread, for the time between two runs of a session.

use super::SessionState;
use super::commit::{FAILURE, HISTORY, describe, failed};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::environment::CompileEnvironment;
use crate::guest::lisp::prelude::{Attached, relink};
use crate::run::outcome::Failure;
use ptc_vm::{Budget, Isolate};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// An isolate between two runs of its session.
pub(in crate::guest::lisp) struct Kept {
    pub(in crate::guest::lisp) isolate: Isolate,
    /// The environment of the next program.
    pub(in crate::guest::lisp) environment: Arc<CompileEnvironment>,
    /// Logical bytes of it that belong to no program.
    pub(in crate::guest::lisp) empty_bytes: u64,
    /// The definitions of its prelude that are in it.
    pub(in crate::guest::lisp) attached: Attached,
}

impl Kept {
    /// The isolate of a session in which nothing has run.
    fn empty(environment: &Arc<CompileEnvironment>) -> Option<Kept> {
        let mut isolate = Isolate::new(Budget { memory_bytes: u64::MAX, ..Budget::default() });
        isolate.commit(u64::MAX).ok()?;
        let empty_bytes = isolate.live_bytes();
        Some(Kept { isolate, environment: environment.clone(), empty_bytes, attached: Attached::default() })
    }

    fn close(self) {
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(leaked, "a session left bytes on its account");
        }
    }
}

thread_local! {
    static KEPT: RefCell<HashMap<u64, Kept>> = RefCell::default();
}

/// The environment of the session's next program; `None` before the first commit.
pub(in crate::guest::lisp) fn environment(session: &SessionState) -> Option<Arc<CompileEnvironment>> {
    KEPT.with_borrow(|kept| kept.get(&session.id).map(|kept| kept.environment.clone()))
}

/// Takes the isolate of a session out of this thread's table.
pub(in crate::guest::lisp) fn take(session: &SessionState) -> Option<Kept> {
    KEPT.with_borrow_mut(|kept| kept.remove(&session.id))
}

/// Puts it back, or frees it if the session has ended meanwhile.
pub(in crate::guest::lisp) fn put(session: &SessionState, kept: Kept) {
    if session.is_closed() {
        kept.close();
    } else {
        KEPT.with_borrow_mut(|table| table.insert(session.id, kept));
    }
}

/// Frees the isolate of a session that has ended, on its thread.
pub(crate) fn release(session: &SessionState) {
    if let Some(kept) = take(session) {
        kept.close();
    }
}

/// Forgets names (`None`: all) and, if asked to, results. Runs on the thread of the session; returns the
/// forgotten names.
pub(crate) fn forget(session: &SessionState, names: Option<&[String]>, history: bool) -> Vec<String> {
    let known: Vec<String> = match names {
        Some(names) => {
            let contents = session.contents();
            names.iter().filter(|name| contents.bindings.contains_key(*name)).cloned().collect()
        }
        None => session.contents().bindings.keys().cloned().collect(),
    };
    if let Some(kept) = take(session) {
        let is_kept = beside(session, kept, Sweep::Now, |kept| {
            let results = HISTORY.iter().filter(|_| history).copied().chain(history.then_some(FAILURE));
            known.iter().map(String::as_str).chain(results).for_each(|name| {
                kept.isolate.undefine(None, name);
            });
        });
        if is_kept {
            let mut contents = session.contents();
            known.iter().for_each(|name| {
                contents.bindings.remove(name);
            });
            if history {
                contents.history.clear();
            }
        }
    }
    known
}

/// Stores a failure as `*e`. Runs on the thread of the session.
pub(crate) fn note_failure(session: &SessionState, of_place: &Lisp, failure: &Failure) {
    let kept = take(session).or_else(|| Kept::empty(&of_place.environment));
    if let Some(kept) = kept {
        beside(session, kept, Sweep::Later, |kept| {
            // Best effort: if the failure cannot be stored, `*e` keeps its value.
            let _ = kept.isolate.define(FAILURE, |cx, _| failed(cx, failure));
        });
    }
}

/// Switches the session to the namespaces and tools of another scope. Runs on the thread of the session.
/// Linked definitions are replaced by those of the same names; others lose their values.
pub(crate) fn move_to(session: &SessionState, place: &Lisp) {
    if let Some(kept) = take(session) {
        beside(session, kept, Sweep::Now, |kept| {
            let before = kept.isolate.live_bytes();
            let (from, to) = (kept.environment.prelude(), place.environment.prelude());
            // A definition that could not be linked is linked by the next program that names it.
            kept.attached = relink(&mut kept.isolate, &kept.attached, from, to).unwrap_or_default();
            kept.environment = place.environment.clone();
            // Linked definitions do not count as the session's memory.
            let (grown, shrunk) = (
                kept.isolate.live_bytes().saturating_sub(before),
                before.saturating_sub(kept.isolate.live_bytes()),
            );
            kept.empty_bytes = kept.empty_bytes.saturating_add(grown).saturating_sub(shrunk);
        });
    }
}

/// When to free what no name refers to any more: now, at the cost of traversing all that is stored, or with a
/// later commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Now,
    Later,
}

/// Changes stored values outside a program, without a limit and unmetered. False when nothing could be
/// changed.
fn beside(session: &SessionState, mut kept: Kept, sweep: Sweep, change: impl FnOnce(&mut Kept)) -> bool {
    kept.isolate.begin(Budget { memory_bytes: u64::MAX, ..Budget::default() });
    change(&mut kept);
    let is_kept = kept.isolate.commit(u64::MAX).is_ok();
    if is_kept {
        if sweep == Sweep::Now {
            kept.isolate.sweep();
        }
        kept.environment = describe(&mut kept.isolate, &kept.environment);
        session.contents().memory_bytes = kept.isolate.live_bytes().saturating_sub(kept.empty_bytes);
    }
    put(session, kept);
    is_kept
}
