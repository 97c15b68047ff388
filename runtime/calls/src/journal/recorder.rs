//! Writes the journal of each run (a log from which the run can be replayed) to a file in a folder.
//!
//! Files hold real bytes, secrets among them, and are private (0600). A journal gets its name when it is complete; tool
//! lists and preludes, which many runs share, are in `shared` under their digests.

use super::record::{Header, Record};
use ptc_base::digest::sha256_hex;
use ptc_base::files::{self, FileAccess, LinkRule, random};
use ptc_base::sync::Locked;
use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Limit of remembered digests of shared objects.
const MOST_KNOWN: usize = 256;

/// A folder of recordings. Clones share it.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    known: Mutex<HashMap<usize, KnownObject>>,
}

/// A shared object and its digest, by its address: it is retained, so the address stays its own.
type KnownObject = (Arc<dyn Any + Send + Sync>, String);

/// Why runs cannot be recorded.
#[derive(Debug)]
pub struct RecordError(String);

impl std::fmt::Display for RecordError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Recorder({})", self.0.folder.display())
    }
}

impl Recorder {
    /// Recordings in this folder, which is created if it is missing.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Recorder, RecordError> {
        let folder = folder.into();
        let made = files::make_folder(&folder.join("shared"));
        made.map_err(|error| {
            RecordError(format!("runs cannot be recorded in {}: {error}", folder.display()))
        })?;
        Ok(Recorder(Arc::new(Shared { folder, known: Mutex::default() })))
    }

    /// Begins a journal. A failure is logged: no run fails because it cannot be recorded.
    pub(super) fn begin(&self, header: Header) -> Option<JournalWriter> {
        let id = format!("{}-{:08x}", timestamp(), random() as u32);
        let partial = self.0.folder.join(format!(".{id}.partial"));
        let begun = files::create_new(&partial).map(BufWriter::new);
        let begun = begun.inspect_err(|error| tracing::warn!(%error, "a run is not recorded"));
        let path = self.0.folder.join(format!("{id}.ptcrun"));
        let mut writer = JournalWriter { file: Some(begun.ok()?), partial, path };
        writer.write(&Record::Run(Box::new(header)));
        Some(writer)
    }

    /// The digest of a shared object, under which its `bytes` are stored.
    pub fn share<T: Any + Send + Sync>(&self, object: &Arc<T>, bytes: impl FnOnce() -> Vec<u8>) -> String {
        let address = Arc::as_ptr(object) as usize;
        if let Some((_, digest)) = self.0.known.locked().get(&address) {
            return digest.clone();
        }
        let digest = self.store(&bytes());
        let mut known = self.0.known.locked();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(address, (object.clone(), digest.clone()));
        digest
    }

    /// Stores bytes under their digest. A file of that name with other bytes is damaged, and is written anew.
    pub fn store(&self, bytes: &[u8]) -> String {
        let digest = sha256_hex(bytes);
        let path = self.0.folder.join("shared").join(&digest);
        if !files::read(&path).is_ok_and(|there| there == bytes) {
            let stored = files::replace(&path, bytes, LinkRule::Replace, FileAccess::Private);
            if let Err(error) = stored {
                tracing::warn!(%error, path = %path.display(), "a part of recordings is not stored");
            }
        }
        digest
    }
}

/// Date and time of UTC, which sort by name.
fn timestamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = jiff::Timestamp::from_millisecond(i64::try_from(now.as_millis()).unwrap_or_default());
    now.unwrap_or_default().strftime("%Y%m%dT%H%M%S%3f").to_string()
}

/// The file of one journal. It is removed if it is dropped before its outcome.
pub(super) struct JournalWriter {
    /// `None` after a failure.
    file: Option<BufWriter<File>>,
    partial: PathBuf,
    path: PathBuf,
}

impl JournalWriter {
    /// Appends a record; the outcome completes the file.
    pub(super) fn write(&mut self, record: &Record) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_writer(&mut *file, record).map_err(std::io::Error::from);
        let mut done = written.and_then(|()| file.write_all(b"\n"));
        let is_complete = matches!(record, Record::Outcome(_));
        if is_complete {
            done = done.and_then(|()| file.flush()).and_then(|()| files::rename(&self.partial, &self.path));
        }
        if let Err(error) = done {
            tracing::warn!(%error, "a run is not recorded");
            self.discard();
        }
        if is_complete {
            self.file = None;
        }
    }

    fn discard(&mut self) {
        if self.file.take().is_some() {
            remove(&self.partial);
        }
    }
}

fn remove(path: &Path) {
    // Best effort: what cannot be removed has a name that no reader takes.
    let _ = std::fs::remove_file(path);
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_shared_part_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::open(folder.path()).unwrap();
        let digest = recorder.store(b"a list of tools");
        let path = folder.path().join("shared").join(&digest);
        for damaged in ["", "a list", "another list of tools"] {
            files::replace(&path, damaged.as_bytes(), LinkRule::Replace, FileAccess::Private).unwrap();
            assert_eq!(recorder.store(b"a list of tools"), digest);
            assert_eq!(files::read(&path).unwrap(), b"a list of tools");
        }
    }
}
