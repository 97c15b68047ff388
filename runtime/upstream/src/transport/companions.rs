//! Registers child processes that ptc runs itself, such as Python interpreters and configured commands, so that the
//! cleanup of processes left over from MCP servers does not kill them.

use ptc_base::sync::Locked;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// Children of this process that come from no server. Global, because children belong to the whole process.
static COMPANIONS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// The ids of all companions.
pub(super) fn companions() -> MutexGuard<'static, BTreeSet<u32>> {
    COMPANIONS.locked()
}

/// Spawns a child that no guardian takes for an orphan of a server, until it is forgotten.
///
/// # Errors
/// Those of `spawn`.
pub fn spawn_companion<C, E>(
    spawn: impl FnOnce() -> Result<C, E>,
    id: impl FnOnce(&C) -> Option<u32>,
) -> Result<C, E> {
    // Under the lock, so that no check runs before it is known.
    let mut companions = companions();
    let child = spawn()?;
    companions.extend(id(&child));
    Ok(child)
}

/// Forgets a companion that has ended, or is about to.
pub fn forget_companion(id: u32) {
    companions().remove(&id);
}
