//! Keeps isolates (VM heaps) of small programs after their runs, so that the next run of the same program need not load
//! it again.
//!
//! Each is in the state before its program first ran. An isolate never leaves its thread, so every thread has a pool of
//! its own, which is freed with the thread.

use super::Lisp;
use super::compile::run_budget;
use super::prelude::Attached;
use super::program_cache::{CachedProgram, ProgramKey};
use ptc_base::panics::caught;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Outcome, RenderedValue};
use ptc_vm::{Budget, Interrupt, Isolate, UnitId};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// Isolates that a thread retains.
const KEPT: usize = 16;

/// The limits and the environment that an isolate was prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// The environment that the program was compiled in.
    pub(super) key: ProgramKey,
    memory_bytes: u64,
    fuel: u64,
    loop_limit: u64,
    parallel_width: u64,
    print_bytes: u64,
    strict_data: bool,
}

impl Allowance {
    /// The allowance of a run with these options, with at most this much memory and fuel.
    pub(super) fn within(lisp: &Lisp, options: &RunOptions, memory_bytes: u64, fuel: u64) -> Allowance {
        let limits = &options.limits;
        Allowance {
            key: ProgramKey::new(&lisp.environment, options, lisp.broker.policy().plans_flows()),
            memory_bytes: limits.memory_bytes.min(memory_bytes),
            fuel: limits.fuel.min(fuel),
            loop_limit: limits.loop_limit,
            parallel_width: limits.parallel_width,
            print_bytes: limits.print_bytes,
            strict_data: options.strict_data,
        }
    }
}

/// An isolate with a loaded program.
pub(super) struct Prepared {
    owner: Weak<Lisp>,
    source: Box<str>,
    allowance: Allowance,
    pub(super) program: Arc<CachedProgram>,
    pub(super) isolate: Isolate,
    pub(super) unit: UnitId,
    /// Result of the last run; its memory is reused.
    pub(super) outcome: Outcome,
}

/// A longer text buffer of an answer is freed instead of reused.
const KEPT_TEXT: usize = 64 << 10;

impl Prepared {
    /// Loads a program that belongs to no session; `None` when that exceeds the allowance.
    pub(super) fn new(
        lisp: &Arc<Lisp>,
        source: &str,
        program: Arc<CachedProgram>,
        options: &RunOptions,
        allowance: Allowance,
    ) -> Option<Box<Prepared>> {
        let Allowance { memory_bytes, fuel, .. } = allowance;
        let usual = run_budget(options, Interrupt::default());
        let mut isolate = Isolate::new(Budget { memory_bytes, fuel, ..usual });
        lisp.environment.attach(&mut isolate, &program.needed, &mut Attached::default()).ok()?;
        let unit = isolate.attach(program.program.clone()).ok()?;
        isolate.commit(u64::MAX).ok()?;
        let prelude_trace = lisp.environment.prelude().map(|prelude| prelude.trace().clone());
        let outcome = Outcome { prelude_trace, ..Outcome::default() };
        let (owner, source) = (Arc::downgrade(lisp), source.into());
        Some(Box::new(Prepared { owner, source, allowance, program, isolate, unit, outcome }))
    }

    /// Frees it. Logical bytes that remain on its account are a defect of the language core, not of the
    /// caller.
    pub(super) fn close(self) {
        match caught(|| self.isolate.close()) {
            Ok(0) => {}
            Ok(leaked) => tracing::error!(leaked, "a program left bytes on its account"),
            Err(_) => tracing::error!("a defect while freeing a program"),
        }
    }
}

/// The prepared isolates of one thread, the last used ones at the end. They belong to a runtime and its
/// restricted views, and perhaps to other runtimes.
#[derive(Default)]
struct IsolatePool {
    /// The owner of the isolate that was put back last.
    last: Weak<Lisp>,
    #[expect(clippy::vec_box, reason = "they are taken out and put back, and large")]
    idle: Vec<Box<Prepared>>,
}

thread_local! {
    static POOL: RefCell<IsolatePool> = RefCell::default();
}

