//! Starts to store the journal (a log to replay or resume from) of a run that already executes, so that a client can
//! come back to the run later, even after it has ended.

use super::run_journal::RunJournal;
use ptc_base::sync::Locked;
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What a run is given so that it can be kept. Clones are the same.
#[derive(Clone)]
pub struct Keepable(Arc<Mutex<Option<oneshot::Sender<Arc<RunJournal>>>>>);

/// Keeps one run.
pub struct RunKeeper(oneshot::Receiver<Arc<RunJournal>>);

/// A run that stays stored when it ends.
#[derive(Clone, Debug)]
pub struct DurableRun {
    /// Its name.
    pub name: Arc<str>,
    /// False: the store is away; the run is stored when that is back.
    pub is_stored: bool,
}

impl fmt::Debug for Keepable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keepable")
    }
}

impl fmt::Debug for RunKeeper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RunKeeper")
    }
}

impl Keepable {
    /// What a run is given, and what keeps it.
    pub fn new() -> (Keepable, RunKeeper) {
        let (sender, journal) = oneshot::channel();
        (Keepable(Arc::new(Mutex::new(Some(sender)))), RunKeeper(journal))
    }

    /// The run has begun with this journal.
    pub fn begun(self, journal: &Arc<RunJournal>) {
        if let Some(sender) = self.0.locked().take() {
            // Without a receiver the run will not be kept.
            let _ = sender.send(journal.clone());
        }
    }
}

impl RunKeeper {
    /// Stores the run as it is, and everything that it does from now on. What is stored stays until
    /// [`super::DurableRuns::conclude`]. Returns the run once it is stored, or the store has been away for long; `None` for
    /// a run that is over or has no journal.
    pub async fn keep(self) -> Option<DurableRun> {
        // A run that ends before it begins drops what it was given.
        let (name, stored) = self.0.await.ok()?.keep()?;
        let is_stored = stored.done().await.is_ok();
        Some(DurableRun { name, is_stored })
    }
}
