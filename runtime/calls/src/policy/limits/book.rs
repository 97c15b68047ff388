//! Counts how much of each policy limit on tool calls (calls a minute, or the sum of an argument over a day) is used
//! up, across all processes of a user or all servers with one database.
//!
//! Uses are stored in the database of the nodes, or in the state folder under a lock, so no use is lost when a process
//! ends. Without both, and for runs and sessions that end with their process, they are stored in
//! memory.

use super::LimitUse;
use crate::journal::DurableRuns;
use ptc_base::files::{self, FileAccess, FileLock, LinkRule};
use ptc_base::store::StoreError;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// A window slides in so many steps. Uses within one step are one entry.
const STEPS: u64 = 1_000;

/// How long a call waits until it is counted. Beyond that it is refused: without a count it may exceed the limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Key of the uses in the database.
const KEY: &str = "limits";

/// Name of the file in the state folder.
const FILE: &str = "limits.json";

/// Name of its lock.
const LOCK: &str = "limits.lock";

/// Uses within a window: milliseconds since 1970, and amounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Uses {
    window: u64,
    uses: VecDeque<(u64, i128)>,
}

impl Uses {
    fn expire(&mut self, now: u64) {
        let since = now.saturating_sub(self.window);
        while self.uses.front().is_some_and(|(at, _)| *at <= since) {
            self.uses.pop_front();
        }
        // A clock that was set back must not make uses last for ever.
        self.uses.iter_mut().for_each(|(at, _)| *at = (*at).min(now));
    }

    fn sum(&self) -> i128 {
        self.uses.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    fn add(&mut self, now: u64, amount: i128) {
        let step = (self.window / STEPS).max(1);
        match self.uses.back_mut().filter(|(at, _)| *at / step == now / step) {
            // The older use takes the time of the younger one, so nothing expires early.
            Some((at, sum)) => (*at, *sum) = (now, sum.saturating_add(amount)),
            None => self.uses.push_back((now, amount)),
        }
    }
}

/// The uses of all limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Book(BTreeMap<String, Uses>);

impl Book {
    /// Reads what was stored. Amounts below zero and windows without length would make room that is not there.
    fn read(stored: &[u8]) -> Result<Book, String> {
        let book: Book = serde_json::from_slice(stored).map_err(|error| error.to_string())?;
        let is_wrong =
            |Uses { window, uses }: &Uses| *window == 0 || uses.iter().any(|(_, amount)| *amount < 0);
        match book.0.values().any(is_wrong) {
            true => Err("an amount is below zero, or a window has no length".to_owned()),
            false => Ok(book),
        }
    }

    /// Removes what is older than its window.
    fn expire(&mut self, now: u64) {
        self.0.retain(|_, known| {
            known.expire(now);
            !known.uses.is_empty()
        });
    }

    /// The first of these limits that has no room for its use.
    fn used_up(&self, uses: &[&LimitUse]) -> Option<Arc<str>> {
        let is_used_up = |used: &&&LimitUse| {
            let before = self.0.get(&used.key).map_or(0, Uses::sum);
            before.saturating_add(used.amount) > used.most
        };
        uses.iter().find(is_used_up).map(|used| used.title.clone())
    }

    fn add(&mut self, uses: &[&LimitUse], now: u64) {
        for used in uses {
            let known = self.0.entry(used.key.clone()).or_default();
            known.window = u64::try_from(used.window.as_millis()).unwrap_or(u64::MAX);
            known.add(now, used.amount);
        }
    }
}

/// Where the uses are that other processes count, too.
#[derive(Clone)]
enum Place {
    /// Nowhere: all are in memory.
    Memory,
    /// In a file of this folder.
    Folder(Arc<Path>),
    /// In the database that nodes share.
    Database(DurableRuns),
}

/// Where uses are stored. Clones share it.
#[derive(Clone)]
pub(in crate::policy) struct LimitBook {
    place: Place,
    memory: Arc<Mutex<Book>>,
    /// One call of this process at a time waits for the lock of the file, so a lock that another process holds takes one
    /// thread; or for the database, where more would only get in each other's way.
    turn: Arc<Semaphore>,
}

/// Why a call was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum LimitRefusal {
    /// This limit is used up.
    UsedUp(Arc<str>),
    /// The uses cannot be read or written, so it is not known.
    Unknown(String),
}

