//! A table of entries that belong to clients (owners), such as sessions and tasks: under random ids, within quotas,
//! until they expire.

use super::CallOwner;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// Removed entries whose ids are remembered.
const REMEMBERED: usize = 1_024;

/// An id that cannot be guessed, with this prefix; `None` if the system has no random numbers.
pub fn random_id<const BYTES: usize>(prefix: &str) -> Option<String> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
}

/// An entry of a table.
pub(crate) trait Owned: Send + 'static {
    /// When it was used last: now, while it is in use.
    fn last_used(&self) -> Instant;
}

/// Why an entry has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// It reached its age.
    Age,
    /// It was not used.
    Idle,
}

/// Why an entry is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The owner, the table, or both have as many as they may have.
    Quota { owner: bool, table: bool },
    /// The table was closed.
    Closed,
}

/// How many entries there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) most: usize,
    pub(crate) most_of_owner: usize,
}

/// The table. Entries of other owners do not exist for an owner.
pub(crate) struct OwnedTable<T> {
    /// How long an entry stays without being used; `None` for as long as its age allows.
    idle: Option<Duration>,
    /// Called, without the lock, with each entry that has expired.
    on_expiry: Box<dyn Fn(T, Expired) + Send + Sync>,
    state: Mutex<TableState<T>>,
}

struct TableState<T> {
    entries: HashMap<String, Entry<T>>,
    removed: VecDeque<(CallOwner, String)>,
    is_closed: bool,
}

struct Entry<T> {
    owner: CallOwner,
    value: T,
    /// When it reaches its age.
    expires: Instant,
    _timer: Timer,
}

/// The task that removes an expired entry; dropping it ends the task.
struct Timer(AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Owned> OwnedTable<T> {
    /// An empty table.
    pub(crate) fn new(
        idle: Option<Duration>,
        on_expiry: impl Fn(T, Expired) + Send + Sync + 'static,
    ) -> Arc<OwnedTable<T>> {
        let state = TableState { entries: HashMap::new(), removed: VecDeque::new(), is_closed: false };
        Arc::new(OwnedTable { idle, on_expiry: Box::new(on_expiry), state: Mutex::new(state) })
    }

    /// Checks that there is room for one more entry of this owner.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn check_room(&self, owner: CallOwner, quota: Quota) -> Result<(), Full> {
        self.state.locked().check_room(owner, quota)
    }

    /// Adds an entry that lives for at most `age`. Needs a tokio runtime for its expiry.
    ///
    /// # Errors
    /// There is no room; the value is handed back.
    pub(crate) fn insert(
        self: &Arc<Self>,
        (owner, id): (CallOwner, &str),
        quota: Quota,
        age: Duration,
        value: T,
    ) -> Result<(), (T, Full)> {
        let mut state = self.state.locked();
        if let Err(full) = state.check_room(owner, quota) {
            return Err((value, full));
        }
        let now = Instant::now();
        let expires = now.checked_add(age).unwrap_or(now);
        let timer = tasks::spawn(TaskOwner::Connection, expire(Arc::downgrade(self), id.to_owned()));
        let entry = Entry { owner, value, expires, _timer: Timer(timer.abort_handle()) };
        state.entries.insert(id.to_owned(), entry);
        Ok(())
    }

    /// Looks at an entry of this owner.
    pub(crate) fn look<R>(&self, owner: CallOwner, id: &str, look: impl FnOnce(&T) -> R) -> Option<R> {
        let state = self.state.locked();
        let entry = state.entries.get(id).filter(|entry| entry.owner == owner)?;
        (self.end_of(entry).0 > Instant::now()).then(|| look(&entry.value))
    }

    /// Finds an entry of this owner.
    pub(crate) fn find(&self, owner: CallOwner, id: &str) -> Option<T>
    where
        T: Clone,
    {
        self.look(owner, id, T::clone)
    }

    /// All entries of an owner.
    pub(crate) fn all(&self, owner: CallOwner) -> Vec<T>
    where
        T: Clone,
    {
        let state = self.state.locked();
        state.entries.values().filter(|entry| entry.owner == owner).map(|entry| entry.value.clone()).collect()
    }

    /// All entries, with their owners.
    pub(crate) fn every(&self) -> Vec<(CallOwner, T)>
    where
        T: Clone,
    {
        self.state.locked().entries.values().map(|entry| (entry.owner, entry.value.clone())).collect()
    }

    /// Whether this is true for any entry.
    pub(crate) fn any(&self, mut is: impl FnMut(CallOwner, &T) -> bool) -> bool {
        self.state.locked().entries.values().any(|entry| is(entry.owner, &entry.value))
    }

    /// How many entries there are.
    pub(crate) fn count(&self) -> usize {
        self.state.locked().entries.len()
    }

    /// Removes an entry of this owner, and remembers its id.
    pub(crate) fn remove(&self, owner: CallOwner, id: &str) -> Option<T> {
        let mut state = self.state.locked();
        state.entries.get(id).filter(|entry| entry.owner == owner)?;
        state.remove(id)
    }

    /// Remembers that an entry of this owner is gone, which this table does not have.
    pub(crate) fn remember_removed(&self, owner: CallOwner, id: &str) {
        self.state.locked().remember(owner, id);
    }

    /// Removes an entry of this owner if this is true for it. Its id is not remembered.
    pub(crate) fn remove_if(&self, owner: CallOwner, id: &str, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut state = self.state.locked();
        state.entries.get(id).filter(|entry| entry.owner == owner && is_it(&entry.value))?;
        state.entries.remove(id).map(|entry| entry.value)
    }

    /// Removes the entry with the least key, of those that have one. Its id is not remembered.
    pub(crate) fn remove_least<K: Ord>(&self, key: impl Fn(CallOwner, &T) -> Option<K>) -> Option<T> {
        let mut state = self.state.locked();
        let keyed =
            state.entries.iter().filter_map(|(id, entry)| Some((key(entry.owner, &entry.value)?, id)));
        let id = keyed.min_by(|one, other| one.0.cmp(&other.0)).map(|(_, id)| id.clone())?;
        state.entries.remove(&id).map(|entry| entry.value)
    }

    /// Removes all entries for which this is true.
    pub(crate) fn remove_all(&self, is_gone: impl Fn(CallOwner, &T) -> bool) -> Vec<T> {
        let mut state = self.state.locked();
        let gone = state.entries.extract_if(|_, entry| is_gone(entry.owner, &entry.value));
        gone.map(|(_, entry)| entry.value).collect()
    }

    /// Removes all entries, and accepts no more.
    pub(crate) fn close(&self) -> Vec<T> {
        self.state.locked().is_closed = true;
        self.remove_all(|_, _| true)
    }

    /// Whether an entry of this owner had this id and is gone.
    pub(crate) fn was_removed(&self, owner: CallOwner, id: &str) -> bool {
        let state = self.state.locked();
        let has_expired = |entry: &Entry<T>| entry.owner == owner && self.end_of(entry).0 <= Instant::now();
        state.entries.get(id).is_some_and(has_expired)
            || state.removed.iter().any(|(whose, removed)| *whose == owner && removed == id)
    }

    /// When an entry ends if it is not used.
    fn end_of(&self, entry: &Entry<T>) -> (Instant, Expired) {
        let idle = self.idle.and_then(|idle| entry.value.last_used().checked_add(idle));
        match idle.filter(|idle| *idle < entry.expires) {
            Some(idle) => (idle, Expired::Idle),
            None => (entry.expires, Expired::Age),
        }
    }
}

