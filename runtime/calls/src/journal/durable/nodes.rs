//! Lets ptc servers (nodes) that store run journals in one database act as one server: they exchange messages, update
//! shared counters atomically, and have a common secret to sign session ids. The HTTP server uses this to relay
//! requests between nodes, and policies use it to count toward limits.

use super::DurableRuns;
use ptc_base::store::StoreError;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::sync::Arc;
use tokio::sync::broadcast;

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

impl DurableRuns {
    /// Sends a message to all processes with this store, this one included. It arrives once, or not at all where the
    /// connection to the store is lost.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn send(&self, message: &str) -> Result<(), StoreError> {
        self.store.send(message).await
    }

    /// A receiver of the messages that are sent from now on. It makes a lost connection again: call it now and then, as
    /// nothing arrives while there is none.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn messages(&self) -> Result<broadcast::Receiver<Arc<str>>, StoreError> {
        self.store.messages().await
    }

    /// Replaces the value of a key by what `change` makes of it, which is called again when another process has written the
    /// key meanwhile. The inner result is that of `change`; an error of it changes nothing.
    ///
    /// # Errors
    /// The store cannot be used. The value may be written all the same.
    pub async fn change<T: Send, E: Send>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&[u8]>) -> Result<(Vec<u8>, T), E> + Send,
    ) -> Result<Result<T, E>, StoreError> {
        loop {
            let before = self.store.get(key).await?;
            let version = before.as_ref().map_or(0, |entry| entry.version);
            let (value, done) = match change(before.as_ref().map(|entry| &*entry.value)) {
                Ok(changed) => changed,
                Err(error) => return Ok(Err(error)),
            };
            if self.store.put(key, version, Some(value)).await?.is_some() {
                return Ok(Ok(done));
            }
        }
    }

    /// The secret that all processes with this store have under this key. The first one makes it.
    ///
    /// # Errors
    /// The store cannot be used; the system has no random numbers.
    pub async fn shared_secret(&self, key: &str) -> Result<Vec<u8>, StoreError> {
        let mut secret = [0; SECRET_BYTES];
        let no_random = |_| StoreError::Unavailable("the system has no random numbers".to_owned());
        SystemRandom::new().fill(&mut secret).map_err(no_random)?;
        self.add_note(key, secret.to_vec()).await?;
        let found = self.read_note(key).await?;
        found.ok_or_else(|| StoreError::Unavailable(format!("the state has no {key}")))
    }
}
