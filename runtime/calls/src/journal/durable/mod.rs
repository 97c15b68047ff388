//! Stores the journal of a run (its inputs, calls and answers) as a log under a lease, so that another process can go
//! on with an interrupted run.
//!
//! A journal is in memory until the run is about to change something, or waits for a person. From then on it is a log of
//! a store. A record that a call has to wait for is on the disk before the call leaves; answers follow without a wait, and
//! are on the disk before the next such call leaves. A run that ends takes its log with it.
//!
//! # Layout
//! - this file: the runs of a store, and the log of one run; `writer`: the task that writes all of them
//! - `notes`: values that belong to runs
//! - `nodes`: what processes that share a store have in common

mod nodes;
mod notes;
mod writer;

use super::record::Record;
use super::recording::{Recording, RecordingError};
use ptc_base::digest::sha256_hex;
use ptc_base::files::random;
use ptc_base::store::{Lease, LogNote, Store, StoreError};
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_vm::Reason;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The process that executes runs of a store, and for how long it has them.
#[derive(Clone, Debug)]
pub struct RunHolder {
    /// Its name, which no other process has.
    pub name: Arc<str>,
    /// How long a run stays with a process that has died. Leases are renewed when a third of this is over.
    pub lease: Duration,
    /// How long a call that may change something waits for a store that is away.
    pub patience: Duration,
}

impl RunHolder {
    /// The only process that has a store, with its lock: it never waits for a lease.
    pub fn only() -> RunHolder {
        RunHolder {
            name: "embedded".into(),
            lease: Duration::from_secs(3_650 * 24 * 3_600),
            patience: Duration::ZERO,
        }
    }

    /// One of many processes that share a store.
    pub fn node(lease: Duration, patience: Duration) -> RunHolder {
        let name = format!("{}-{:016x}", std::process::id(), random()).into();
        RunHolder { name, lease, patience }
    }
}

/// Keys of texts that runs share begin so, before the digest.
const TEXTS: &str = "text/";

/// Names of logs begin so.
const PREFIX: &str = "run/";

/// The runs of a store. Clones share it.
#[derive(Clone)]
pub struct DurableRuns {
    store: Arc<dyn Store>,
    holder: RunHolder,
    appends: mpsc::UnboundedSender<Append>,
    /// Texts of preludes that runs had, by the address of the prelude.
    texts: Arc<Mutex<HashMap<usize, PreludeTexts>>>,
    /// Stored runs that this process executes.
    under_way: Arc<Mutex<HashSet<Arc<str>>>>,
    /// The process ends: what ends now is not over.
    is_closing: Arc<AtomicBool>,
    /// Leases of runs that this process has claimed, and does not go on with yet.
    claimed: Arc<Mutex<HashMap<Arc<str>, Lease>>>,
    lost: LostRuns,
}

/// Passes on the names of runs that other processes have taken from this one, to those who have asked for them.
#[derive(Clone, Default)]
struct LostRuns(Arc<Mutex<Vec<mpsc::UnboundedSender<Arc<str>>>>>);

impl LostRuns {
    fn add(&self, run: &Arc<str>) {
        self.0.locked().retain(|follower| follower.send(run.clone()).is_ok());
    }
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// Its name.
    pub name: String,
    /// A process executes it.
    pub is_executed: bool,
}

/// A prelude, retained so that its address names no other one, and its texts.
type PreludeTexts = (Arc<dyn Any + Send + Sync>, SharedTexts);

/// Texts that many runs share, by their digests.
pub(crate) type SharedTexts = Arc<[(String, String)]>;

/// Limit of remembered preludes.
const MOST_KNOWN: usize = 64;

/// Records on their way to the store.
#[derive(Default)]
struct Append {
    run: Arc<str>,
    /// Texts that the run needs.
    texts: Option<SharedTexts>,
    /// Number of the first record.
    at: u64,
    records: Vec<Vec<u8>>,
    /// The lease of a run that goes on.
    lease: Option<Lease>,
    ends: Option<LogEnd>,
    /// A value that is written behind the records, under the lease of the run.
    note: Option<LogNote>,
    done: Option<Waiter>,
}

