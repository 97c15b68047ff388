//! Stores what was learned about servers (tool lists, shapes of results) in the state folder, for the next start of
//! `ptc`.
//!
//! - `lists`: the tool list that each server gave last, and how long its start took. `shapes`: the shapes of results.
//!
//! Each server has a file of its own per kind of fact, so that two processes rarely write the same one. Files are
//! private (0600) and replaced as a whole. What cannot be read or written is as if nothing were remembered: no run
//! depends on this folder.

mod lists;
mod shapes;

use ptc_base::digest::{hex, sha256};
use ptc_base::files::{self, FileAccess, FileLock, LinkRule};
use ptc_base::named_enum;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

pub use lists::ListMemory;
pub use shapes::LearnedShapes;
pub use shapes::ShapeMemory;

/// Size limit of a file. A larger one is neither written nor read.
const FILE_BYTES: usize = 4 << 20;

/// Size of the key of the digests.
const SALT_BYTES: usize = 32;

/// Part of a SHA-256 digest that names a file.
const DIGEST_BYTES: usize = 16;

/// Limit of the files of one kind. Those that were written longest ago are removed.
const MOST_FILES: usize = 256;

/// How long a write waits for another process.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// A folder with what is remembered.
#[derive(Clone)]
pub struct StateStore {
    folder: PathBuf,
    salt: OnceLock<hmac::Key>,
}

/// Names a configured server in the store: the same name with the same way to reach it and the same secrets. It is a
/// keyed digest, so it says nothing about them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey(String);

named_enum! {
    /// A kind of fact, and its folder in the store.
    enum Kind {
        ToolLists = "tool-lists",
        Starts = "starts",
        Shapes = "shapes",
    }
}

impl StateStore {
    /// The store in this folder, which is created with the first write.
    pub fn new(folder: PathBuf) -> StateStore {
        StateStore { folder, salt: OnceLock::new() }
    }

    /// The key of a server with this identity (`Transport::identity`).
    pub(crate) fn key(&self, server: &str, identity: &Json) -> ServerKey {
        let tag =
            hmac::sign(self.salt.get_or_init(|| self.salt()), format!("{server}\n{identity}").as_bytes());
        ServerKey(hex(&tag.as_ref()[..DIGEST_BYTES]))
    }

    /// The key of all digests, which is stored with the first use. A file's name alone gives no way to test
    /// guesses of a secret.
    fn salt(&self) -> hmac::Key {
        self.stored_salt().unwrap_or_else(|_| {
            // Nothing can be stored in this folder, so another process finds nothing under this key.
            let mut fresh = [0; SALT_BYTES];
            let _ = SystemRandom::new().fill(&mut fresh);
            hmac::Key::new(hmac::HMAC_SHA256, &fresh)
        })
    }

    fn stored_salt(&self) -> io::Result<hmac::Key> {
        let path = self.folder.join("salt");
        let stored = || files::read(&path).ok().filter(|salt| salt.len() == 2 * SALT_BYTES);
        let make = || {
            let _lock = lock_in(&self.folder)?;
            if let Some(salt) = stored() {
                return Ok(salt);
            }
            let mut fresh = [0; SALT_BYTES];
            SystemRandom::new().fill(&mut fresh).map_err(|_| io::ErrorKind::Other)?;
            let salt = hex(&fresh).into_bytes();
            files::replace(&path, &salt, LinkRule::Replace, FileAccess::Private)?;
            Ok::<_, io::Error>(salt)
        };
        let salt = stored().map_or_else(make, Ok)?;
        Ok(hmac::Key::new(hmac::HMAC_SHA256, &salt))
    }

    fn path(&self, kind: Kind, key: &ServerKey) -> PathBuf {
        self.folder.join(kind.name()).join(format!("{}.json", key.0))
    }

    fn read<T: DeserializeOwned>(&self, kind: Kind, key: &ServerKey) -> Option<T> {
        let path = self.path(kind, key);
        let size = fs::metadata(&path).ok()?.len();
        if size > FILE_BYTES as u64 {
            return None;
        }
        serde_json::from_slice(&files::read(&path).ok()?).ok()
    }