impl LimitBook {
    /// The book in the database of the nodes, else in this folder, else in memory.
    pub(in crate::policy) fn new(nodes: Option<DurableRuns>, folder: Option<PathBuf>) -> LimitBook {
        let place = match (nodes, folder) {
            (Some(nodes), _) => Place::Database(nodes),
            (None, Some(folder)) => Place::Folder(folder.into()),
            (None, None) => Place::Memory,
        };
        LimitBook { place, memory: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Takes all of these uses, or none.
    pub(in crate::policy) async fn take(&self, uses: Vec<LimitUse>) -> Result<(), LimitRefusal> {
        let (local, shared): (Vec<&LimitUse>, Vec<&LimitUse>) =
            uses.iter().partition(|used| used.is_local || matches!(self.place, Place::Memory));
        if shared.is_empty() {
            return self.take_in_memory(&local, milliseconds);
        }
        let until = Instant::now() + PATIENCE;
        let unknown = |why: &str| LimitRefusal::Unknown(why.to_owned());
        let turn = timeout_at(until, self.turn.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| unknown("calls before this one still wait to be counted"))?;
        let (folder, book) = match &self.place {
            Place::Memory => return Ok(()),
            Place::Database(nodes) => {
                let taken = timeout_at(until, self.take_at_database(nodes, &local, &shared)).await;
                return taken.unwrap_or_else(|_| Err(unknown("the database does not answer in time")));
            }
            Place::Folder(folder) => (folder.clone(), self.clone()),
        };
        let taken = tasks::blocking(TaskOwner::Run, move |_| {
            let _turn = turn;
            let patience = until.saturating_duration_since(Instant::now());
            book.take_at_folder(&folder, &uses, patience, milliseconds)
        });
        taken.await.unwrap_or_else(|| Err(unknown("the process ends")))
    }

    /// Adds what this process alone counts of uses that another process has taken.
    pub(in crate::policy) fn add_local(&self, uses: &[LimitUse]) {
        let local: Vec<&LimitUse> = uses.iter().filter(|used| used.is_local).collect();
        self.memory.locked().add(&local, milliseconds());
    }

    /// Takes uses that this process alone counts, by this clock.
    fn take_in_memory(&self, uses: &[&LimitUse], clock: impl FnOnce() -> u64) -> Result<(), LimitRefusal> {
        let mut memory = self.memory.locked();
        let now = clock();
        check(&mut memory, uses, now).map(|()| memory.add(uses, now))
    }

    /// Takes uses of all nodes. When the answer of the database is lost, they may be counted although the call is refused:
    /// never the other way round. Nodes have clocks of their own; one that is ahead lets uses of others expire so much
    /// earlier.
    async fn take_at_database(
        &self,
        nodes: &DurableRuns,
        local: &[&LimitUse],
        shared: &[&LimitUse],
    ) -> Result<(), LimitRefusal> {
        check(&mut self.memory.locked(), local, milliseconds())?;
        let add = |stored: Option<&[u8]>| {
            let damaged = |why: String| {
                LimitRefusal::Unknown(format!("the value {KEY:?} of the database is damaged ({why})"))
            };
            let mut book = stored.map_or_else(|| Ok(Book::default()), Book::read).map_err(damaged)?;
            let now = milliseconds();
            check(&mut book, shared, now)?;
            book.add(shared, now);
            Ok((serde_json::to_vec(&book).map_err(|error| damaged(error.to_string()))?, ()))
        };
        let unknown = |error: StoreError| LimitRefusal::Unknown(error.to_string());
        nodes.change(KEY, add).await.map_err(unknown)??;
        // Their room may have gone meanwhile.
        self.take_in_memory(local, milliseconds)
    }

    /// Takes uses of all processes of a user, on this thread. The clock is read under the lock: a time from before the
    /// wait would be older than the uses that others have taken meanwhile.
    fn take_at_folder(
        &self,
        folder: &Path,
        uses: &[LimitUse],
        patience: Duration,
        clock: impl FnOnce() -> u64,
    ) -> Result<(), LimitRefusal> {
        let (local, shared): (Vec<&LimitUse>, Vec<&LimitUse>) = uses.iter().partition(|used| used.is_local);
        let unknown = |error: io::Error| LimitRefusal::Unknown(error.to_string());
        let file = BookFile::open(folder, patience).map_err(unknown)?;
        let mut stored = file.read().map_err(unknown)?;
        let mut memory: MutexGuard<'_, Book> = self.memory.locked();
        let now = clock();
        check(&mut memory, &local, now)?;
        check(&mut stored, &shared, now)?;
        stored.add(&shared, now);
        file.write(&stored).map_err(unknown)?;
        memory.add(&local, now);
        Ok(())
    }
}

fn check(book: &mut Book, uses: &[&LimitUse], now: u64) -> Result<(), LimitRefusal> {
    book.expire(now);
    book.used_up(uses).map_or(Ok(()), |title| Err(LimitRefusal::UsedUp(title)))
}

/// The time, in milliseconds since 1970.
fn milliseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The file of uses, with its lock.
struct BookFile {
    path: PathBuf,
    _lock: FileLock,
}

impl BookFile {
    fn open(folder: &Path, patience: Duration) -> io::Result<BookFile> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
        files::private_folder(folder).map_err(named)?;
        let lock = FileLock::wait(&folder.join(LOCK), patience).map_err(named)?;
        Ok(BookFile { path: folder.join(FILE), _lock: lock })
    }

    fn read(&self) -> io::Result<Book> {
        match files::read(&self.path) {
            Ok(text) => Book::read(&text).map_err(|why| {
                let hint = "put a copy of it in its place, or remove it to count from zero";
                io::Error::other(format!("{} is damaged ({why}); {hint}", self.path.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Book::default()),
            Err(error) => Err(self.named(&error)),
        }
    }

    fn write(&self, book: &Book) -> io::Result<()> {
        let written =
            files::replace(&self.path, &serde_json::to_vec(book)?, LinkRule::Replace, FileAccess::Private);
        written.map_err(|error| self.named(&error))
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests;
