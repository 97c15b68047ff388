//! Journals of runs that outlive their process.
//!
//! A journal is in memory until the run is about to change something, or waits for a person. From then on it is a log of
//! a store. A record that a call has to wait for is on the disk before the call leaves; answers follow without a wait, and
//! are on the disk before the next such call leaves. A run that ends takes its log with it.

use super::record::Record;
use super::recorder::digest;
use super::recording::{Recording, RecordingError};
use crate::files::random;
use crate::store::{Lease, Store, StoreError};
use crate::sync::Locked;
use crate::tasks::{self, TaskOwner};
use ptc_vm::Reason;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// How long a process has a run without another append. A store of one process is never shared.
const LEASE: Duration = Duration::from_secs(3_650 * 24 * 3_600);

/// How long an answer may wait for a record that has to be stored at once: they share a transaction then.
const GATHERED: Duration = Duration::from_millis(2);

/// Keys of texts that runs share begin so, before the digest.
const TEXTS: &str = "text/";

/// Names of logs begin so.
const PREFIX: &str = "run/";

/// The runs of a store. Clones share it.
#[derive(Clone)]
pub struct DurableRuns {
    store: Arc<dyn Store>,
    holder: Arc<str>,
    appends: mpsc::UnboundedSender<Append>,
    /// Texts of preludes that runs had, by the address of the prelude.
    texts: Arc<Mutex<HashMap<usize, PreludeTexts>>>,
    /// Stored runs that this process executes.
    under_way: Arc<Mutex<HashSet<Arc<str>>>>,
    /// The process ends: what ends now is not over.
    is_closing: Arc<AtomicBool>,
}

/// A prelude, retained so that its address names no other one, and its texts.
type PreludeTexts = (Arc<dyn Any + Send + Sync>, SharedTexts);

/// Texts that many runs share, by their digests.
pub(crate) type SharedTexts = Arc<[(String, String)]>;

/// Limit of remembered preludes.
const MOST_KNOWN: usize = 64;

/// Records on their way to the store.
struct Append {
    run: Arc<str>,
    /// Texts that the run needs.
    texts: Option<SharedTexts>,
    records: Vec<Vec<u8>>,
    /// The run has ended; its log is removed.
    is_last: bool,
    done: Option<oneshot::Sender<Result<(), StoreError>>>,
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
    pub fn new(store: Arc<dyn Store>, holder: &str) -> DurableRuns {
        let (appends, received) = mpsc::unbounded_channel();
        let holder: Arc<str> = holder.into();
        tasks::spawn(TaskOwner::Process, write(store.clone(), holder.clone(), received));
        DurableRuns {
            store,
            holder,
            appends,
            texts: Arc::default(),
            under_way: Arc::default(),
            is_closing: Arc::default(),
        }
    }

    /// The process ends: runs that are cancelled from now on are not over, and stay stored.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Waits until everything so far is in the store, or cannot be stored.
    pub async fn settled(&self) {
        let (done, stored) = oneshot::channel();
        let (run, records) = ("".into(), Vec::new());
        let nothing = Append { run, texts: None, records, is_last: false, done: Some(done) };
        if self.appends.send(nothing).is_ok() {
            let _ = stored.await;
        }
    }

    /// Names of the runs that have not ended, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<String>, StoreError> {
        let logs = self.store.logs(PREFIX).await?;
        Ok(logs.into_iter().map(|log| log[PREFIX.len()..].to_owned()).collect())
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
    pub(crate) fn share<T: Any + Send + Sync>(
        &self,
        object: &Arc<T>,
        texts: impl FnOnce() -> Vec<String>,
    ) -> SharedTexts {
        let address = Arc::as_ptr(object) as usize;
        if let Some((_, texts)) = self.texts.locked().get(&address) {
            return texts.clone();
        }
        let texts = texts().into_iter().map(|text| (digest(text.as_bytes()), text)).collect::<SharedTexts>();
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
        let lease = self.store.lease(&format!("{PREFIX}{run}"), &self.holder, LEASE).await?;
        self.store.remove(&lease.ok_or(StoreError::LeaseLost)?).await
    }

    /// The log of a new run.
    pub(super) fn begin(&self, texts: Option<SharedTexts>) -> DurableLog {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // Names sort by age.
        let run = format!("{:011x}{:08x}", now.as_millis(), random() as u32).into();
        DurableLog { runs: self.clone(), run, texts, waiting: Vec::new(), is_stored: false }
    }

    /// The log of a run that goes on.
    ///
    /// # Errors
    /// It is under way.
    pub(super) fn go_on(&self, run: &str) -> Result<DurableLog, RecordingError> {
        if !self.under_way.locked().insert(run.into()) {
            return Err(RecordingError::new(format!("{run} is under way")));
        }
        Ok(DurableLog {
            runs: self.clone(),
            run: run.into(),
            texts: None,
            waiting: Vec::new(),
            is_stored: true,
        })
    }
}

/// The log of one run.
pub(super) struct DurableLog {
    runs: DurableRuns,
    run: Arc<str>,
    /// Texts that the store may not have yet.
    texts: Option<SharedTexts>,
    /// Records that the store does not have yet.
    waiting: Vec<Vec<u8>>,
    /// The store has the journal; every record follows at once.
    is_stored: bool,
}

