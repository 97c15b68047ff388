//! Parses references to stored preludes (versioned Lisp libraries), such as `paged` or `paged@7`, each with an optional
//! checksum.

use super::{PreludeVersion, StoreError};
use ptc_compiler::is_reserved_namespace;
use std::str::FromStr;

/// A reference to a version of a prelude, or to the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreludeRef {
    /// The id of the prelude.
    pub id: String,
    /// Which version; `None` for the current one.
    pub version: Option<u64>,
    /// The checksum that the version must have.
    pub checksum: Option<String>,
}

impl FromStr for PreludeRef {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<PreludeRef, StoreError> {
        let (id, version) = match text.split_once('@') {
            None => (text, None),
            Some((id, version)) => match version.parse() {
                Ok(version) if version > 0 && !version_has_sign(text) => (id, Some(version)),
                _ => return Err(invalid(text)),
            },
        };
        if !is_id(id) {
            return Err(invalid(text));
        }
        Ok(PreludeRef { id: id.to_owned(), version, checksum: None })
    }
}

impl std::fmt::Display for PreludeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl PreludeRef {
    /// Checks that this version is the one that is meant.
    pub(super) fn check(&self, version: &PreludeVersion) -> Result<(), StoreError> {
        match &self.checksum {
            Some(checksum) if *checksum != version.checksum => Err(StoreError::new(
                "checksum_mismatch",
                format!(
                    "{}@{} has the checksum {}, not {checksum}",
                    version.id, version.version, version.checksum
                ),
            )),
            _ => Ok(()),
        }
    }
}

fn version_has_sign(text: &str) -> bool {
    text.split_once('@').is_some_and(|(_, version)| version.starts_with('+'))
}

fn invalid(text: &str) -> StoreError {
    StoreError::new("invalid_ref", format!("{text:?} is no prelude: write an id such as paged, or paged@7"))
}

fn is_id(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        && id.len() <= ptc_vm::bytecode::LONGEST_NAME
}

/// Checks that a prelude may have this id.
pub(super) fn check_id(id: &str) -> Result<(), StoreError> {
    if !is_id(id) {
        return Err(invalid(id));
    }
    if is_reserved_namespace(id) {
        let message = format!("{id} is a namespace of the language or of the host");
        return Err(StoreError::new("prelude_namespace_violation", message));
    }
    Ok(())
}
