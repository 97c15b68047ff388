//! The hidden command `python-worker`: the process that runs Python scripts in Monty, an interpreter of a subset of
//! Python, for other commands of `ptc`.

use ptc_server::console::{Abort, Exit};

/// Name of the command.
pub(in crate::cli) const WORKER: &str = "python-worker";

/// Arguments of the hidden command that a worker of scripts is.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WorkerArgs {
    /// Bytes of memory that a script may have
    memory_bytes: u64,
}

impl WorkerArgs {
    /// Runs scripts until its input ends.
    pub(in crate::cli) fn serve(&self) -> Result<Exit, Abort> {
        ptc_python::engine::monty::serve(self.memory_bytes)?;
        Ok(Exit::Ok)
    }
}
