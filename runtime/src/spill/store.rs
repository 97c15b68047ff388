//! The files of one process, and their bound.

use super::folder::SpillFolder;
use crate::files;
use crate::secrets::SecretRegistry;
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes between two marks of a file: a line is found by reading so much at most.
pub(super) const STRIDE: usize = 256 << 10;

/// The end of the names of results.
const KEPT: &str = ".json";

/// Most results at once: each has a file that is open.
const MOST_FILES: usize = 256;

/// Where files go, and how many bytes of them there may be.
#[derive(Clone, Debug)]
pub struct SpillOptions {
    /// The folder that the folders of all processes are in; it is made if need be.
    pub base: PathBuf,
    /// Most bytes of all files together.
    pub most_bytes: u64,
}

impl Default for SpillOptions {
    /// In the folder for temporary files, 2 GiB.
    fn default() -> SpillOptions {
        SpillOptions { base: super::folder::usual_base(), most_bytes: 2 << 30 }
    }
}

/// Why a result cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillError {
    /// It has more bytes than all files together may have.
    TooLarge {
        /// Most bytes.
        most: u64,
    },
    /// The folder or a file is not to be had.
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

/// Files of results. Clones share them; they are removed with the last.
#[derive(Clone)]
pub struct SpillStore(Arc<SharedSpills>);

struct SharedSpills {
    folder: SpillFolder,
    most_bytes: u64,
    secrets: SecretRegistry,
    /// A keyed hash (SipHash), whose key is this store's alone.
    names: RandomState,
    state: Mutex<SpillState>,
}

#[derive(Default)]
struct SpillState {
    used: u64,
    made: u64,
    /// The oldest first. They are their holders'.
    kept: VecDeque<Weak<Spilled>>,
}

/// A result that is kept: until nobody holds this value, or newer ones need its room.
pub struct Spilled {
    pub(super) file: File,
    /// Where it is; what callers name it by.
    path: String,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// Line ends before each stride.
    pub(super) marks: Vec<u64>,
    store: Weak<SharedSpills>,
    /// Its bytes are on the account no more.
    is_gone: AtomicBool,
}

/// Bytes on the account of the store.
struct DiskRoom {
    store: SpillStore,
    bytes: u64,
}

/// What a server sent, as it came: a file without a name, which goes with this value.
pub struct RawSpill {
    pub(super) file: File,
    room: DiskRoom,
    store: SpillStore,
}

/// A file that is being written.
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
    /// Makes the folder.
    ///
    /// # Errors
    /// It cannot be made, or is not this user's alone.
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

    /// Removes all files at once. Results that are made later are not to be had.
    pub fn close(&self) {
        let mut state = self.lock();
        while state.evict() {}
        self.0.folder.remove();
    }

    /// Keeps a result that is in memory.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn keep(&self, text: &[u8]) -> Result<Arc<Spilled>, SpillError> {
        super::form::form_text(self, text)
    }

    /// A place for what a server sends.
    pub(crate) fn raw(&self) -> Result<RawSpill, SpillError> {
        let path = self.new_path(".raw");
        let file = files::create_new(&path)?;
        std::fs::remove_file(&path)?;
        Ok(RawSpill { file, room: DiskRoom { store: self.clone(), bytes: 0 }, store: self.clone() })
    }

    /// A result in the making.
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
        // Whoever knows the name of a result can read it, so nobody can know that of another one's.
        let secret = self.0.names.hash_one(state.made);
        self.0.folder.path().join(format!("r{}-{secret:016x}{kind}", state.made))
    }

    fn lock(&self) -> MutexGuard<'_, SpillState> {
        self.0.lock()
    }
}

impl SharedSpills {
    fn lock(&self) -> MutexGuard<'_, SpillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpillState {
    /// Takes the oldest result away from whoever holds it; false when there is none. Its file is emptied, since those who
    /// have it open would keep its bytes on the disk.
    fn evict(&mut self) -> bool {
        let Some(oldest) = self.kept.pop_front() else { return false };
        // One that is being dropped in this moment gives its bytes back itself.
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
    /// Takes so many bytes more; the oldest results go for them.
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
    /// Takes what has come.
    pub(crate) fn push(&mut self, part: &[u8]) -> Result<(), SpillError> {
        self.room.grow(part.len() as u64)?;
        io::Write::write_all(&mut self.file, part)?;
        Ok(())
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.room.bytes
    }

    /// Its first and its last bytes, at most so many of each.
    pub(crate) fn ends(&self, most: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let length = usize::try_from(self.bytes()).unwrap_or(usize::MAX).min(most);
        let read = |place| {
            let mut bytes = vec![0; length];
            FileExt::read_exact_at(&self.file, &mut bytes, place).map(|()| bytes)
        };
        Ok((read(0)?, read(self.bytes() - length as u64)?))
    }

    pub(super) fn store(&self) -> &SpillStore {
        &self.store
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
    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True when its path, or the last part of that, is this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.path == name || (!name.is_empty() && self.path.rsplit('/').next() == Some(name))
    }

    /// It had to go.
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
            shared.lock().used -= self.bytes;
        }
    }
}

/// The words of a text that may be the last parts of paths of results, whatever folders are written before them. Nobody
/// can guess one, so no other text has the name of a result.
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

    /// The result, whose holder it is.
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
