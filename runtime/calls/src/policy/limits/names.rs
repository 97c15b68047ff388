//! The names under which limits count the calls of a session, for sessions that outlive their process: the same one in
//! every process that has the session.

use super::CountedSession;
use crate::run::account::RunAccount;
use ptc_base::sync::Locked;
use std::any::Any;
use std::sync::{Arc, Mutex, Weak};

/// Names of the sessions that are alive.
#[derive(Default)]
pub(in crate::policy) struct SessionNames(Mutex<Vec<NamedSession>>);

type NamedSession = (Weak<dyn Any + Send + Sync>, Arc<str>);

impl SessionNames {
    /// Names a session.
    pub(in crate::policy) fn add(&self, session: &Weak<dyn Any + Send + Sync>, name: Arc<str>) {
        let mut names = self.0.locked();
        names.retain(|(known, _)| known.strong_count() > 0);
        names.push((session.clone(), name));
    }

    /// What the calls of a run count for.
    pub(in crate::policy) fn of_run(&self, run: &RunAccount) -> CountedSession {
        let name = run.session().and_then(|session| {
            let names = self.0.locked();
            let is_it = |known: &&NamedSession| std::ptr::addr_eq(known.0.as_ptr(), session.as_ptr());
            names.iter().find(is_it).map(|(_, name)| name.clone())
        });
        name.map_or_else(|| CountedSession::Local(run.session_name()), CountedSession::Stored)
    }
}
