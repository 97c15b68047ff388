//! Records which servers each secret belongs to, so that a secret of one server is detected in a call to another.

use super::SecretRegistry;
use super::finder::{Finder, Tail};
use super::forms::forms_of;
use crate::sync::RwLocked;
use secrecy::ExposeSecret;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, RwLock};

/// Secrets of servers, and the servers that each belongs to.
#[derive(Default)]
pub(super) struct Owners(RwLock<Vec<(secrecy::SecretString, BTreeSet<Arc<str>>)>>);

impl SecretRegistry {
    /// Records that a secret belongs to a server. It may belong to several.
    #[doc(hidden)]
    pub fn own(&self, server: &str, value: &str) {
        let mut owned = self.shared.owners.0.write_locked();
        let known = owned.iter_mut().find(|(known, _)| known.expose_secret() == value);
        match known {
            Some((_, owners)) => drop(owners.insert(server.into())),
            None => owned.push((value.into(), BTreeSet::from([server.into()]))),
        }
    }

    /// The server that a secret in the text belongs to, if it does not belong to `server` too.
    #[doc(hidden)]
    pub fn foreign_owner(&self, server: &str, text: &str) -> Option<Arc<str>> {
        // Most texts have no secret at all.
        if matches!(self.scrub(text), Cow::Borrowed(_)) {
            return None;
        }
        let owned = self.shared.owners.0.read_locked();
        let mut foreign = owned.iter().filter(|(_, owners)| !owners.contains(server));
        let found = foreign.find(|(value, _)| {
            let finder = Finder::new(forms_of(value.expose_secret()));
            !finder.find(text, Tail::Whole).is_empty()
        });
        found.and_then(|(_, owners)| owners.first().cloned())
    }
}
