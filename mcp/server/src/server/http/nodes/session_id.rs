//! Makes and verifies signed session ids, which contain what `initialize` negotiated, so that any node (server process)
//! can go on with a session.

use crate::protocol::Version;
use crate::server::connection_state::ConnectionState;
use crate::tools::CallOwner;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ptc_base::digest::hex;
use ptc_upstream::Offered;
use ring::hmac;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Ids begin so.
const PREFIX: &str = "mcp_";

/// The form of the ids of this version.
const FORM: u8 = 1;

/// Bytes of the random part.
const NONCE_BYTES: usize = 16;

/// Bytes of the signature, a truncated HMAC-SHA256 (RFC 2104, section 5).
const SIGNATURE_BYTES: usize = 16;

/// Bytes before the signature: form, version, features, owner, time, random part.
const CONTENT_BYTES: usize = 1 + 1 + 1 + 8 + 8 + NONCE_BYTES;

/// The versions that sessions can have, in the order of their numbers.
const VERSIONS: [Version; 2] = [Version::V2025June, Version::V2025November];

/// A session, as its id describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server::http) struct SignedSession {
    pub(in crate::server::http) owner: CallOwner,
    version: Version,
    offered: Offered,
    /// Seconds since 1970.
    begun: u64,
    nonce: [u8; NONCE_BYTES],
}

impl SignedSession {
    /// A new session with this state; `None` without random numbers.
    pub(in crate::server::http) fn new(owner: CallOwner, state: &ConnectionState) -> Option<SignedSession> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let version = state.version.unwrap_or(Version::LATEST_WITH_HANDSHAKE);
        let offered = state.offered.unwrap_or_default();
        Some(SignedSession { owner, version, offered, begun: now(), nonce })
    }

    /// Its id.
    pub(super) fn signed(&self, key: &hmac::Key) -> String {
        let mut bytes = self.content().to_vec();
        bytes.extend_from_slice(&hmac::sign(key, &bytes).as_ref()[..SIGNATURE_BYTES]);
        format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The session with this id, if a node with this key has signed it.
    pub(super) fn read(key: &hmac::Key, id: &str) -> Option<SignedSession> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(id.strip_prefix(PREFIX)?).ok()?;
        let (content, signature) = bytes.split_at_checked(CONTENT_BYTES)?;
        let right = hmac::sign(key, content);
        let is_right = subtle::ConstantTimeEq::ct_eq(&right.as_ref()[..SIGNATURE_BYTES], signature);
        let content: &[u8; CONTENT_BYTES] = content.try_into().ok()?;
        if !bool::from(is_right) || content[0] != FORM {
            return None;
        }
        let number = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&content[from..from + 8]);
            u64::from_be_bytes(bytes)
        };
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&content[19..]);
        let features = content[2];
        Some(SignedSession {
            owner: CallOwner(number(3)),
            version: *VERSIONS.get(usize::from(content[1]))?,
            offered: Offered {
                elicitation: features & 1 != 0,
                roots: features & 2 != 0,
                urls: features & 4 != 0,
            },
            begun: number(11),
            nonce,
        })
    }

    fn content(&self) -> [u8; CONTENT_BYTES] {
        let Offered { elicitation, roots, urls } = self.offered;
        let version = VERSIONS.iter().position(|version| *version == self.version).unwrap_or_default();
        let mut content = [0; CONTENT_BYTES];
        content[0] = FORM;
        content[1] = u8::try_from(version).unwrap_or_default();
        content[2] = u8::from(elicitation) | u8::from(roots) << 1 | u8::from(urls) << 2;
        content[3..11].copy_from_slice(&self.owner.0.to_be_bytes());
        content[11..19].copy_from_slice(&self.begun.to_be_bytes());
        content[19..].copy_from_slice(&self.nonce);
        content
    }

    /// How much of this age is left.
    pub(in crate::server::http) fn left_of(&self, age: Duration) -> Option<Duration> {
        age.checked_sub(Duration::from_secs(now().saturating_sub(self.begun))).filter(|left| !left.is_zero())
    }

    /// What it negotiated.
    pub(in crate::server::http) fn state(&self) -> ConnectionState {
        ConnectionState::for_owner(self.owner).negotiated(self.version, self.offered)
    }

    /// Its name in the store, by which no request can use it.
    pub(super) fn name(&self) -> String {
        hex(&self.nonce)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_with_its_key_only_and_as_it_was_signed() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"one");
        for (at, version) in VERSIONS.into_iter().enumerate() {
            let offered = Offered { elicitation: at == 0, roots: at == 1, urls: true };
            let owner = CallOwner(u64::MAX - at as u64);
            let session = SignedSession { owner, version, offered, begun: 7, nonce: [9; NONCE_BYTES] };
            let id = session.signed(&key);
            assert_eq!(SignedSession::read(&key, &id), Some(session));
            assert_eq!(SignedSession::read(&hmac::Key::new(hmac::HMAC_SHA256, b"two"), &id), None);
            for at in PREFIX.len()..id.len() {
                let mut other = id.clone().into_bytes();
                other[at] = if other[at] == b'A' { b'B' } else { b'A' };
                let other = String::from_utf8(other).unwrap();
                assert_eq!(SignedSession::read(&key, &other), None, "{at}");
            }
            assert_eq!(SignedSession::read(&key, &id[..id.len() - 2]), None);
        }
        assert_eq!(SignedSession::read(&key, "mcp_"), None);
    }
}
