//! Caches compiled programs by environment and source text, bounded by bytes. Failed compilations are not
//! cached.
//!
//! Compilation depends on three more things. The builtin table is fixed for the lifetime of a runtime. The
//! length limit is checked before the cache is asked. The tool lists that literal calls were checked against
//! are stored with the program, which is used only while they are current. A server that has stopped since is
//! noticed by the call.

use super::environment::{CompileEnvironment, Fingerprint};
use ptc_base::memory::{self, IdleCache};
use ptc_base::sync::Locked;
use ptc_calls::run::options::RunOptions;
use ptc_calls::tools::{Catalog, CatalogServer, SharedCatalog, ToolList};
use ptc_compiler::flows::FlowPlan;
use ptc_vm::bytecode::Program;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The program was not tiny, or has not run yet.
const NOT_TINY: u64 = u64::MAX;

/// A compiled program, with what its runs have shown.
pub(crate) struct CachedProgram {
    pub(crate) program: Arc<Program>,
    /// Definitions of the prelude that it needs.
    pub(crate) needed: Box<[u32]>,
    /// Its data flows, if they were planned.
    pub(crate) flows: Option<Arc<FlowPlan>>,
    /// What its text does not mean, though it looks so; for the notes of the answer.
    pub(crate) remarks: Box<[String]>,
    /// Fuel of the last run if it was tiny and made no host call, else [`NOT_TINY`].
    tiny_fuel: AtomicU64,
    checked: CheckedLists,
}

/// The tool lists that the literal calls of a program were checked against, by server; `None` for a server
/// that had no current list.
#[derive(Debug, Default)]
pub(crate) struct CheckedLists(Vec<(Arc<str>, Option<Weak<ToolList>>)>);

impl CheckedLists {
    /// The lists of these servers in a catalog.
    pub(crate) fn from_catalog<'s>(
        catalog: &Catalog,
        servers: impl Iterator<Item = &'s str>,
    ) -> CheckedLists {
        let lists = servers.filter_map(|server| catalog.server(server));
        CheckedLists(lists.map(|server| (server.name.clone(), server.proven().map(Arc::downgrade))).collect())
    }

    /// True while each server still has the same list.
    fn are_current(&self, catalog: &SharedCatalog) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let catalog = catalog.snapshot();
        self.0.iter().all(|(server, checked)| {
            match (checked, catalog.server(server).and_then(CatalogServer::proven)) {
                (Some(checked), Some(now)) => std::ptr::eq(checked.as_ptr(), Arc::as_ptr(now)),
                (None, Some(_)) => false,
                // There is no list to check against: the call itself will report errors.
                (_, None) => true,
            }
        })
    }
}

impl CachedProgram {
    pub(crate) fn new(
        program: Arc<Program>,
        needed: Box<[u32]>,
        checked: CheckedLists,
        flows: Option<Arc<FlowPlan>>,
        remarks: Box<[String]>,
    ) -> Arc<CachedProgram> {
        let tiny_fuel = AtomicU64::new(NOT_TINY);
        Arc::new(CachedProgram { program, needed, flows, remarks, tiny_fuel, checked })
    }

    /// Bytes of its plan and its remarks, roughly.
    fn other_bytes(&self) -> usize {
        let calls = self.flows.as_ref().map_or(&[][..], |plan| &plan.calls);
        let calls: usize = calls.iter().map(|call| 200 + 100 * call.arguments.len()).sum();
        calls + self.remarks.iter().map(|remark| size_of::<String>() + remark.len()).sum::<usize>()
    }

    /// True when the last run was tiny, used at most this much fuel, made no host call, and its answer has no notes.
    pub(crate) fn is_tiny(&self, most_fuel: u64) -> bool {
        let fuel = self.tiny_fuel.load(Ordering::Relaxed);
        fuel != NOT_TINY && fuel <= most_fuel && self.remarks.is_empty()
    }

    /// True while the tool lists are the ones that the program was checked against.
    pub(crate) fn is_current(&self, catalog: &SharedCatalog) -> bool {
        self.checked.are_current(catalog)
    }

    /// Records the fuel of a tiny run, or that a run was not tiny. Writes only changes, because many threads
    /// read this.
    pub(crate) fn set_tiny(&self, fuel: Option<u64>) {
        let fuel = fuel.unwrap_or(NOT_TINY);
        if self.tiny_fuel.load(Ordering::Relaxed) != fuel {
            self.tiny_fuel.store(fuel, Ordering::Relaxed);
        }
    }
}

/// The part of a cache key that is not the source text: everything else that decides how a program is
/// compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProgramKey {
    environment: Fingerprint,
    max_symbols: u64,
    /// Its data flows are planned.
    flows: bool,
}

impl ProgramKey {
    /// The key of a program with these options in an environment.
    pub(crate) fn new(environment: &CompileEnvironment, options: &RunOptions, flows: bool) -> ProgramKey {
        ProgramKey { environment: environment.fingerprint, max_symbols: options.limits.max_symbols, flows }
    }
}