/// Who waits for records.
struct Waiter {
    /// Waits also while the store is away for long.
    is_patient: bool,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Waiter {
    /// One with the patience of the holder, and what it waits with.
    fn new() -> (Waiter, Stored) {
        let (done, stored) = oneshot::channel();
        (Waiter { is_patient: false, done }, Stored(stored))
    }
}

/// Why nothing follows in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEnd {
    /// The run is over; its log is removed.
    Over,
    /// This process does not go on with the run: any other one may.
    Released,
}

impl Append {
    /// Adds what follows.
    fn add(&mut self, mut next: Append) {
        self.texts = self.texts.take().or(next.texts);
        if next.lease.is_some() {
            // The run was taken again after it had been released.
            self.ends = None;
        }
        self.lease = next.lease.or(self.lease.take());
        if self.records.is_empty() {
            self.at = next.at;
        }
        self.records.append(&mut next.records);
        self.ends = next.ends.or(self.ends);
        self.note = next.note.or(self.note.take());
    }
}

/// Resolves when a record is on the disk.
pub struct Stored(oneshot::Receiver<Result<(), StoreError>>);

impl Stored {
    /// Waits for it.
    ///
    /// # Errors
    /// It is not stored.
    pub async fn done(self) -> Result<(), StoreError> {
        self.0.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the process ends".to_owned())))
    }
}

impl std::fmt::Debug for DurableRuns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("DurableRuns")
    }
}

impl DurableRuns {
    /// The runs of a store, for this holder of their leases. It must be called on a tokio runtime.
    pub fn new(store: Arc<dyn Store>, holder: RunHolder) -> DurableRuns {
        let (appends, received) = mpsc::unbounded_channel();
        let lost = LostRuns::default();
        let writer = writer::LogWriter::new(store.clone(), holder.clone(), lost.clone());
        tasks::spawn(TaskOwner::Process, writer.write_all(received));
        DurableRuns {
            store,
            holder,
            appends,
            texts: Arc::default(),
            under_way: Arc::default(),
            is_closing: Arc::default(),
            claimed: Arc::default(),
            lost,
        }
    }

    /// The process ends: runs that are cancelled from now on are not over, and stay stored.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Waits until everything so far is in the store, or cannot be stored.
    pub async fn settled(&self) {
        let (done, stored) = Waiter::new();
        self.append(Append { done: Some(done), ..Append::default() });
        let _ = stored.done().await;
    }

    fn append(&self, append: Append) {
        if append.ends.is_some() {
            self.claimed.locked().remove(&append.run);
        }
        // Without a receiver the process ends.
        let _ = self.appends.send(append);
    }

