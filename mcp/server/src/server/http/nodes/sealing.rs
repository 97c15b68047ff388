//! Seals messages between nodes, so that other users of the database can neither read, forge nor repeat them: PostgreSQL
//! lets every role listen and notify.
//!
//! The key is derived from the secret that all nodes read from a table which only their role may read. Each process has a
//! key of its own and counts its messages, so no nonce comes twice. The count also tells a message that is repeated. A
//! process that has just started has seen no counts, so it drops what was sent before.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use ptc_base::sync::Locked;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Sets this key apart from others that are made of the same secret.
const LABEL: &[u8] = b"ptc: messages between nodes";

/// The form of the messages of this version.
const FORM: u8 = 1;

/// Bytes by which a process is known.
pub(super) const SENDER_BYTES: usize = 16;

/// Bytes before the sealed part: form, sender, number.
const HEAD_BYTES: usize = 1 + SENDER_BYTES + 8;

/// Bytes of the time before the text, in the sealed part.
const TIME_BYTES: usize = 8;

/// Most by which the clocks of two nodes, and the way of a message, may differ.
const MOST_APART: Duration = Duration::from_secs(300);

/// Most messages of a sender that are known beyond the first one that has not come.
const MOST_AHEAD: usize = 8_192;

/// Who sends a message: a random name of the process.
type Sender = [u8; SENDER_BYTES];

/// Why a message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It was not sealed with this key, or was changed.
    Foreign,
    /// It was sent before this process has started, or the clocks of the nodes are too far apart.
    OutOfTime,
    /// It has come before, or too many later ones have.
    Repeated,
}

/// Seals the messages of this process, and opens those of all.
pub(super) struct Seal {
    derived: hkdf::Prk,
    sender: Sender,
    own: LessSafeKey,
    next: AtomicU64,
    begun: Duration,
    seen: Mutex<HashMap<Sender, Seen>>,
}

/// Which messages of a sender have come.
#[derive(Debug, Default)]
struct Seen {
    /// All before this number have come, or do not count any more.
    before: u64,
    /// Those that have come from there on.
    ahead: BTreeSet<u64>,
    /// When the latest of them was sent.
    latest: Duration,
}

impl Seen {
    /// False if it has come.
    fn take(&mut self, number: u64) -> bool {
        if number < self.before || !self.ahead.insert(number) {
            return false;
        }
        if self.ahead.len() > MOST_AHEAD {
            // It is not empty.
            self.before = self.ahead.first().copied().unwrap_or_default();
        }
        while self.ahead.remove(&self.before) {
            self.before = self.before.saturating_add(1);
        }
        true
    }
}

impl Seal {
    /// The seal of a process with this random name.
    pub(super) fn new(secret: &[u8], sender: Sender) -> Option<Seal> {
        let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, LABEL).extract(secret);
        let own = key_of(&derived, &sender)?;
        let (next, seen) = Default::default();
        Some(Seal { derived, sender, own, next, begun: now(), seen })
    }

    /// A message of this process. `None`: it is too long.
    pub(super) fn close(&self, text: &str) -> Option<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.close_at(text, number, now())
    }

    fn close_at(&self, text: &str, number: u64, time: Duration) -> Option<String> {
        let mut head = [0; HEAD_BYTES];
        head[0] = FORM;
        head[1..=SENDER_BYTES].copy_from_slice(&self.sender);
        head[1 + SENDER_BYTES..].copy_from_slice(&number.to_be_bytes());
        let mut sealed = milliseconds(time).to_be_bytes().to_vec();
        sealed.extend_from_slice(text.as_bytes());
        self.own.seal_in_place_append_tag(nonce(number), Aad::from(head), &mut sealed).ok()?;
        Some(BASE64_STANDARD_NO_PAD.encode([&head[..], &sealed].concat()))
    }

    /// The text of a message, once.
    ///
    /// # Errors
    /// It is dropped.
    pub(super) fn open(&self, message: &str) -> Result<String, Dropped> {
        let now = now();
        let (sender, number, time, text) = self.read(message).ok_or(Dropped::Foreign)?;
        if time < self.begun || time.abs_diff(now) > MOST_APART {
            return Err(Dropped::OutOfTime);
        }
        let mut all = self.seen.locked();
        if !all.contains_key(&sender) {
            // What one of these has sent is out of time by now.
            all.retain(|_, seen| seen.latest.saturating_add(MOST_APART) >= now);
        }
        let seen = all.entry(sender).or_default();
        seen.latest = seen.latest.max(time);
        if seen.take(number) { Ok(text) } else { Err(Dropped::Repeated) }
    }

    fn read(&self, message: &str) -> Option<(Sender, u64, Duration, String)> {
        let bytes = BASE64_STANDARD_NO_PAD.decode(message).ok()?;
        let (head, sealed) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (sender, number) = head[1..].split_first_chunk::<SENDER_BYTES>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        if head[0] != FORM {
            return None;
        }
        let (key, mut sealed) = (key_of(&self.derived, sender)?, sealed.to_vec());
        let opened = key.open_in_place(nonce(number), Aad::from(*head), &mut sealed).ok()?;
        let (time, text) = opened.split_first_chunk::<TIME_BYTES>()?;
        let text = String::from_utf8(text.to_vec()).ok()?;
        Some((*sender, number, Duration::from_millis(u64::from_be_bytes(*time)), text))
    }
}

