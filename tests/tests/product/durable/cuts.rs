//! The journal of a random program ends at any record, as when its process is killed there: the run goes on, does nothing
//! twice, loses no answer, and ends as if nothing had happened.

use proptest::prelude::*;
use ptc_base::store::{Entry, Lease, LogName, LogNote, Store, StoreError, StoreLock};
use ptc_calls::journal::{DurableRuns, InDoubt, RunHolder};
use ptc_calls::options::RunOptions;
use ptc_calls::{Effect, HostTool, Limits, Outcome};
use ptc_engine::{Runtime, RuntimeConfig};
use ptc_runtime::schemars::JsonSchema;
use ptc_tests::properties::for_all;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// Logs in memory. What was removed stays visible to the test.
#[derive(Default)]
struct MemoryStore {
    logs: Mutex<BTreeMap<String, Vec<Vec<u8>>>>,
    removed: Mutex<Vec<Vec<Vec<u8>>>>,
    appends: Mutex<usize>,
}

#[async_trait::async_trait]
impl Store for MemoryStore {
    async fn get(&self, _: &str) -> Result<Option<Entry>, StoreError> {
        Ok(None)
    }

    async fn put(&self, _: &str, _: u64, _: Option<Vec<u8>>) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn begin(
        &self,
        log: &str,
        _: &str,
        _: Duration,
        records: Vec<Vec<u8>>,
    ) -> Result<Option<Lease>, StoreError> {
        let lease = Lease { name: log.into(), epoch: 1 };
        self.append(&lease, 0, records).await?;
        Ok(Some(lease))
    }

    async fn append(&self, lease: &Lease, at: u64, records: Vec<Vec<u8>>) -> Result<(), StoreError> {
        *self.appends.lock().unwrap() += 1;
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(lease.name.to_string()).or_default();
        assert_eq!(at, log.len() as u64, "a journal has no holes");
        log.extend(records);
        Ok(())
    }

    async fn renew(&self, _: &[Lease], _: Duration) -> Result<Vec<Lease>, StoreError> {
        Ok(Vec::new())
    }

    async fn note(&self, _: &Lease, _: LogNote) -> Result<(), StoreError> {
        Ok(())
    }

    async fn read_from(&self, log: &str, _: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.logs.lock().unwrap().get(log).cloned().unwrap_or_default())
    }

    async fn lease(&self, log: &str, _: &str, _: Duration) -> Result<Option<Lease>, StoreError> {
        Ok(Some(Lease { name: log.into(), epoch: 1 }))
    }

    async fn remove(&self, lease: &Lease, _: Option<LogNote>) -> Result<(), StoreError> {
        let log = self.logs.lock().unwrap().remove(&*lease.name);
        self.removed.lock().unwrap().extend(log);
        Ok(())
    }

    async fn send(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn messages(&self) -> Result<broadcast::Receiver<Arc<str>>, StoreError> {
        Ok(broadcast::Sender::new(1).subscribe())
    }

    async fn list(&self, _: &str, _: &str) -> Result<Vec<(String, Entry)>, StoreError> {
        Ok(Vec::new())
    }

    async fn logs(&self, prefix: &str) -> Result<Vec<LogName>, StoreError> {
        let logs = self.logs.lock().unwrap();
        let named = logs.keys().filter(|log| log.starts_with(prefix)).cloned();
        Ok(named.map(|name| LogName { name, holder: None }).collect())
    }

    fn watch(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    async fn lock(&self, _: &str) -> Result<StoreLock, StoreError> {
        Err(StoreError::Unavailable("there are no locks".to_owned()))
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "ptc_runtime::schemars")]
struct Key {
    k: i64,
}

/// Calls by tool and key.
type Calls = Arc<Mutex<Vec<(&'static str, i64)>>>;

fn tool(name: &'static str, effect: Effect, calls: &Calls) -> HostTool {
    let calls = calls.clone();
    let work = move |Key { k }: Key| {
        let calls = calls.clone();
        async move {
            calls.lock().unwrap().push((name, k));
            // Answers of one batch come in another order than the calls.
            for _ in 0..k % 3 {
                tokio::task::yield_now().await;
            }
            Ok::<_, Infallible>(k * 7 % 5)
        }
    };
    HostTool::new(name, work).effect(effect)
}

/// A process: its runtime, and the calls that it makes.
struct Process {
    runtime: Runtime,
    calls: Calls,
}

impl Process {
    async fn start(store: &Arc<MemoryStore>) -> Process {
        let calls = Calls::default();
        let tools = vec![tool("read", Effect::Read, &calls), tool("write", Effect::Write, &calls)];
        let state = Some(DurableRuns::new(store.clone(), RunHolder::only()));
        let config = RuntimeConfig { workers: 1, tools, state, ..RuntimeConfig::default() };
        Process { runtime: Runtime::start(config).await.unwrap(), calls }
    }

    fn writes(&self) -> Vec<i64> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(tool, _)| *tool == "write").map(|(_, k)| *k).collect()
    }
}

/// What can be seen of an outcome.
fn seen(outcome: &Outcome) -> (String, Vec<String>, Option<u64>, u32) {
    let result = match &outcome.result {
        Ok(value) => value.text.clone(),
        Err(failure) => failure.message.clone(),
    };
    (result, outcome.prints.clone(), outcome.usage.fuel, outcome.usage.upstream_calls)
}