impl DurableLog {
    /// Name of the run.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.run
    }

    /// Adds a record. The outcome ends the log.
    pub(super) fn write(&mut self, record: &Record) {
        if let Record::Outcome(outcome) = record {
            let is_cancelled =
                outcome.error.as_ref().is_some_and(|error| error.reason == Reason::Cancelled.raw());
            let is_over = !(is_cancelled && self.runs.is_closing.load(Ordering::Acquire));
            if self.is_stored && is_over {
                self.send(true, None);
            }
            self.waiting.clear();
            return;
        }
        // Records are plain data.
        self.waiting.extend(serde_json::to_vec(record));
        if self.is_stored {
            self.send(false, None);
        }
    }

    /// Stores everything so far, and every later record.
    pub(super) fn store(&mut self) -> Stored {
        let (done, stored) = oneshot::channel();
        if !self.is_stored {
            self.runs.under_way.locked().insert(self.run.clone());
        }
        self.is_stored = true;
        self.send(false, Some(done));
        Stored(stored)
    }

    fn send(&mut self, is_last: bool, done: Option<oneshot::Sender<Result<(), StoreError>>>) {
        let records = std::mem::take(&mut self.waiting);
        let (run, texts) = (self.run.clone(), self.texts.take());
        // Without a receiver the process ends.
        let _ = self.runs.appends.send(Append { run, texts, records, is_last, done });
    }
}

impl Drop for DurableLog {
    fn drop(&mut self) {
        if self.is_stored {
            self.runs.under_way.locked().remove(&self.run);
        }
    }
}

/// Appends records, those that have come meanwhile together.
async fn write(store: Arc<dyn Store>, holder: Arc<str>, mut received: mpsc::UnboundedReceiver<Append>) {
    let (leases, texts) = (HashMap::new(), HashSet::new());
    let mut writer = LogWriter { store, holder, leases, texts };
    let mut unsaved: HashMap<Arc<str>, Append> = HashMap::new();
    while let Some(first) = received.recv().await {
        let mut runs: Vec<Append> = Vec::new();
        let mut acks: HashMap<Arc<str>, Vec<oneshot::Sender<Result<(), StoreError>>>> = HashMap::new();
        let (mut next, until) = (Some(first), Instant::now() + GATHERED);
        loop {
            let append = match next.take().or_else(|| received.try_recv().ok()) {
                Some(append) => Some(append),
                // An answer is often followed by the next call, which has to be stored at once.
                None if acks.is_empty() => timeout_at(until, received.recv()).await.ok().flatten(),
                None => None,
            };
            let Some(mut append) = append else { break };
            if let Some(done) = append.done.take() {
                acks.entry(append.run.clone()).or_default().push(done);
            }
            match runs.iter_mut().find(|run| run.run == append.run) {
                Some(run) => {
                    run.texts = run.texts.take().or(append.texts.take());
                    run.records.append(&mut append.records);
                    run.is_last |= append.is_last;
                }
                None => runs.push(append),
            }
        }
        for mut next in runs {
            if let Some(mut earlier) = unsaved.remove(&next.run) {
                earlier.records.append(&mut next.records);
                next = Append { texts: earlier.texts.or(next.texts), records: earlier.records, ..next };
            }
            let done = writer.append(&next).await;
            if let Err(error) = &done {
                tracing::error!(%error, run = &*next.run, "a run is not stored");
            }
            for ack in acks.remove(&next.run).unwrap_or_default() {
                let _ = ack.send(done.clone());
            }
            // A journal has no holes: what could not be stored goes first next time.
            if !next.is_last && matches!(done, Err(StoreError::Unavailable(_))) {
                unsaved.insert(next.run.clone(), next);
            }
        }
    }
}

/// Writes to a store.
struct LogWriter {
    store: Arc<dyn Store>,
    holder: Arc<str>,
    leases: HashMap<Arc<str>, Lease>,
    /// Digests of texts that are stored.
    texts: HashSet<String>,
}

impl LogWriter {
    async fn append(&mut self, next: &Append) -> Result<(), StoreError> {
        let Append { run, texts, records, is_last, .. } = next;
        if records.is_empty() && !is_last {
            return Ok(());
        }
        for (digest, text) in texts.iter().flat_map(|texts| texts.iter()) {
            if !self.texts.contains(digest) {
                // A text that is there already is the same.
                self.store.put(&format!("{TEXTS}{digest}"), 0, Some(text.clone().into_bytes())).await?;
                self.texts.insert(digest.clone());
            }
        }
        let log = format!("{PREFIX}{run}");
        let lease = self.leases.get(run).cloned();
        if *is_last {
            let lease = match lease {
                Some(lease) => lease,
                None => {
                    let lease = self.store.lease(&log, &self.holder, LEASE).await?;
                    lease.ok_or(StoreError::LeaseLost)?
                }
            };
            self.leases.remove(run);
            return self.store.remove(&lease).await;
        }
        match lease {
            Some(lease) => self.store.append(&lease, records.clone()).await.map(drop),
            None => {
                let begun = self.store.begin(&log, &self.holder, LEASE, records.clone()).await?;
                self.leases.insert(run.clone(), begun.ok_or(StoreError::LeaseLost)?);
                Ok(())
            }
        }
    }
}