/// Estimated bytes of an entry without text and program.
const ENTRY_BYTES: usize = 512;

/// Part of the cache that one program may take. A large program is many small blocks, which keep pages of the
/// allocator in memory that are otherwise free.
const PART: usize = 64;

/// The cache of one runtime.
pub(crate) struct ProgramCache {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    programs: HashMap<ProgramKey, BySource, foldhash::fast::RandomState>,
    bytes: usize,
    clock: u64,
    /// The clock when the process was idle last.
    idle_since: u64,
}

type BySource = HashMap<Arc<str>, Entry, foldhash::fast::RandomState>;

struct Entry {
    program: Arc<CachedProgram>,
    bytes: usize,
    used: u64,
}

impl ProgramCache {
    /// A cache of at most `limit` bytes; 0 turns it off.
    pub(crate) fn new(limit: usize) -> Arc<ProgramCache> {
        let cache = Arc::new(ProgramCache { limit, inner: Mutex::default() });
        if limit > 0 {
            memory::evict_when_idle(Arc::downgrade(&cache) as Weak<dyn IdleCache>);
        }
        cache
    }

    /// The program of exactly this text, if the tool lists are still the ones it was checked against.
    pub(crate) fn get(
        &self,
        key: ProgramKey,
        source: &str,
        catalog: &SharedCatalog,
    ) -> Option<Arc<CachedProgram>> {
        if self.limit == 0 {
            return None;
        }
        let mut inner = self.inner.locked();
        inner.clock += 1;
        let now = inner.clock;
        let entry = inner.programs.get_mut(&key)?.get_mut(source)?;
        entry.used = now;
        let program = entry.program.clone();
        drop(inner);
        program.is_current(catalog).then_some(program)
    }

    /// Adds a program; evicts the least recently used ones to make room.
    pub(crate) fn insert(&self, key: ProgramKey, source: Arc<str>, program: Arc<CachedProgram>) {
        let bytes = ENTRY_BYTES + source.len() + program.program.heap_bytes() + program.other_bytes();
        if bytes > self.limit / PART {
            return;
        }
        let mut inner = self.inner.locked();
        inner.clock += 1;
        let entry = Entry { program, bytes, used: inner.clock };
        inner.bytes += bytes;
        if let Some(old) = inner.programs.entry(key).or_default().insert(source, entry) {
            inner.bytes -= old.bytes;
        }
        if inner.bytes > self.limit {
            inner.evict(self.limit / 4 * 3);
        }
    }
}

impl IdleCache for ProgramCache {
    fn evict_unused(&self) {
        let inner = &mut *self.inner.locked();
        let since = std::mem::replace(&mut inner.idle_since, inner.clock);
        let mut freed = 0;
        inner.programs.retain(|_, programs| {
            programs.retain(|_, entry| {
                let is_used = entry.used > since;
                freed += if is_used { 0 } else { entry.bytes };
                is_used
            });
            programs.shrink_to_fit();
            !programs.is_empty()
        });
        inner.bytes -= freed;
    }
}

impl Inner {
    /// Evicts the oldest until `target` bytes are left; evicting many at once keeps the cost per insertion
    /// low.
    fn evict(&mut self, target: usize) {
        let all = self.programs.iter().flat_map(|(&key, programs)| {
            programs.iter().map(move |(source, entry)| (entry.used, key, source.clone()))
        });
        let mut oldest: Vec<(u64, ProgramKey, Arc<str>)> = all.collect();
        oldest.sort_unstable_by_key(|(used, ..)| *used);
        for (_, key, source) in oldest {
            if self.bytes <= target {
                break;
            }
            let Some(programs) = self.programs.get_mut(&key) else { continue };
            if let Some(entry) = programs.remove(&source) {
                self.bytes -= entry.bytes;
            }
            if programs.is_empty() {
                self.programs.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_calls::run::options::RunOptions;

    #[test]
    fn an_idle_process_evicts_what_was_not_used_since_it_was_idle_before() {
        let cache = ProgramCache::new(1 << 20);
        let catalog = SharedCatalog::new(std::iter::empty());
        let environment = CompileEnvironment::new(None, None, Vec::new(), catalog.view());
        let key = ProgramKey::new(&environment, &RunOptions::default(), false);
        for source in ["(+ 1 2)", "(+ 3 4)"] {
            let compiled = ptc_compiler::compile(source, &Default::default(), &Default::default());
            let program = compiled.expect("a program").program;
            cache.insert(
                key,
                source.into(),
                CachedProgram::new(program, Box::default(), CheckedLists::default(), None, Box::default()),
            );
        }
        let left = |used: &[&str]| {
            used.iter().for_each(|source| assert!(cache.get(key, source, &catalog).is_some(), "{source}"));
            cache.evict_unused();
            let inner = cache.inner.locked();
            assert_eq!(inner.bytes > 0, !inner.programs.is_empty());
            inner.programs.values().map(HashMap::len).sum::<usize>()
        };
        assert_eq!([left(&[]), left(&["(+ 1 2)"]), left(&[])], [2, 1, 0]);
    }
}
