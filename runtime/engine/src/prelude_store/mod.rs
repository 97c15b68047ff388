//! Stores versions of preludes, the Lisp libraries that are loaded before programs, in memory or in a file. People and
//! models write them; each is compiled before it is stored, and never changes afterwards.
//!
//! A prelude is known by an id, which is also the one namespace that it declares. Each write makes a new
//! version and makes it the current one. A version selected by [`PreludeStore::set_default`] is retained
//! whatever is written later. In a file, acknowledged writes survive a crash.
//!
//! # Layout
//! - this file: the store's interface and rules; `memory`, `file`: where versions are stored
//! - `reference`: names of versions; `view`: what is shown of them; `tools`: the namespace `prelude/` for
//!   programs

mod file;
mod memory;
mod reference;
mod tools;
mod view;

use crate::guest::lisp::prelude::{Prelude, PreludeSource};
use file::FileBackend;
use memory::MemoryBackend;
use ptc_base::digest::sha256_hex;
use ptc_base::tasks::StopFlag;
use ptc_calls::run::outcome::Failure;
use ptc_vm::Interrupt;
pub use reference::PreludeRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
pub use tools::editing;

/// How many of the latest versions of an id are retained.
const RETAINED: usize = 20;

/// Limit of ids in a store.
const MOST_IDS: usize = 1_000;

/// Limit of all texts in a store, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Limit of a source text, in bytes.
const LONGEST_SOURCE: usize = 1_000_000;

/// Limit of a version's metadata, in bytes.
const LONGEST_METADATA: usize = 8 << 10;

/// A store of preludes. It is safe to use from many threads at once.
pub struct PreludeStore {
    backend: Box<dyn StoreBackend>,
}

/// Storage of versions.
trait StoreBackend: Send + Sync {
    /// Every id with its facts, sorted.
    fn heads(&self) -> Result<Vec<(String, Head)>, StoreError>;

    /// The facts about an id.
    fn head(&self, id: &str) -> Result<Option<Head>, StoreError>;

    /// The text of a version.
    fn source(&self, id: &str, version: u64) -> Result<Option<String>, StoreError>;

    /// Changes an id atomically and durably. `decide` gets the facts at that moment, and the number of ids.
    fn update(
        &self,
        id: &str,
        decide: &mut dyn FnMut(Option<Head>, usize) -> Result<HeadChange, StoreError>,
    ) -> Result<(), StoreError>;
}

/// The change that an update makes.
struct HeadChange {
    head: Head,
    /// Number and text of a new version.
    added: Option<(u64, String)>,
    /// Versions to delete.
    dropped: Vec<u64>,
}

/// Facts about an id: everything except texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    /// The version that the id without a version means.
    current: u64,
    /// The highest version that was ever written.
    latest: u64,
    /// The version that was selected last.
    selected: Option<Selection>,
    /// The retained versions, by number.
    versions: Vec<PreludeVersion>,
}

/// A version of a prelude, without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreludeVersion {
    /// The id of the prelude.
    pub id: String,
    /// Its number, from 1; numbers are never reused.
    pub version: u64,
    /// SHA-256 of the text, in hexadecimal.
    pub checksum: String,
    /// Bytes of the text.
    pub source_bytes: u64,
    /// Names of its exports, sorted.
    pub exports: Vec<String>,
    /// Metadata of its author.
    pub metadata: Map<String, Value>,
    /// When it was written, in milliseconds since 1970.
    pub created_ms: i64,
}

/// A version that was selected as the current one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The version.
    pub version: u64,
    /// Metadata: why it was selected.
    pub metadata: Map<String, Value>,
    /// When it was selected, in milliseconds since 1970.
    pub selected_ms: i64,
}

/// An id of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPrelude {
    /// The id.
    pub id: String,
    /// The version that the id without a version means.
    pub current_version: u64,
    /// The highest version that was ever written.
    pub latest_version: u64,
    /// The current version.
    pub current: PreludeVersion,
    /// The version that was selected last.
    pub selected: Option<Selection>,
}

/// A version with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct PreludeCandidate {
    /// Facts about the version.
    pub version: PreludeVersion,
    /// The text.
    pub source: String,
}

impl PreludeCandidate {
    /// Compiles the text.
    ///
    /// # Errors
    /// A text from another version of the language may not compile; texts are compiled before they are
    /// stored.
    pub fn compile(&self) -> Result<Prelude, StoreError> {
        compiled(&self.version.id, &self.source, &Interrupt::default())
    }
}

/// Why an operation of a store failed.
#[derive(Clone, Debug)]
pub struct StoreError {
    /// The reason as a word: `not_found`, `checksum_mismatch` …
    pub reason: &'static str,
    /// The reason as a sentence.
    pub message: String,
    /// The error of a text that does not compile.
    pub compile: Option<Box<Failure>>,
}

impl StoreError {
    fn new(reason: &'static str, message: impl Into<String>) -> StoreError {
        StoreError { reason, message: message.into(), compile: None }
    }

    /// The file is damaged, or an operation on it failed.
    fn broken(error: impl std::fmt::Display) -> StoreError {
        StoreError::new("prelude_store_error", error.to_string())
    }