    /// Waits a moment for the right to change files of this kind, which one process has at a time.
    fn lock(&self, kind: Kind) -> io::Result<FileLock> {
        lock_in(&self.folder.join(kind.name()))
    }

    /// Replaces the file, unless it has this content already.
    fn write<T: Serialize>(&self, kind: Kind, key: &ServerKey, facts: &T) -> io::Result<()> {
        let mut content = Bounded::default();
        if let Err(error) = serde_json::to_writer(&mut content, facts) {
            return if content.is_full { Ok(()) } else { Err(error.into()) };
        }
        let (content, path) = (content.bytes, self.path(kind, key));
        if files::read(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        let is_new = fs::symlink_metadata(&path).is_err();
        files::replace(&path, &content, LinkRule::Replace, FileAccess::Private)?;
        if is_new && let Some(folder) = path.parent() {
            remove_oldest(folder);
        }
        Ok(())
    }
}

/// The content of a file: fails when it becomes longer than a file may be, which costs no more than that.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full = self.bytes.len() + bytes.len() > FILE_BYTES;
        if self.is_full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits a moment for the lock of a folder, which is created if it is missing.
fn lock_in(folder: &Path) -> io::Result<FileLock> {
    fs::create_dir_all(folder)?;
    FileLock::wait(&folder.join("lock"), LOCK_PATIENCE)
}

/// Removes the files that were written longest ago, beyond the limit.
fn remove_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let age = |path: PathBuf| {
        let written = fs::symlink_metadata(&path).and_then(|found| found.modified());
        (written.unwrap_or(SystemTime::UNIX_EPOCH), path)
    };
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(age)
        .collect();
    if all.len() > MOST_FILES {
        all.sort();
        let too_many = all.len() - MOST_FILES;
        all.iter().take(too_many).for_each(|(_, path)| drop(fs::remove_file(path)));
    }
}

/// The first 128 bits of the SHA-256 digest, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    hex(&sha256(bytes)[..DIGEST_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{Listed, UpstreamTool};
    use serde_json::json;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    fn listed(names: &[&str]) -> Listed {
        let tool = |name: &&str| {
            let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "default": 2}}});
            let tool = json!({"name": name, "description": "Does it.", "inputSchema": schema,
                "annotations": {"readOnlyHint": true, "title": "T"}, "_meta": {"x": 1}});
            serde_json::from_value::<UpstreamTool>(tool).unwrap()
        };
        Listed { instructions: Some("Use it.".into()), ..names.iter().map(tool).collect::<Vec<_>>().into() }
    }

    #[test]
    fn a_list_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::new(folder.path().join("ptc")));
        let memory = |name: &str, command: &str| ListMemory::new(&store, name, &json!({"command": command}));
        assert!(memory("fs", "a").last().is_none());
        let list =
            Listed { cut: Some("too long".into()), notes: vec!["a note".into()], ..listed(&["b", "a"]) };
        memory("fs", "a").keep(&list);
        assert_eq!(memory("fs", "a").last(), Some(list));
        // Another server of this name, or the same server under another name, has given no list.
        assert!(memory("fs", "b").last().is_none() && memory("web", "a").last().is_none());
        let file =
            fs::read_dir(folder.path().join("ptc/tool-lists")).unwrap().next().unwrap().unwrap().path();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        // A file of nonsense counts as none, and is replaced.
        files::replace(&file, b"[1, 2", LinkRule::Replace, FileAccess::Private).unwrap();
        assert!(memory("fs", "a").last().is_none());
        memory("fs", "a").keep(&listed(&["c"]));
        assert_eq!(memory("fs", "a").last(), Some(listed(&["c"])));
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::new(folder.path().to_owned()));
        for number in 0..MOST_FILES + 10 {
            ListMemory::new(&store, &format!("s{number}"), &Json::Null).keep(&listed(&["a"]));
        }
        assert_eq!(fs::read_dir(folder.path().join("tool-lists")).unwrap().count(), MOST_FILES);
    }
}
