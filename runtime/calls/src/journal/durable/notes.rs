//! Stores values that belong to runs and outlive them, such as what a client knows of a task. The note of a run is written
//! under the lease of the run, so that of two processes only the one that has the run says something of it.

use super::{Append, DurableRuns, LogEnd, Stored, Waiter};
use ptc_base::store::{LogNote, StoreError};

impl DurableRuns {
    /// The values of all keys that begin so, for what belongs to runs and outlives them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn notes(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.notes_from(prefix, prefix).await
    }

    /// Keys that begin so, from this one on, with their values.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn notes_from(&self, prefix: &str, first: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let found = self.store.list(prefix, first).await?;
        Ok(found.into_iter().map(|(key, entry)| (key, entry.value)).collect())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn read_note(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.store.get(key).await?.map(|entry| entry.value))
    }

    /// Writes the value of a key, or removes it with `None`.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn note(&self, key: &str, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        loop {
            let version = self.store.get(key).await?.map_or(0, |entry| entry.version);
            if version == 0 && value.is_none() {
                return Ok(());
            }
            if self.store.put(key, version, value.clone()).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Writes a key that has no value yet. False if it has one.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn add_note(&self, key: &str, value: Vec<u8>) -> Result<bool, StoreError> {
        Ok(self.store.put(key, 0, Some(value)).await?.is_some())
    }

    /// Writes a note of a run behind the records that it has so far.
    pub fn note_of(&self, run: &str, note: LogNote) -> Stored {
        let (done, stored) = Waiter::new();
        self.append(Append { run: run.into(), note: Some(note), done: Some(done), ..Append::default() });
        stored
    }

    /// Ends a kept run: its last note takes the place of its journal, and both is one step. It is tried again as long as
    /// this process lives.
    ///
    /// # Errors
    /// Another process has the run; this process ends.
    pub async fn conclude(&self, run: &str, note: LogNote) -> Result<(), StoreError> {
        let (done, stored) = Waiter::new();
        let (note, done) = (Some(note), Some(Waiter { is_patient: true, ..done }));
        self.append(Append { run: run.into(), ends: Some(LogEnd::Over), note, done, ..Append::default() });
        stored.done().await
    }
}