    fn not_found(what: impl std::fmt::Display) -> StoreError {
        StoreError::new("not_found", format!("no prelude {what} in the store"))
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for StoreError {}

impl PreludeStore {
    /// An empty store that ends with its process.
    pub fn in_memory() -> PreludeStore {
        PreludeStore { backend: Box::new(MemoryBackend::default()) }
    }

    /// The store in a file, which is created if it is missing.
    ///
    /// # Errors
    /// The file is no store, cannot be opened, or is in use by another process for too long.
    pub fn open(path: &Path) -> Result<PreludeStore, StoreError> {
        Ok(PreludeStore { backend: Box::new(FileBackend::open(path)?) })
    }

    /// Every id, sorted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<StoredPrelude>, StoreError> {
        let stored = |(id, head): (String, Head)| {
            let current = head.find(head.current)?.clone();
            Some(StoredPrelude {
                id,
                current_version: head.current,
                latest_version: head.latest,
                current,
                selected: head.selected,
            })
        };
        Ok(self.backend.heads()?.into_iter().filter_map(stored).collect())
    }

    /// The retained versions of an id, the oldest first.
    ///
    /// # Errors
    /// There is no such id.
    pub fn history(&self, id: &str) -> Result<Vec<PreludeVersion>, StoreError> {
        self.backend.head(id)?.map(|head| head.versions).ok_or_else(|| StoreError::not_found(id))
    }

    /// A version with its text; without a version in the reference, the current one.
    ///
    /// # Errors
    /// The version does not exist or was dropped, or its checksum differs from that in the reference.
    pub fn read(&self, reference: &PreludeRef) -> Result<PreludeCandidate, StoreError> {
        let id = reference.id.as_str();
        let head = self.backend.head(id)?.ok_or_else(|| StoreError::not_found(reference))?;
        let number = reference.version.unwrap_or(head.current);
        let version = head.find(number).cloned().ok_or_else(|| StoreError::not_found(reference))?;
        reference.check(&version)?;
        // A version that is dropped at this moment may lose its text after its entry was read.
        let source = self.backend.source(id, number)?.ok_or_else(|| StoreError::not_found(reference))?;
        if sha256_hex(source.as_bytes()) != version.checksum {
            return Err(StoreError::broken(format_args!(
                "the text of {id}@{number} is not the one with its checksum; put a copy of the store in its place, or write \
                 the prelude again"
            )));
        }
        Ok(PreludeCandidate { version, source })
    }

    /// Compiles a text and stores it as the next version, which becomes the current one.
    ///
    /// # Errors
    /// The text does not compile or declares another namespace than its id. A limit is exceeded. With a
    /// `parent_checksum`: the current version has another checksum.
    pub fn write(
        &self,
        id: &str,
        source: &str,
        metadata: Map<String, Value>,
        parent_checksum: Option<&str>,
    ) -> Result<PreludeVersion, StoreError> {
        self.write_until(id, source, metadata, parent_checksum, &Interrupt::default())
    }

    /// Bytes of all texts.
    fn source_bytes(&self) -> Result<u64, StoreError> {
        let heads = self.backend.heads()?;
        let versions = heads.iter().flat_map(|(_, head)| &head.versions);
        Ok(versions.fold(0, |sum: u64, version| sum.saturating_add(version.source_bytes)))
    }

    /// [`PreludeStore::write`] that writes nothing if the interrupt is raised before the text has compiled.
    fn write_until(
        &self,
        id: &str,
        source: &str,
        metadata: Map<String, Value>,
        parent_checksum: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<PreludeVersion, StoreError> {
        reference::check_id(id)?;
        if source.len() > LONGEST_SOURCE {
            let message = format!("the source has {} bytes, at most {LONGEST_SOURCE} are kept", source.len());
            return Err(StoreError::new("source_too_large", message));
        }
        check_metadata(&metadata)?;
        let bytes = self.source_bytes()?.saturating_add(source.len() as u64);
        if bytes > MOST_BYTES {
            let message =
                format!("the texts of the store would have {bytes} bytes, at most {MOST_BYTES} are kept");
            return Err(StoreError::new("store_full", message));
        }
        let prelude = compiled(id, source, interrupt)?;
        let mut made = None;
        self.backend.update(id, &mut |head, ids| {
            let is_new = head.is_none();
            let mut head = head.unwrap_or_default();
            if is_new && ids >= MOST_IDS {
                let message = format!("the store has {MOST_IDS} preludes");
                return Err(StoreError::new("version_limit_exceeded", message));
            }
            let current = head.find(head.current).map(|version| version.checksum.as_str());
            if let Some(parent) = parent_checksum.filter(|parent| Some(*parent) != current) {
                let message = format!("the current version of {id} is not {parent}: read it again");
                return Err(StoreError::new("stale_base", message));
            }
            let used_up = || StoreError::broken(format_args!("{id} has no numbers left for versions"));
            let number = head.latest.checked_add(1).ok_or_else(used_up)?;
            let version = PreludeVersion {
                id: id.to_owned(),
                version: number,
                checksum: sha256_hex(source.as_bytes()),
                source_bytes: source.len() as u64,
                exports: export_names(&prelude),
                metadata: metadata.clone(),
                created_ms: now_ms(),
            };
            made = Some(version.clone());
            head.versions.push(version);
            (head.latest, head.current) = (number, number);
            let dropped = head.prune();
            Ok(HeadChange { head, added: Some((number, source.to_owned())), dropped })
        })?;
        made.ok_or_else(|| StoreError::broken("the version was not written"))
    }

    /// Makes a version the current one, and retains it from then on whatever is written.
    ///
    /// # Errors
    /// The reference names no version, the version does not exist, or its checksum differs.
    pub fn set_default(
        &self,
        reference: &PreludeRef,
        metadata: Map<String, Value>,
    ) -> Result<Selection, StoreError> {
        let Some(number) = reference.version else {
            return Err(StoreError::new("invalid_argument", "set-default needs a version, as in id@7"));
        };
        check_metadata(&metadata)?;
        let selection = Selection { version: number, metadata, selected_ms: now_ms() };
        self.backend.update(&reference.id, &mut |head, _| {
            let mut head = head.ok_or_else(|| StoreError::not_found(reference))?;
            let version = head.find(number).ok_or_else(|| StoreError::not_found(reference))?;
            reference.check(version)?;
            (head.current, head.selected) = (number, Some(selection.clone()));
            let dropped = head.prune();
            Ok(HeadChange { head, added: None, dropped })
        })?;
        Ok(selection)
    }

    /// Composes versions to one prelude, in this order. Later writes do not change it.
    ///
    /// # Errors
    /// A version does not exist; two of them declare one namespace.
    pub fn bundle(
        &self,
        references: &[PreludeRef],
    ) -> Result<(Arc<Prelude>, Vec<PreludeVersion>), StoreError> {
        self.bundle_until(references, &StopFlag::default())
    }

    /// [`PreludeStore::bundle`] that stops without a prelude when the flag is raised.
    ///
    /// # Errors
    /// As for [`PreludeStore::bundle`]; the flag was raised.
    pub fn bundle_until(
        &self,
        references: &[PreludeRef],
        stop: &StopFlag,
    ) -> Result<(Arc<Prelude>, Vec<PreludeVersion>), StoreError> {
        let (mut sources, mut versions) = (Vec::new(), Vec::new());
        for reference in references {
            let PreludeCandidate { version, source } = self.read(reference)?;
            sources.push(PreludeSource {
                name: format!("{}@{}", version.id, version.version),
                text: source,
                id: Some(version.id.clone()),
                version: Some(version.version),
                origin: Some("store".to_owned()),
            });
            versions.push(version);
        }
        let prelude = Prelude::compose_until(sources, stop.interrupt()).map_err(|error| StoreError {
            compile: Some(error.failure.clone()),
            ..StoreError::new("prelude_compile_error", error.failure.message.clone())
        })?;
        Ok((Arc::new(prelude), versions))
    }
}

impl Head {
    fn find(&self, version: u64) -> Option<&PreludeVersion> {
        self.versions.iter().find(|known| known.version == version)
    }

    /// Drops all but the latest versions, the current one and the selected one. Returns the dropped numbers.
    fn prune(&mut self) -> Vec<u64> {
        let latest = self.versions.iter().rev().take(RETAINED).map(|version| version.version);
        let mut kept: BTreeSet<u64> = latest.collect();
        kept.insert(self.current);
        kept.extend(self.selected.as_ref().map(|selection| selection.version));
        let is_gone = |version: &u64| !kept.contains(version);
        let dropped = self.versions.iter().map(|version| version.version).filter(is_gone).collect();
        self.versions.retain(|version| kept.contains(&version.version));
        dropped
    }
}

fn compiled(id: &str, source: &str, interrupt: &Interrupt) -> Result<Prelude, StoreError> {
    let prelude = Prelude::compile_until(id, source, interrupt).map_err(|error| StoreError {
        compile: Some(error.failure.clone()),
        ..StoreError::new("prelude_compile_error", error.failure.message.clone())
    })?;
    let names: Vec<&str> = prelude.namespaces().map(|namespace| namespace.name()).collect();
    if names != [id] {
        let message =
            format!("the prelude {id} must declare the namespace {id} alone, got: {}", names.join(", "));
        return Err(StoreError::new("prelude_namespace_violation", message));
    }
    Ok(prelude)
}

fn export_names(prelude: &Prelude) -> Vec<String> {
    let exports = prelude.namespaces().flat_map(|namespace| namespace.exports());
    exports.map(|export| export.name.to_string()).collect()
}

fn check_metadata(metadata: &Map<String, Value>) -> Result<(), StoreError> {
    let bytes = serde_json::to_string(metadata).map_err(StoreError::broken)?.len();
    if bytes <= LONGEST_METADATA {
        return Ok(());
    }
    let message = format!("metadata has {bytes} bytes, at most {LONGEST_METADATA} are kept");
    Err(StoreError::new("invalid_argument", message))
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
