//! Retains the isolate (heap and definitions) of each session between two programs, in a table of the worker thread
//! that owns it. Changes happen there, too: names are forgotten, failures stored, namespaces exchanged.

use super::SessionState;
use super::commit::{FAILURE, HISTORY, describe, failed};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::environment::CompileEnvironment;
use crate::guest::lisp::prelude::{Attached, relink};
use ptc_calls::run::outcome::Failure;
use ptc_vm::{Budget, Isolate};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// An isolate between two runs of its session.
pub(in crate::guest::lisp) struct RetainedIsolate {
    pub(in crate::guest::lisp) isolate: Isolate,
    /// The environment of the next program.
    pub(in crate::guest::lisp) environment: Arc<CompileEnvironment>,
    /// Logical bytes of it that belong to no program.
    pub(in crate::guest::lisp) empty_bytes: u64,
    /// The definitions of its prelude that are in it.
    pub(in crate::guest::lisp) attached: Attached,
}

impl RetainedIsolate {
    /// The isolate of a session in which nothing has run.
    fn empty(environment: &Arc<CompileEnvironment>) -> Option<RetainedIsolate> {
        let mut isolate = Isolate::new(Budget { memory_bytes: u64::MAX, ..Budget::default() });
        isolate.commit(u64::MAX).ok()?;
        let empty_bytes = isolate.live_bytes();
        Some(RetainedIsolate {
            isolate,
            environment: environment.clone(),
            empty_bytes,
            attached: Attached::default(),
        })
    }

    fn close(self) {
        let leaked = self.isolate.close();
        if leaked != 0 {
            tracing::error!(leaked, "a session left bytes on its account");
        }
    }
}

thread_local! {
    static ISOLATES: RefCell<HashMap<u64, RetainedIsolate>> = RefCell::default();
}

/// The environment of the session's next program; `None` before the first commit.
pub(in crate::guest::lisp) fn environment(session: &SessionState) -> Option<Arc<CompileEnvironment>> {
    ISOLATES.with_borrow(|retained| retained.get(&session.id).map(|retained| retained.environment.clone()))
}

/// Takes the isolate of a session out of this thread's table.
pub(in crate::guest::lisp) fn take(session: &SessionState) -> Option<RetainedIsolate> {
    ISOLATES.with_borrow_mut(|retained| retained.remove(&session.id))
}

/// Puts it back, or frees it if the session has ended meanwhile.
pub(in crate::guest::lisp) fn put(session: &SessionState, retained: RetainedIsolate) {
    if session.is_closed() {
        retained.close();
    } else {
        ISOLATES.with_borrow_mut(|table| table.insert(session.id, retained));
    }
}

/// Frees the isolate of a session that has ended, on its thread.
pub(crate) fn release(session: &SessionState) {
    if let Some(retained) = take(session) {
        retained.close();
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
    if let Some(retained) = take(session) {
        let is_kept = change_outside_run(session, retained, Sweep::Now, |retained| {
            let results = HISTORY.iter().filter(|_| history).copied().chain(history.then_some(FAILURE));
            known.iter().map(String::as_str).chain(results).for_each(|name| {
                retained.isolate.undefine(None, name);
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
pub(crate) fn note_failure(session: &SessionState, scope: &Lisp, failure: &Failure) {
    let retained = take(session).or_else(|| RetainedIsolate::empty(&scope.environment));
    if let Some(retained) = retained {
        change_outside_run(session, retained, Sweep::Later, |retained| {
            // Best effort: if the failure cannot be stored, `*e` keeps its value.
            let _ = retained.isolate.define(FAILURE, |cx, _| failed(cx, failure));
        });
    }
}

/// Switches the session to the namespaces and tools of another scope. Runs on the thread of the session.
/// Linked definitions are replaced by those of the same names; others lose their values.
pub(crate) fn move_to(session: &SessionState, scope: &Lisp) {
    if let Some(retained) = take(session) {
        change_outside_run(session, retained, Sweep::Now, |retained| {
            let before = retained.isolate.live_bytes();
            let (from, to) = (retained.environment.prelude(), scope.environment.prelude());
            // A definition that could not be linked is linked by the next program that names it.
            retained.attached =
                relink(&mut retained.isolate, &retained.attached, from, to).unwrap_or_default();
            retained.environment = scope.environment.clone();
            // Linked definitions do not count as the session's memory.
            let (grown, shrunk) = (
                retained.isolate.live_bytes().saturating_sub(before),
                before.saturating_sub(retained.isolate.live_bytes()),
            );
            retained.empty_bytes = retained.empty_bytes.saturating_add(grown).saturating_sub(shrunk);
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
fn change_outside_run(
    session: &SessionState,
    mut retained: RetainedIsolate,
    sweep: Sweep,
    change: impl FnOnce(&mut RetainedIsolate),
) -> bool {
    retained.isolate.begin(Budget { memory_bytes: u64::MAX, ..Budget::default() });
    change(&mut retained);
    let is_kept = retained.isolate.commit(u64::MAX).is_ok();
    if is_kept {
        if sweep == Sweep::Now {
            retained.isolate.sweep();
        }
        retained.environment = describe(&mut retained.isolate, &retained.environment);
        session.contents().memory_bytes = retained.isolate.live_bytes().saturating_sub(retained.empty_bytes);
    }
    put(session, retained);
    is_kept
}