    /// The runs that have not ended, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<StoredRun>, StoreError> {
        let runs = self.store.logs(PREFIX).await?.into_iter().map(|log| {
            let name = log.name[PREFIX.len()..].to_owned();
            let is_elsewhere = log.holder.is_some_and(|holder| *holder != *self.holder.name);
            let is_executed = is_elsewhere || self.is_under_way(&name);
            StoredRun { name, is_executed }
        });
        Ok(runs.collect())
    }

    /// The journal of a run so far.
    ///
    /// # Errors
    /// There is no such run, or its journal cannot be read.
    pub async fn journal(&self, run: &str) -> Result<Recording, RecordingError> {
        let read = self.store.read_from(&format!("{PREFIX}{run}"), 0).await;
        let records = read.map_err(|error| RecordingError::new(error.to_string()))?;
        if records.is_empty() {
            return Err(RecordingError::new(format!("there is no run {run}")));
        }
        let journal = Recording::from_records(PathBuf::from(run), records.iter().map(Vec::as_slice))?;
        let mut texts = HashMap::new();
        for prelude in &journal.header().preludes {
            let text = self.store.get(&format!("{TEXTS}{}", prelude.text)).await;
            let text = text.map_err(|error| RecordingError::new(error.to_string()))?;
            let text = text.and_then(|entry| String::from_utf8(entry.value).ok());
            texts.extend(text.map(|text| (prelude.text.clone(), text)));
        }
        Ok(journal.with_texts(texts))
    }

    /// Texts that belong to this object, with their digests.
    pub fn share<T: Any + Send + Sync>(
        &self,
        object: &Arc<T>,
        texts: impl FnOnce() -> Vec<String>,
    ) -> SharedTexts {
        let address = Arc::as_ptr(object) as usize;
        if let Some((_, texts)) = self.texts.locked().get(&address) {
            return texts.clone();
        }
        let texts =
            texts().into_iter().map(|text| (sha256_hex(text.as_bytes()), text)).collect::<SharedTexts>();
        let mut known = self.texts.locked();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(address, (object.clone(), texts.clone()));
        texts
    }

    /// True for a run that this process executes.
    pub fn is_under_way(&self, run: &str) -> bool {
        self.under_way.locked().contains(run)
    }

    /// Removes a run that is not under way.
    ///
    /// # Errors
    /// It is under way; another process has it; the store cannot be written.
    pub async fn remove(&self, run: &str) -> Result<(), StoreError> {
        if self.is_under_way(run) {
            return Err(StoreError::Taken("the run is under way".to_owned()));
        }
        let lease = self.lease(run).await?;
        self.store.remove(&lease, None).await
    }

    /// Takes the lease of a run, so that no other process goes on with it.
    async fn lease(&self, run: &str) -> Result<Lease, StoreError> {
        let RunHolder { name, lease, .. } = &self.holder;
        self.store.lease(&format!("{PREFIX}{run}"), name, *lease).await?.ok_or(StoreError::LeaseLost)
    }

    /// Makes a run this process's, before it goes on with it, which may be later. False: another process has it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn claim(&self, run: &str) -> Result<bool, StoreError> {
        match self.lease(run).await {
            Ok(lease) => {
                // The lease is renewed from now on.
                let (run, renewed) = (Arc::<str>::from(run), Some(lease.clone()));
                self.claimed.locked().insert(run.clone(), lease);
                self.append(Append { run, lease: renewed, ..Append::default() });
                Ok(true)
            }
            Err(StoreError::LeaseLost) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Leaves a run to any other process, if this one still has it.
    pub fn release(&self, run: &str) {
        self.append(Append { run: run.into(), ends: Some(LogEnd::Released), ..Append::default() });
    }

    /// The names of runs that other processes take from this one, from now on: what it still does for them is void.
    pub fn lost(&self) -> mpsc::UnboundedReceiver<Arc<str>> {
        let (follower, lost) = mpsc::unbounded_channel();
        self.lost.0.locked().push(follower);
        lost
    }

    /// Takes a run that is interrupted, and reads its journal, to which no other process can append from then on.
    ///
    /// # Errors
    /// There is no such run; a process executes it; its journal cannot be read.
    pub async fn take(&self, run: &str) -> Result<TakenRun, RecordingError> {
        let refused = |error: StoreError| RecordingError::new(error.to_string());
        // What this process has still to store of an earlier execution comes first.
        self.settled().await;
        // The lease of a run that does not exist would make one.
        if let Err(error) = self.journal(run).await {
            if self.claimed.locked().remove(run).is_some() {
                self.release(run);
            }
            return Err(error);
        }
        if !self.under_way.locked().insert(run.into()) {
            return Err(RecordingError::new(format!("{run} is under way")));
        }
        let run: Arc<str> = run.into();
        let claimed = self.claimed.locked().remove(&run);
        let lease = match claimed {
            // Another one would make the renewals of this one void.
            Some(lease) => Ok(lease),
            None => self.lease(&run).await,
        };
        let lease = lease.inspect_err(|error| {
            self.under_way.locked().remove(&run);
            if *error == StoreError::LeaseLost {
                self.lost.add(&run);
            }
        });
        let mut log = self.log(run, None);
        log.lease = Some(lease.map_err(refused)?);
        log.is_stored = true;
        // The lease is renewed from now on.
        log.send(None, None);
        // Another process may have gone on with it since the journal was read.
        let journal = self.journal(&log.run).await?;
        // The header is a record, too.
        log.at = 1 + journal.records().len() as u64;
        Ok(TakenRun { journal, log })
    }

    /// True if other processes use the store, too.
    pub fn is_shared(&self) -> bool {
        self.holder.name != RunHolder::only().name
    }

    /// True from [`DurableRuns::close`] on.
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// The log of a new run.
    pub(super) fn begin(&self, texts: Option<SharedTexts>) -> DurableLog {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // Names sort by age.
        let run = format!("{:011x}{:08x}", now.as_millis(), random() as u32).into();
        self.log(run, texts)
    }

    fn log(&self, run: Arc<str>, texts: Option<SharedTexts>) -> DurableLog {
        DurableLog {
            runs: self.clone(),
            run,
            texts,
            lease: None,
            at: 0,
            waiting: Vec::new(),
            is_stored: false,
            is_kept: false,
            is_over: false,
        }
    }
}

