//! Writes run journals (inputs, calls and answers, to resume interrupted runs) to the store in a background task, and
//! renews the leases by which only one process executes a run. It retries while the store is unavailable.

use super::{Append, LogEnd, PREFIX, RunHolder, TEXTS};
use futures_util::stream::{self, StreamExt};
use ptc_base::store::{Lease, Store, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout_at};

/// How long an answer may wait for a record that has to be stored at once: they share a transaction then.
const GATHERED: Duration = Duration::from_millis(2);

/// Most runs whose records are written at the same time: a database that is far away takes long for each.
const AT_ONCE: usize = 64;

/// Most bytes of one run that wait for a store that is away.
const MOST_UNSAVED: usize = 64 << 20;

/// How often what could not be stored is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// How often it is tried again while a call waits for it.
const HELD_RETRY: Duration = Duration::from_millis(250);

/// Appends records, those that have come meanwhile together, and renews leases.
pub(super) async fn write(
    store: Arc<dyn Store>,
    holder: RunHolder,
    mut received: mpsc::UnboundedReceiver<Append>,
) {
    let mut ticks = tokio::time::interval((holder.lease / 6).min(RETRY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut writer = LogWriter::new(store, holder);
    loop {
        tokio::select! {
            first = received.recv() => match first {
                Some(first) => {
                    let gathered = gather(first, &mut received).await;
                    writer.write(gathered).await;
                }
                None => return,
            },
            _ = ticks.tick() => {
                writer.renew().await;
                writer.retry().await;
            }
            // At a fixed time: records of other runs that arrive all the time must not put it off.
            () = sleep_until(writer.retry_at), if !writer.held.is_empty() => writer.retry().await,
        }
    }
}

/// Those that wait for a run's records.
type Acks = HashMap<Arc<str>, Vec<oneshot::Sender<Result<(), StoreError>>>>;

/// Takes everything that has been sent meanwhile, the records of each run together.
async fn gather(first: Append, received: &mut mpsc::UnboundedReceiver<Append>) -> (Vec<Append>, Acks) {
    let (mut runs, mut acks) = (Vec::<Append>::new(), Acks::new());
    let (mut next, until) = (Some(first), Instant::now() + GATHERED);
    loop {
        let append = match next.take().or_else(|| received.try_recv().ok()) {
            Some(append) => Some(append),
            // An answer is often followed by the next call, which has to be stored at once.
            None if acks.is_empty() => timeout_at(until, received.recv()).await.ok().flatten(),
            None => None,
        };
        let Some(mut append) = append else { return (runs, acks) };
        if let Some(done) = append.done.take() {
            acks.entry(append.run.clone()).or_default().push(done);
        }
        match runs.iter_mut().find(|run| run.run == append.run) {
            Some(run) => run.add(append),
            None => runs.push(append),
        }
    }
}

/// Those that wait for records that could not be stored, each until its patience is over.
type Held = HashMap<Arc<str>, Vec<(Instant, oneshot::Sender<Result<(), StoreError>>)>>;

/// What became of the records of one run.
struct Appended {
    next: Append,
    /// They could not be stored before.
    is_known: bool,
    done: Result<(), StoreError>,
    /// The lease of a log that was made.
    lease: Option<Lease>,
    /// Digests of texts that were stored.
    texts: Vec<String>,
}

/// Writes to a store.
struct LogWriter {
    store: Arc<dyn Store>,
    holder: RunHolder,
    leases: HashMap<Arc<str>, Lease>,
    /// Digests of texts that are stored.
    texts: HashSet<String>,
    /// What could not be stored: a journal has no holes, so it goes first next time.
    unsaved: HashMap<Arc<str>, Append>,
    held: Held,
    /// When those that are held are tried again.
    retry_at: Instant,
    renewed: Instant,
}

impl LogWriter {
    fn new(store: Arc<dyn Store>, holder: RunHolder) -> LogWriter {
        let (leases, texts, unsaved, held) = Default::default();
        let now = Instant::now();
        LogWriter { store, holder, leases, texts, unsaved, held, retry_at: now, renewed: now }
    }

    /// Writes the records of some runs, those of different runs at the same time.
    async fn write(&mut self, (runs, mut acks): (Vec<Append>, Acks)) {
        let ready: Vec<(Append, bool)> = runs.into_iter().map(|next| self.prepare(next)).collect();
        let writing = ready.into_iter().map(|(next, is_known)| self.append(next, is_known));
        let written: Vec<Appended> = stream::iter(writing).buffer_unordered(AT_ONCE).collect().await;
        for appended in written {
            let acks = acks.remove(&appended.next.run).unwrap_or_default();
            self.finish(appended, acks);
        }
    }

    /// The records of a run, behind those that could not be stored before; and whether there are such.
    fn prepare(&mut self, mut next: Append) -> (Append, bool) {
        let earlier = self.unsaved.remove(&next.run);
        let is_known = earlier.is_some();
        if let Some(mut earlier) = earlier {
            earlier.add(next);
            next = earlier;
        }
        if let Some(lease) = next.lease.take() {
            self.leases.insert(next.run.clone(), lease);
        }
        (next, is_known)
    }

    /// Says what became of records, and retains what could not be stored.
    fn finish(&mut self, appended: Appended, acks: Vec<oneshot::Sender<Result<(), StoreError>>>) {
        let Appended { next, is_known, done, lease, texts } = appended;
        self.texts.extend(texts);
        if let Some(lease) = lease {
            self.leases.insert(next.run.clone(), lease);
        }
        if let Err(error) = &done
            && !is_known
        {
            tracing::error!(%error, run = &*next.run, "a run is not stored");
        }
        let until = Instant::now() + self.holder.patience;
        let mut waiting = self.held.remove(&next.run).unwrap_or_default();
        waiting.extend(acks.into_iter().map(|ack| (until, ack)));
        if matches!(done, Err(StoreError::Unavailable(_))) {
            let now = Instant::now();
            let (held, over) = waiting.into_iter().partition(|(until, _)| *until > now);
            waiting = over;
            self.hold(next.run.clone(), held);
        }
        for (_, ack) in waiting {
            let _ = ack.send(done.clone());
        }
        match done {
            Err(StoreError::Unavailable(_) | StoreError::Taken(_)) => self.wait(next),
            // Another process has the run, or it is over.
            Err(StoreError::LeaseLost) => {
                self.leases.remove(&next.run);
            }
            Ok(()) if next.ends.is_some() => {
                self.leases.remove(&next.run);
            }
            Ok(()) => {}
        }
    }

    /// Lets those that wait go on waiting, if they are still there.
    fn hold(&mut self, run: Arc<str>, mut held: Vec<(Instant, oneshot::Sender<Result<(), StoreError>>)>) {
        held.retain(|(_, ack)| !ack.is_closed());
        if !held.is_empty() {
            if self.held.is_empty() {
                self.retry_at = Instant::now() + HELD_RETRY;
            }
            self.held.insert(run, held);
        }
    }

    /// Retains what could not be stored. A run with too much of it is lost: it changes nothing any more.
    fn wait(&mut self, next: Append) {
        let bytes: usize = next.records.iter().map(Vec::len).sum();
        if bytes > MOST_UNSAVED {
            self.leases.remove(&next.run);
            // Dropping the senders says that it is not stored.
            self.held.remove(&next.run);
        } else {
            self.unsaved.insert(next.run.clone(), next);
        }
    }

    async fn append(&self, next: Append, is_known: bool) -> Appended {
        let (mut begun, mut texts) = (None, Vec::new());
        let done = self.store(&next, &mut begun, &mut texts).await;
        Appended { next, is_known, done, lease: begun, texts }
    }

    /// Stores the records of a run. `begun` becomes the lease of a log that it makes or takes, `texts` the texts that are
    /// stored from then on, also where it fails afterwards.
    async fn store(
        &self,
        next: &Append,
        begun: &mut Option<Lease>,
        texts: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        let Append { run, at, records, ends, .. } = next;
        if records.is_empty() && ends.is_none() {
            return Ok(());
        }
        for (digest, text) in next.texts.iter().flat_map(|texts| texts.iter()) {
            if !self.texts.contains(digest) {
                // A text that is there already is the same.
                self.store.put(&format!("{TEXTS}{digest}"), 0, Some(text.clone().into_bytes())).await?;
                texts.push(digest.clone());
            }
        }
        let log = format!("{PREFIX}{run}");
        let RunHolder { name, lease: time, .. } = &self.holder;
        let lease = match self.leases.get(run) {
            Some(lease) if records.is_empty() || *ends == Some(LogEnd::Over) => lease.clone(),
            Some(lease) => {
                self.store.append(lease, *at, records.clone()).await?;
                lease.clone()
            }
            // The log of an earlier execution.
            None if records.is_empty() => {
                let taken = self.store.lease(&log, name, *time).await?;
                taken.ok_or(StoreError::LeaseLost)?
            }
            // Only the first records make a log: without them it has lost its lease.
            None if *at != 0 => return Err(StoreError::LeaseLost),
            None => {
                let made = self.store.begin(&log, name, *time, records.clone()).await?;
                let lease = made.ok_or(StoreError::LeaseLost)?;
                *begun = Some(lease.clone());
                lease
            }
        };
        match ends {
            None => Ok(()),
            Some(LogEnd::Over) => self.store.remove(&lease).await,
            Some(LogEnd::Released) => self.store.renew(&[lease], Duration::ZERO).await,
        }
    }

    /// Stores what could not be stored.
    async fn retry(&mut self) {
        let unsaved = std::mem::take(&mut self.unsaved).into_values().collect();
        self.write((unsaved, Acks::new())).await;
        self.retry_at = Instant::now() + HELD_RETRY;
    }

    /// Keeps the runs of this process. One that cannot be renewed now is renewed next time, or lost.
    async fn renew(&mut self) {
        if self.leases.is_empty() || self.renewed.elapsed() < self.holder.lease / 4 {
            return;
        }
        let (begun, leases) = (Instant::now(), self.leases.values().cloned().collect::<Vec<_>>());
        match self.store.renew(&leases, self.holder.lease).await {
            Ok(()) => self.renewed = begun,
            Err(error) => tracing::warn!(%error, "leases of runs are not renewed"),
        }
    }
}
