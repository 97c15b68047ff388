//! Stores spilled results (those too large to return) in files of this process, and evicts the oldest when all together
//! would exceed their size limit.

use super::folder::SpillFolder;
use crate::files;
use crate::secrets::SecretRegistry;
use crate::sync::Locked;
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Bytes between two recorded line counts: finding a line reads at most this much.
pub(super) const STRIDE: usize = 256 << 10;

/// Suffix of the file names of results.
const KEPT: &str = ".json";

/// Limit of results: each keeps a file open.
const MOST_FILES: usize = 256;

/// Folder and size limit of a store.
#[derive(Clone, Debug)]
pub struct SpillOptions {
    /// Parent of the folders of all processes; created if missing.
    pub base: PathBuf,
    /// Size limit of all files together.
    pub most_bytes: u64,
}

impl Default for SpillOptions {
    /// In the system's temporary folder, with 2 GiB.
    fn default() -> SpillOptions {
        SpillOptions { base: super::folder::usual_base(), most_bytes: 2 << 30 }
    }
}

/// Why a result cannot be spilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillError {
    /// It is larger than the limit of all files together.
    TooLarge {
        /// The limit.
        most: u64,
    },
    /// The folder or a file cannot be used.
    Io(String),
}

impl std::fmt::Display for SpillError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpillError::TooLarge { most } => {
                write!(f, "the result has more bytes than may be kept of all results together ({most})")
            }
            SpillError::Io(error) => write!(f, "the result cannot be kept: {error}"),
        }
    }
}

impl From<io::Error> for SpillError {
    fn from(error: io::Error) -> SpillError {
        SpillError::Io(error.to_string())
    }
}

/// The store of spilled results. Clones share it; its files are removed with the last clone.
#[derive(Clone)]
pub struct SpillStore(Arc<SharedSpills>);

struct SharedSpills {
    folder: SpillFolder,
    most_bytes: u64,
    secrets: SecretRegistry,
    /// Keyed hash (SipHash) with a key of this store.
    names: RandomState,
    state: Mutex<SpillState>,
}

#[derive(Default)]
struct SpillState {
    used: u64,
    made: u64,
    /// All results, the oldest first. Their holders own them.
    kept: VecDeque<Weak<Spilled>>,
}

/// A spilled result. It exists until it is dropped, or evicted for newer ones.
pub struct Spilled {
    pub(super) file: File,
    /// Path of its file, which is its name for callers.
    path: String,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// Number of line ends before each stride.
    pub(super) marks: Vec<u64>,
    store: Weak<SharedSpills>,
    /// It was evicted: its bytes no longer count.
    is_gone: AtomicBool,
}

/// Bytes that count against the store's limit.
struct DiskRoom {
    store: SpillStore,
    bytes: u64,
}

/// A message as a server sent it: an unnamed file, which is removed with this value.
pub struct RawSpill {
    pub(super) file: File,
    room: DiskRoom,
}

/// Writes a file.
pub(super) struct SpillWriter {
    file: File,
    path: PathBuf,
    room: DiskRoom,
    lines: u64,
    marks: Vec<u64>,
    ends_line: bool,
    is_kept: bool,
    buffer: Vec<u8>,
}

impl SpillStore {
    /// Creates the folder.
    ///
    /// # Errors
    /// It cannot be created, or another user can access it.
    pub fn open(options: &SpillOptions, secrets: SecretRegistry) -> io::Result<SpillStore> {
        let folder = SpillFolder::open(&options.base)?;
        Ok(SpillStore(Arc::new(SharedSpills {
            folder,
            most_bytes: options.most_bytes,
            secrets,
            names: RandomState::new(),
            state: Mutex::default(),
        })))
    }

    /// Removes all files at once. Later results cannot be spilled.
    pub fn close(&self) {
        let mut state = self.lock();
        while state.evict() {}
        self.0.folder.remove();
    }

    /// Spills a result that is in memory.
    ///
    /// # Errors
    /// It cannot be spilled.
    pub fn keep(&self, text: &[u8]) -> Result<Arc<Spilled>, SpillError> {
        super::form::form_text(self, text)
    }

    /// An unnamed file for a server's message.
    pub fn raw(&self) -> Result<RawSpill, SpillError> {
        let path = self.new_path(".raw");
        let file = files::create_new(&path)?;
        std::fs::remove_file(&path)?;
        Ok(RawSpill { file, room: DiskRoom { store: self.clone(), bytes: 0 } })
    }

    /// A file for a new result.
    pub(super) fn writer(&self) -> Result<SpillWriter, SpillError> {
        let path = self.new_path(KEPT);
        let file = files::create_new(&path)?;
        Ok(SpillWriter {
            file,
            path,
            room: DiskRoom { store: self.clone(), bytes: 0 },
            lines: 0,
            marks: vec![0],
            ends_line: true,
            is_kept: false,
            buffer: Vec::with_capacity(STRIDE),
        })
    }

    pub(super) fn secrets(&self) -> &SecretRegistry {
        &self.0.secrets
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used
    }

    /// Most bytes of all files together.
    pub fn most_bytes(&self) -> u64 {
        self.0.most_bytes
    }