/// A run that this process goes on with.
pub struct TakenRun {
    /// Its journal so far.
    pub journal: Recording,
    /// Where it goes on.
    pub log: DurableLog,
}

/// The log of one run.
pub struct DurableLog {
    runs: DurableRuns,
    run: Arc<str>,
    /// Texts that the store may not have yet.
    texts: Option<SharedTexts>,
    /// The lease of a run that goes on, until the writer has it.
    lease: Option<Lease>,
    /// Number of the next record that is sent to the store.
    at: u64,
    /// Records that the store does not have yet.
    waiting: Vec<Vec<u8>>,
    /// The store has the journal; every record follows at once.
    is_stored: bool,
    /// The run has ended, and its log is removed.
    is_over: bool,
    /// It stays stored when the run ends.
    is_kept: bool,
}

impl DurableLog {
    /// Name of the run.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.run
    }

    /// True when the process ends, so that a stored run goes on in a later one.
    pub(super) fn is_closing(&self) -> bool {
        self.is_stored && self.runs.is_closing()
    }

    /// Leaves what is stored there when the run ends, until it is concluded.
    pub fn retain(&mut self) {
        self.is_kept = true;
    }

    /// Adds a record. The outcome ends the log.
    pub(super) fn write(&mut self, record: &Record) {
        if let Record::Outcome(outcome) = record {
            let is_cancelled =
                outcome.error.as_ref().is_some_and(|error| error.reason == Reason::Cancelled.raw());
            let is_over = !(is_cancelled && self.runs.is_closing.load(Ordering::Acquire));
            if self.is_stored && is_over {
                // One that is kept stays this process's until it is forgotten.
                if !self.is_kept {
                    self.send(Some(LogEnd::Over), None);
                }
                self.is_over = true;
            }
            self.waiting.clear();
            return;
        }
        // Records are plain data.
        self.waiting.extend(serde_json::to_vec(record));
        if self.is_stored {
            self.send(None, None);
        }
    }

    /// Stores everything so far, and every later record.
    pub(super) fn store(&mut self) -> Stored {
        let (done, stored) = Waiter::new();
        if !self.is_stored {
            self.runs.under_way.locked().insert(self.run.clone());
        }
        self.is_stored = true;
        self.send(None, Some(done));
        stored
    }

    /// Stores everything so far and every later record, and leaves it there when the run ends.
    pub(super) fn keep(&mut self) -> Stored {
        self.is_kept = true;
        self.store()
    }

    fn send(&mut self, ends: Option<LogEnd>, done: Option<Waiter>) {
        let (records, at) = (std::mem::take(&mut self.waiting), self.at);
        self.at += records.len() as u64;
        let (run, texts, lease) = (self.run.clone(), self.texts.take(), self.lease.take());
        self.runs.append(Append { run, texts, at, records, lease, ends, note: None, done });
    }
}

impl Drop for DurableLog {
    fn drop(&mut self) {
        if self.is_stored {
            if !self.is_over {
                self.send(Some(LogEnd::Released), None);
            }
            self.runs.under_way.locked().remove(&self.run);
        }
    }
}
