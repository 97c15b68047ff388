//! Writes run journals (inputs, calls and answers, to resume interrupted runs) to the store in a background task, and
//! renews the leases by which only one process executes a run. It retries while the store is unavailable.

use super::{Append, LogEnd, LostRuns, PREFIX, RunHolder, TEXTS, Waiter};
use futures_util::stream::{self, StreamExt};
use ptc_base::store::{Lease, LogNote, Store, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
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

/// Those that wait for a run's records.
type Acks = HashMap<Arc<str>, Vec<Waiter>>;

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

/// Those that wait for records that could not be stored.
type Held = HashMap<Arc<str>, Vec<HeldWaiter>>;

struct HeldWaiter {
    /// When its patience is over; `None`: never.
    until: Option<Instant>,
    waiter: Waiter,
}

impl HeldWaiter {
    /// One that waits from now on for at most this time.
    fn new(waiter: Waiter, patience: Duration) -> HeldWaiter {
        HeldWaiter { until: (!waiter.is_patient).then(|| Instant::now() + patience), waiter }
    }
}

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
pub(super) struct LogWriter {
    store: Arc<dyn Store>,
    holder: RunHolder,
    lost: LostRuns,
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
    pub(super) fn new(store: Arc<dyn Store>, holder: RunHolder, lost: LostRuns) -> LogWriter {
        let (leases, texts, unsaved, held) = Default::default();
        let now = Instant::now();
        LogWriter { store, holder, lost, leases, texts, unsaved, held, retry_at: now, renewed: now }
    }

    /// Appends records, those that have come meanwhile together, and renews leases.
    pub(super) async fn write_all(mut self, mut received: mpsc::UnboundedReceiver<Append>) {
        let mut ticks = tokio::time::interval((self.holder.lease / 6).min(RETRY));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                first = received.recv() => match first {
                    Some(first) => {
                        let gathered = gather(first, &mut received).await;
                        self.write(gathered).await;
                    }
                    None => return,
                },
                _ = ticks.tick() => {
                    self.renew().await;
                    self.retry().await;
                }
                // At a fixed time: records of other runs that arrive all the time must not put it off.
                () = sleep_until(self.retry_at), if self.holds_impatient() => self.retry().await,
            }
        }
    }

    /// True if a waiter has an end of its patience. The others wait for the next tick.
    fn holds_impatient(&self) -> bool {
        self.held.values().flatten().any(|held| held.until.is_some())
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
    fn finish(&mut self, appended: Appended, acks: Vec<Waiter>) {
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
        let mut waiting = self.held.remove(&next.run).unwrap_or_default();
        waiting.extend(acks.into_iter().map(|ack| HeldWaiter::new(ack, self.holder.patience)));
        if let Err(StoreError::Unavailable(_) | StoreError::Taken(_)) = &done {
            let (now, is_away) = (Instant::now(), !matches!(done, Err(StoreError::Taken(_))));
            let is_held = |held: &HeldWaiter| held.until.is_none_or(|until| is_away && until > now);
            let (held, over) = waiting.into_iter().partition(is_held);
            waiting = over;
            self.hold(next.run.clone(), held);
        }
        for HeldWaiter { waiter, .. } in waiting {
            let _ = waiter.done.send(done.clone());
        }
        match done {
            Err(StoreError::Unavailable(_) | StoreError::Taken(_)) => self.wait(next),
            // Another process has the run, or it is over.
            Err(StoreError::LeaseLost) => self.lose(&next.run),
            Ok(()) if next.ends.is_some() => {
                self.leases.remove(&next.run);
            }
            Ok(()) => {}
        }
    }

    /// Another process has the run.
    fn lose(&mut self, run: &Arc<str>) {
        if self.leases.remove(run).is_some() {
            self.lost.add(run);
        }
    }

    /// Lets those that wait go on waiting, if they are still there.
    fn hold(&mut self, run: Arc<str>, mut held: Vec<HeldWaiter>) {
        held.retain(|held| !held.waiter.done.is_closed());
        if !held.is_empty() {
            if !self.holds_impatient() {
                self.retry_at = Instant::now() + HELD_RETRY;
            }
            self.held.insert(run, held);
        }
    }

    /// Retains what could not be stored. A run with too much of it is lost: it changes nothing any more.
    fn wait(&mut self, mut next: Append) {
        if next.ends == Some(LogEnd::Over) {
            // They go with the log, which the first one makes if there is none yet.
            next.records.truncate(usize::from(next.at == 0));
        }
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
        let Append { run, at, records, ends, note, .. } = next;
        if records.is_empty() && ends.is_none() && note.is_none() {
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
            None if records.is_empty() && *ends == Some(LogEnd::Released) => return Ok(()),
            // Only the first records make a log: without them it has lost its lease. What this process has still to say of the
            // run is void.
            None if *at != 0 || records.is_empty() => return Err(StoreError::LeaseLost),
            None => {
                let made = self.store.begin(&log, name, *time, records.clone()).await?;
                let lease = made.ok_or(StoreError::LeaseLost)?;
                *begun = Some(lease.clone());
                lease
            }
        };
        match (ends, note.clone()) {
            (Some(LogEnd::Over), note) => return self.remove(&lease, note).await,
            (_, Some(note)) => self.store.note(&lease, note).await?,
            (_, None) => {}
        }
        match ends {
            Some(LogEnd::Released) => self.store.renew(&[lease], Duration::ZERO).await.map(drop),
            Some(LogEnd::Over) | None => Ok(()),
        }
    }

    /// Removes a log, with its last note.
    async fn remove(&self, lease: &Lease, note: Option<LogNote>) -> Result<(), StoreError> {
        let removed = self.store.remove(lease, note.clone()).await;
        let (Err(StoreError::LeaseLost), Some(LogNote { key, value })) = (&removed, note) else {
            return removed;
        };
        // It may have been removed before, and only the answer of the store lost.
        let is_there = self.store.get(&key).await?.map(|entry| entry.value) == value;
        if is_there { Ok(()) } else { removed }
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
            Ok(lost) => {
                self.renewed = begun;
                for run in lost.iter().filter_map(|lease| lease.name.strip_prefix(PREFIX)) {
                    self.lose(&run.into());
                }
            }
            Err(error) => tracing::warn!(%error, "leases of runs are not renewed"),
        }
    }
}