    fn new_path(&self, kind: &str) -> PathBuf {
        let mut state = self.lock();
        state.made += 1;
        // Any caller that knows a result's name can read it, so names have to be unguessable.
        let secret = self.0.names.hash_one(state.made);
        self.0.folder.path().join(format!("r{}-{secret:016x}{kind}", state.made))
    }

    fn lock(&self) -> MutexGuard<'_, SpillState> {
        self.0.state.locked()
    }
}

impl SpillState {
    /// Evicts the oldest result; false when there is none. Its file is truncated, because open descriptors
    /// would keep its bytes on the disk.
    fn evict(&mut self) -> bool {
        let Some(oldest) = self.kept.pop_front() else { return false };
        // A result that is being dropped at this moment returns its bytes itself.
        if let Some(oldest) = oldest.upgrade()
            && !oldest.is_gone.swap(true, Ordering::AcqRel)
        {
            let _ = std::fs::remove_file(&oldest.path);
            let _ = oldest.file.set_len(0);
            self.used -= oldest.bytes;
        }
        true
    }

    fn enter(&mut self, spilled: &Arc<Spilled>) {
        self.kept.retain(|kept| kept.strong_count() > 0);
        while self.kept.len() >= MOST_FILES {
            self.evict();
        }
        self.kept.push_back(Arc::downgrade(spilled));
    }
}

impl DiskRoom {
    /// Counts more bytes; evicts the oldest results to make room.
    fn grow(&mut self, by: u64) -> Result<(), SpillError> {
        let most = self.store.0.most_bytes;
        let mut state = self.store.lock();
        while state.used + by > most {
            if !state.evict() {
                return Err(SpillError::TooLarge { most });
            }
        }
        state.used += by;
        self.bytes += by;
        Ok(())
    }
}

impl Drop for DiskRoom {
    fn drop(&mut self) {
        self.store.lock().used -= self.bytes;
    }
}

impl RawSpill {
    /// Appends a part of the message.
    pub fn push(&mut self, part: &[u8]) -> Result<(), SpillError> {
        self.room.grow(part.len() as u64)?;
        io::Write::write_all(&mut self.file, part)?;
        Ok(())
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.room.bytes
    }

    /// Its first and its last bytes, at most `most` of each.
    pub fn ends(&self, most: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let length = usize::try_from(self.bytes()).unwrap_or(usize::MAX).min(most);
        let read = |place| {
            let mut bytes = vec![0; length];
            FileExt::read_exact_at(&self.file, &mut bytes, place).map(|()| bytes)
        };
        Ok((read(0)?, read(self.bytes() - length as u64)?))
    }

    pub(super) fn store(&self) -> &SpillStore {
        &self.room.store
    }
}

impl std::fmt::Debug for SpillStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpillStore({})", self.0.folder.path().display())
    }
}

impl std::fmt::Debug for RawSpill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSpill({} bytes)", self.bytes())
    }
}

impl Spilled {
    /// Path of its file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True when its path, or the last part of that, is this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.path == name || (!name.is_empty() && self.path.rsplit('/').next() == Some(name))
    }

    /// It was evicted.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if self.is_gone.swap(true, Ordering::AcqRel) {
            return;
        }
        let _ = std::fs::remove_file(&self.path);
        if let Some(shared) = self.store.upgrade() {
            shared.state.locked().used -= self.bytes;
        }
    }
}

/// The words of a text that may be file names of results, whatever folder is written before them. Names
/// cannot be guessed, so other texts do not contain one by chance.
pub fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.match_indices(KEPT).filter_map(move |(at, _)| {
        let word = text[..at].trim_end_matches(is_name).len();
        text.get(word..at + KEPT.len())
    })
}

impl SpillWriter {
    pub(super) fn push(&mut self, mut part: &[u8]) -> Result<(), SpillError> {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(STRIDE - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            if self.buffer.len() == STRIDE {
                self.write()?;
                self.marks.push(self.lines);
            }
            part = rest;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), SpillError> {
        self.room.grow(self.buffer.len() as u64)?;
        io::Write::write_all(&mut self.file, &self.buffer)?;
        self.lines += memchr::memchr_iter(b'\n', &self.buffer).count() as u64;
        if let Some(last) = self.buffer.last() {
            self.ends_line = *last == b'\n';
        }
        self.buffer.clear();
        Ok(())
    }

    /// The finished result; the caller owns it.
    pub(super) fn finish(mut self) -> Result<Arc<Spilled>, SpillError> {
        self.write()?;
        let spilled = Arc::new(Spilled {
            file: self.file.try_clone()?,
            path: self.path.to_string_lossy().into_owned(),
            bytes: std::mem::take(&mut self.room.bytes),
            lines: self.lines + u64::from(!self.ends_line),
            marks: std::mem::take(&mut self.marks),
            store: Arc::downgrade(&self.room.store.0),
            is_gone: AtomicBool::new(false),
        });
        self.is_kept = true;
        self.room.store.lock().enter(&spilled);
        Ok(spilled)
    }
}

impl Drop for SpillWriter {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