/// A program: each write has a key of its own.
#[derive(Clone, Debug)]
enum Code {
    Number(i64),
    Read(i64),
    Write,
    Clock,
    Sum(Box<Code>, Box<Code>),
    Print(Box<Code>),
    Choose(Box<Code>, Box<Code>, Box<Code>),
    Parallel(u8, Box<Code>),
}

fn code() -> impl Strategy<Value = Code> {
    let leaf = prop_oneof![
        (0..9i64).prop_map(Code::Number),
        (0..9i64).prop_map(Code::Read),
        Just(Code::Write),
        Just(Code::Clock),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (boxed(), boxed()).prop_map(|(left, right)| Code::Sum(left, right)),
            boxed().prop_map(Code::Print),
            (boxed(), boxed(), boxed()).prop_map(|(test, then, other)| Code::Choose(test, then, other)),
            (2..5u8, boxed()).prop_map(|(width, inner)| Code::Parallel(width, inner)),
        ]
    })
}

/// The text of a program. `key`: an expression that differs in each branch.
fn text(code: &Code, key: &str, next: &mut i64) -> String {
    let mut part = |code: &Code| text(code, key, next);
    match code {
        Code::Number(number) => number.to_string(),
        Code::Read(k) => format!("(tool/read {k})"),
        Code::Write => {
            *next += 10_000;
            format!("(tool/write (+ {next} {key}))")
        }
        Code::Clock => "(if (pos? (System/currentTimeMillis)) 3 4)".to_owned(),
        Code::Sum(left, right) => format!("(+ {} {})", part(left), part(right)),
        Code::Print(inner) => format!("(let [v {}] (println v) v)", part(inner)),
        Code::Choose(test, then, other) => {
            format!("(if (even? {}) {} {})", part(test), part(then), part(other))
        }
        Code::Parallel(width, inner) => {
            *next += 10_000;
            let branch = format!("b{next}");
            let inner = text(inner, &format!("(+ (* 6 {key}) {branch})"), next);
            format!("(reduce + (pmap (fn [{branch}] {inner}) (range {width})))")
        }
    }
}

/// Numbers of calls in records: those that left, and those that were answered.
fn sent_and_ended(records: &[Vec<u8>]) -> (BTreeSet<u64>, BTreeSet<u64>, BTreeMap<u64, i64>) {
    let (mut sent, mut ended, mut keys) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for record in records {
        let record: serde_json::Value = serde_json::from_slice(record).unwrap();
        sent.extend(record["sent"].as_u64());
        if !record["end"]["answer"].is_null() {
            ended.extend(record["end"]["seq"].as_u64());
        }
        if let (Some(seq), Some(k)) = (record["call"]["seq"].as_u64(), record["call"]["args"]["k"].as_i64()) {
            keys.insert(seq, k);
        }
    }
    (sent, ended, keys)
}

pub(super) fn options() -> RunOptions {
    let limits = Limits { max_upstream_calls: 1_000, timeout_ms: 60_000, ..Limits::with_upstreams() };
    RunOptions { limits, ..RunOptions::default() }
}

/// Checks a program at every record. Returns how many there were.
async fn check(program: &str) -> usize {
    let store = Arc::new(MemoryStore::default());
    let whole = Process::start(&store).await;
    let undisturbed = seen(&whole.runtime.run(program, options()).await);
    let written: BTreeSet<i64> = whole.writes().into_iter().collect();
    while !store.logs.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let Some(records) = store.removed.lock().unwrap().pop() else {
        assert!(
            written.is_empty() && *store.appends.lock().unwrap() == 0,
            "reads alone are not stored: {program}"
        );
        return 0;
    };
    for cut in 1..=records.len() {
        let prefix = records[..cut].to_vec();
        let (sent, ended, keys) = sent_and_ended(&prefix);
        let store = Arc::new(MemoryStore::default());
        store.logs.lock().unwrap().insert("run/x".to_owned(), prefix);
        let again = Process::start(&store).await;
        let outcome = again.runtime.resume("x", InDoubt::Report).await.unwrap();
        while !store.logs.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let writes = again.writes();
        let context = format!("{program}\ncut at {cut} of {}", records.len());
        let before: BTreeSet<i64> = sent.iter().map(|seq| keys[seq]).collect();
        let now: BTreeSet<i64> = writes.iter().copied().collect();
        assert_eq!(now.len(), writes.len(), "a write was made twice: {context}");
        assert!(now.is_disjoint(&before), "a write was repeated: {context}");
        let in_doubt = sent.difference(&ended).count();
        if in_doubt == 0 {
            assert_eq!(seen(&outcome), undisturbed, "{context}");
            assert_eq!(now.union(&before).copied().collect::<BTreeSet<_>>(), written, "{context}");
        } else {
            let reported = outcome
                .upstream_calls
                .iter()
                .filter(|call| format!("{:?}", call.status).contains("OutcomeUnknown"));
            let (reported, result) = (reported.count(), seen(&outcome).0);
            assert!(reported > 0 && result.contains("it may have been made"), "{context}: {result}");
        }
    }
    records.len()
}

#[test]
fn a_run_goes_on_from_every_record() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (programs, cuts) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    for_all(100, code(), |code| {
        let program = text(&code, "0", &mut 0);
        let records = runtime.block_on(check(&program));
        programs.set(programs.get() + usize::from(records > 0));
        cuts.set(cuts.get() + records);
    });
    println!("{} programs that write, cut at {} records", programs.get(), cuts.get());
    assert!(programs.get() > 5);
}