/// The weak count keeps the address from being reused.
fn is(owner: &Weak<Lisp>, lisp: &Arc<Lisp>) -> bool {
    std::ptr::eq(owner.as_ptr(), Arc::as_ptr(lisp))
}

/// Takes an isolate with this program and allowance out of this thread's pool.
pub(super) fn take(lisp: &Arc<Lisp>, source: &str, allowance: &Allowance) -> Option<Box<Prepared>> {
    POOL.with_borrow_mut(|pool| {
        let place = pool.idle.iter().rposition(|idle| {
            *idle.source == *source && idle.allowance == *allowance && is(&idle.owner, lisp)
        })?;
        // Keeps the order of last use.
        if place + 1 == pool.idle.len() { pool.idle.pop() } else { Some(pool.idle.remove(place)) }
    })
}

/// Puts an isolate that was rolled back into this thread's pool. Frees the least recently used one if there
/// are too many, and those of runtimes that have ended.
pub(super) fn put(lisp: &Arc<Lisp>, mut prepared: Box<Prepared>) {
    if let Ok(RenderedValue { text, .. }) = &mut prepared.outcome.result
        && text.capacity() > KEPT_TEXT
    {
        *text = String::new();
    }
    POOL.with_borrow_mut(|pool| {
        if !is(&pool.last, lisp) {
            pool.last = Arc::downgrade(lisp);
            let dead = pool.idle.extract_if(.., |idle| idle.owner.strong_count() == 0);
            dead.for_each(|prepared| prepared.close());
        }
        if pool.idle.len() >= KEPT {
            pool.idle.remove(0).close();
        }
        pool.idle.push(prepared);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::ToolBroker;
    use crate::guest::lisp::program_cache::CheckedLists;
    use ptc_base::secrets::SecretRegistry;
    use ptc_calls::tools::SharedCatalog;
    use std::collections::BTreeMap;

    fn lisp() -> Arc<Lisp> {
        let catalog = SharedCatalog::new(std::iter::empty());
        let broker = ToolBroker::new(BTreeMap::new(), catalog, SecretRegistry::new());
        Arc::new(Lisp::new(Arc::new(broker), 0, None, None, false))
    }

    fn program(source: &str) -> Arc<CachedProgram> {
        let compiled = ptc_compiler::compile(source, &Default::default(), &Default::default());
        CachedProgram::new(
            compiled.expect("a program").program,
            Box::default(),
            CheckedLists::default(),
            None,
            Box::default(),
        )
    }

    #[test]
    fn a_pool_is_shared_by_runtimes_and_freed_with_them_and_its_thread() {
        let (first, second) = (lisp(), lisp());
        let programs = [program("[1 {:a \"b\"}]"), program("(defn f [x] x)")];
        let options = RunOptions::default();
        let allowance = Allowance::within(&first, &options, 1 << 20, 1_000);
        let given = programs.clone();
        std::thread::spawn(move || {
            let put = |lisp: &Arc<Lisp>, program: &Arc<CachedProgram>| {
                put(lisp, Prepared::new(lisp, "p", program.clone(), &options, allowance).expect("loads"));
            };
            // Creates this thread's pool before the thread-local data that freeing an isolate uses.
            assert!(take(&first, "p", &allowance).is_none());
            put(&first, &given[0]);
            assert!(take(&second, "p", &allowance).is_none() && take(&first, "q", &allowance).is_none());
            let taken = take(&first, "p", &allowance).expect("it was put there");
            assert!(take(&first, "p", &allowance).is_none());
            super::put(&first, taken);
            put(&second, &given[1]);
            let taken = take(&first, "p", &allowance).expect("nobody else's takes its place");
            super::put(&first, taken);
            let before = Arc::strong_count(&given[0]);
            drop(first);
            put(&second, &given[1]);
            assert!(Arc::strong_count(&given[0]) < before, "isolates of a runtime that is no more are freed");
            for _ in 0..2 * KEPT {
                put(&second, &given[1]);
            }
            assert!(Arc::strong_count(&given[1]) <= KEPT + 2);
        })
        .join()
        .expect("freed without a defect");
        assert_eq!(programs.each_ref().map(Arc::strong_count), [1, 1]);
    }
}