impl<T> TableState<T> {
    fn check_room(&self, owner: CallOwner, quota: Quota) -> Result<(), Full> {
        let own = self.entries.values().filter(|entry| entry.owner == owner).count();
        let (owner, table) = (own >= quota.most_of_owner, self.entries.len() >= quota.most);
        match self.is_closed {
            true => Err(Full::Closed),
            false if owner || table => Err(Full::Quota { owner, table }),
            false => Ok(()),
        }
    }

    fn remove(&mut self, id: &str) -> Option<T> {
        let entry = self.entries.remove(id)?;
        self.remember(entry.owner, id);
        Some(entry.value)
    }

    fn remember(&mut self, owner: CallOwner, id: &str) {
        if self.removed.len() >= REMEMBERED {
            self.removed.pop_front();
        }
        self.removed.push_back((owner, id.to_owned()));
    }
}

/// Removes an entry when it has expired.
async fn expire<T: Owned>(table: Weak<OwnedTable<T>>, id: String) {
    loop {
        let end = {
            let Some(table) = table.upgrade() else { return };
            let mut state = table.state.locked();
            let Some(entry) = state.entries.get(&id) else { return };
            let (end, why) = table.end_of(entry);
            if end <= Instant::now() {
                let value = state.remove(&id);
                drop(state);
                if let Some(value) = value {
                    (table.on_expiry)(value, why);
                }
                return;
            }
            end
        };
        sleep_until(end).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Thing(Arc<Mutex<Instant>>);

    impl Owned for Thing {
        fn last_used(&self) -> Instant {
            *self.0.lock().unwrap()
        }
    }

    fn thing() -> Thing {
        Thing(Arc::new(Mutex::new(Instant::now())))
    }

    #[tokio::test(start_paused = true)]
    async fn entries_are_bounded_and_expire() {
        let (send, mut expired) = tokio::sync::mpsc::unbounded_channel();
        let table = OwnedTable::new(Some(Duration::from_secs(10)), move |_: Thing, why| {
            send.send(why).unwrap();
        });
        let (quota, age) = (Quota { most: 3, most_of_owner: 2 }, Duration::from_secs(15));
        let (one, other) = (CallOwner(1), CallOwner(2));
        let add = |owner, id: &str| table.insert((owner, id), quota, age, thing()).map_err(|(_, full)| full);
        assert_eq!((add(one, "a"), add(one, "b")), (Ok(()), Ok(())));
        assert_eq!(add(one, "c"), Err(Full::Quota { owner: true, table: false }));
        assert_eq!(add(other, "c"), Ok(()));
        assert_eq!(add(other, "d"), Err(Full::Quota { owner: false, table: true }));
        assert!(table.find(one, "c").is_none() && table.find(other, "c").is_some());
        assert!(
            table.remove(one, "b").is_some() && table.was_removed(one, "b") && !table.was_removed(other, "b")
        );
        tokio::time::sleep(Duration::from_secs(9)).await;
        let used = table.find(one, "a").unwrap();
        *used.0.lock().unwrap() = Instant::now();
        assert_eq!(expired.recv().await, Some(Expired::Idle));
        assert!(table.find(other, "c").is_none() && table.was_removed(other, "c"));
        assert_eq!(expired.recv().await, Some(Expired::Age));
        assert_eq!(table.count(), 0);
        table.close();
        assert_eq!(add(one, "e"), Err(Full::Closed));
    }
}
