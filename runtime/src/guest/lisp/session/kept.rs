//! Isolates of sessions, each on the thread of its worker.

use super::SessionState;
use super::commit::{HISTORY, describe};
use crate::guest::lisp::environment::CompileEnvironment;
use crate::guest::lisp::prelude::Attached;
use ptc_vm::{Budget, Isolate};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// An isolate between two runs of its session.
pub(in crate::guest::lisp) struct Kept {
    pub(in crate::guest::lisp) isolate: Isolate,
    /// What the next program is compiled with.
    pub(in crate::guest::lisp) environment: Arc<CompileEnvironment>,
    /// Logical bytes of it that are no program's.
    pub(in crate::guest::lisp) empty_bytes: u64,
    /// What of its prelude is in it.
    pub(in crate::guest::lisp) attached: Attached,
}

impl Kept {
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

/// What the next program of this session is compiled with; `None` before the first commit.
pub(in crate::guest::lisp) fn environment(session: &SessionState) -> Option<Arc<CompileEnvironment>> {
    KEPT.with_borrow(|kept| kept.get(&session.id).map(|kept| kept.environment.clone()))
}

/// Takes the isolate of a session out of the table of this thread.
pub(in crate::guest::lisp) fn take(session: &SessionState) -> Option<Kept> {
    KEPT.with_borrow_mut(|kept| kept.remove(&session.id))
}

/// Puts it back, or frees it when the session has ended meanwhile.
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

/// Forgets names (`None`: all) and, if asked to, results, on the thread of the session; the names that there were.
pub(crate) fn forget(session: &SessionState, names: Option<&[String]>, history: bool) -> Vec<String> {
    let known: Vec<String> = match names {
        Some(names) => {
            let contents = session.contents();
            names.iter().filter(|name| contents.bindings.contains_key(*name)).cloned().collect()
        }
        None => session.contents().bindings.keys().cloned().collect(),
    };
    if let Some(mut kept) = take(session) {
        // Without a bound, and without a program: nothing in here is metered.
        kept.isolate.begin(Budget { memory_bytes: u64::MAX, ..Budget::default() });
        known.iter().for_each(|name| {
            kept.isolate.undefine(name);
        });
        if history {
            HISTORY.iter().for_each(|name| {
                kept.isolate.undefine(name);
            });
        }
        if kept.isolate.commit(u64::MAX).is_ok() {
            kept.environment = describe(&mut kept.isolate, &kept.environment);
            let mut contents = session.contents();
            known.iter().for_each(|name| {
                contents.bindings.remove(name);
            });
            if history {
                contents.history.clear();
            }
            contents.memory_bytes = kept.isolate.live_bytes().saturating_sub(kept.empty_bytes);
        }
        put(session, kept);
    }
    known
}