/// The key of a process.
fn key_of(derived: &hkdf::Prk, sender: &Sender) -> Option<LessSafeKey> {
    let parts = [&sender[..]];
    let key = derived.expand(&parts, &CHACHA20_POLY1305).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Time since 1970.
fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(milliseconds(now))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(secret: &[u8], sender: u8) -> Seal {
        Seal::new(secret, [sender; SENDER_BYTES]).unwrap()
    }

    #[test]
    fn a_message_opens_once_as_it_was_with_the_key_of_all_nodes() {
        let (one, other, foreign) = (seal(b"key", 1), seal(b"key", 2), seal(b"another", 2));
        let message = one.close("{\"owner\":7}").unwrap();
        assert_ne!(message, one.close("{\"owner\":7}").unwrap());
        assert_eq!(foreign.open(&message), Err(Dropped::Foreign));
        for at in 0..message.len() {
            let mut changed = message.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(other.open(std::str::from_utf8(&changed).unwrap()), Err(Dropped::Foreign), "{at}");
        }
        for wrong in ["", "AQ", "{}", &message[..message.len() - 4]] {
            assert_eq!(other.open(wrong), Err(Dropped::Foreign));
        }
        assert_eq!(other.open(&message).as_deref(), Ok("{\"owner\":7}"));
        assert_eq!(other.open(&message), Err(Dropped::Repeated));
        // A node that has started later, and one whose clock is far from ours.
        let mut later = seal(b"key", 3);
        later.begun += Duration::from_millis(60_000);
        assert_eq!(later.open(&message), Err(Dropped::OutOfTime));
        for time in [now() + MOST_APART * 2, Duration::ZERO, Duration::MAX] {
            let message = one.close_at("text", 9, time).unwrap();
            assert_eq!(other.open(&message), Err(Dropped::OutOfTime));
        }
    }

    #[test]
    fn messages_may_come_in_another_order_and_be_lost_and_memory_is_bounded() {
        let mut seen = Seen::default();
        assert!([5, 0, 1, 3].into_iter().all(|number| seen.take(number)));
        assert!([0, 1, 3, 5].into_iter().all(|number| !seen.take(number)));
        assert_eq!((seen.before, seen.ahead.len()), (2, 2));
        assert!(seen.take(2) && seen.take(4));
        assert_eq!((seen.before, seen.ahead.len()), (6, 0));
        // The sixth is lost.
        let many = 7 + MOST_AHEAD as u64;
        assert!((7..=many).all(|number| seen.take(number)));
        assert_eq!((seen.before, seen.ahead.len()), (many + 1, 0));
        assert!(!seen.take(6) && seen.take(u64::MAX) && !seen.take(u64::MAX));
    }

    #[test]
    fn processes_that_are_gone_are_forgotten() {
        let one = seal(b"key", 1);
        assert!(one.open(&seal(b"key", 2).close("text").unwrap()).is_ok());
        one.seen.locked().values_mut().for_each(|seen| seen.latest = Duration::ZERO);
        assert!(one.open(&seal(b"key", 3).close("text").unwrap()).is_ok());
        assert_eq!(one.seen.locked().len(), 1);
    }
}
