//! Secrets in a text that comes in pieces.

use crate::secrets::SecretRegistry;
use crate::spill::store::SpillError;

/// A secret in any form has fewer bytes than this.
const LONGEST: usize = 64 << 10;

/// How much is looked at together, beside what is held back.
const WINDOW: usize = 1 << 20;

/// Takes secrets out. What was looked at is held back as far as a secret may reach that has only begun, and looked at
/// again together with what follows.
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
        // Not within a character.
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

    /// What is held, without secrets; bytes that are no UTF-8 stay if there is nothing to take out.
    fn clean(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let text = String::from_utf8_lossy(&held);
        match self.secrets.scrub(&text) {
            std::borrow::Cow::Owned(clean) => clean.into_bytes(),
            std::borrow::Cow::Borrowed(_) => held,
        }
    }
}
