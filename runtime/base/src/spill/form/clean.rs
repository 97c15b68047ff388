//! Redacts secrets in a large result while it is written to a file piece by piece, including secrets that are split
//! between two pieces.

use crate::secrets::SecretRegistry;
use crate::spill::store::SpillError;

/// A secret in any form is shorter than this.
const LONGEST: usize = 64 << 10;

/// Size of a window that is redacted at once, in addition to what is held back.
const WINDOW: usize = 1 << 20;

/// Redacts a stream. It holds back as much of each window as a secret could need that has only begun, and
/// examines it again with what follows.
pub(super) struct Cleaner {
    secrets: SecretRegistry,
    held: Vec<u8>,
}

impl Cleaner {
    pub(super) fn new(secrets: SecretRegistry) -> Cleaner {
        Cleaner { secrets, held: Vec::new() }
    }

    pub(super) fn push(
        &mut self,
        part: &[u8],
        out: impl FnOnce(&[u8]) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        if self.held.is_empty() && self.secrets.is_empty() {
            return out(part);
        }
        self.held.extend_from_slice(part);
        if self.held.len() < WINDOW + LONGEST {
            return Ok(());
        }
        let mut clean = self.clean();
        let mut end = clean.len().saturating_sub(LONGEST);
        // Do not cut within a character.
        while end > 0 && clean[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        self.held = clean.split_off(end);
        out(&clean)
    }

    pub(super) fn finish(
        mut self,
        out: impl FnOnce(&[u8]) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        let clean = self.clean();
        out(&clean)
    }

    /// The window, redacted; bytes that are no UTF-8 stay if no secret is found.
    fn clean(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let text = String::from_utf8_lossy(&held);
        match self.secrets.scrub(&text) {
            std::borrow::Cow::Owned(clean) => clean.into_bytes(),
            std::borrow::Cow::Borrowed(_) => held,
        }
    }
}
