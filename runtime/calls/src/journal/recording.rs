//! Reads the journal of an earlier run, from its file, a session or a store, so that the run can be replayed or
//! resumed.

use super::record::{Header, OutcomeRecord, Record};
use ptc_base::digest::sha256_hex;
use ptc_base::files;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A journal that can be replayed.
pub struct Recording {
    path: PathBuf,
    header: Header,
    records: Vec<Record>,
    outcome: Option<OutcomeRecord>,
    /// Shared texts that are not files.
    texts: HashMap<String, String>,
}

/// Why a file is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError(String);

impl RecordingError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> RecordingError {
        RecordingError(text.into())
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for RecordingError {}

impl fmt::Debug for Recording {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Recording({}, {} records)", self.path.display(), self.records.len())
    }
}

impl Recording {
    /// Reads the file of a run that has ended.
    ///
    /// # Errors
    /// It cannot be read, is no recording or not a complete one, or has another format.
    pub fn read(path: &Path) -> Result<Recording, RecordingError> {
        let name = path.display();
        let text =
            files::read(path).map_err(|error| RecordingError(format!("cannot read {name}: {error}")))?;
        let recording = Recording::from_records(path.to_owned(), text.split(|byte| *byte == b'\n'))?;
        match recording.outcome {
            Some(_) => Ok(recording),
            None => Err(RecordingError(format!("{name} is not complete: it has no outcome"))),
        }
    }

    /// Reads the records of a program of a session, one a line.
    ///
    /// # Errors
    /// They are no journal, or have another format.
    pub fn from_lines(name: &str, lines: &[u8]) -> Result<Recording, RecordingError> {
        Recording::from_records(PathBuf::from(name), lines.split(|byte| *byte == b'\n'))
    }

    /// Reads records, which may end anywhere.
    ///
    /// # Errors
    /// They are no journal, or have another format.
    pub(super) fn from_records<'r>(
        path: PathBuf,
        records: impl Iterator<Item = &'r [u8]>,
    ) -> Result<Recording, RecordingError> {
        let name = path.display();
        let mut lines = records.enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
        let mut next = || {
            let (at, line) = lines.next()?;
            let record = serde_json::from_slice::<Record>(line);
            Some(record.map_err(|error| RecordingError(format!("{name}:{}: {error}", at + 1))))
        };
        let header = match next().transpose()? {
            Some(Record::Run(header)) if header.format == Header::FORMAT => *header,
            Some(Record::Run(header)) => {
                let (theirs, ours) = (header.format, Header::FORMAT);
                let text = format!("{name} has the format {theirs} of recordings, this program reads {ours}");
                return Err(RecordingError(text));
            }
            _ => {
                return Err(RecordingError(format!("{name} is no recording: its first line is not the run")));
            }
        };
        let (mut records, mut outcome) = (Vec::new(), None);
        while let Some(record) = next().transpose()? {
            match record {
                Record::Outcome(last) => {
                    outcome = Some(last);
                    break;
                }
                record => records.push(record),
            }
        }
        Ok(Recording { path, header, records, outcome, texts: HashMap::new() })
    }

    /// The same journal with these shared texts by their digests.
    pub(super) fn with_texts(self, texts: HashMap<String, String>) -> Recording {
        Recording { texts, ..self }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run was given.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Everything between, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How it ended; `None` for a run that has not.
    pub fn outcome(&self) -> Option<&OutcomeRecord> {
        self.outcome.as_ref()
    }

    /// A shared text of its folder.
    ///
    /// # Errors
    /// It is not there, or not the one that was recorded.
    pub fn shared(&self, name: &str) -> Result<String, RecordingError> {
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RecordingError(format!("{}: {name:?} is no digest", self.path.display())));
        }
        if let Some(text) = self.texts.get(name).filter(|text| sha256_hex(text.as_bytes()) == name) {
            return Ok(text.clone());
        }
        let path = self.path.parent().unwrap_or(Path::new("")).join("shared").join(name);
        let text = files::read_text(&path).map_err(|error| {
            RecordingError(format!("{} needs {}: {error}", self.path.display(), path.display()))
        })?;
        match sha256_hex(text.as_bytes()) == name {
            true => Ok(text),
            false => Err(RecordingError(format!("{} is not what was recorded", path.display()))),
        }
    }
}
