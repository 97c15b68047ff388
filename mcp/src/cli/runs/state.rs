//! The flag `--state`, the folder of runs that outlive their process.

use crate::cli::flags::variables;
use crate::console::exit::Abort;
use ptc_runtime::journal::DurableRuns;
use ptc_runtime::store::{EmbeddedStore, StoreError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One process has the folder at a time, so all of them are the same holder.
const HOLDER: &str = "embedded";

/// Flag of commands with stored runs.
#[derive(Debug, clap::Args)]
pub struct StateFlags {
    /// Store runs that change something in this folder, so that they outlive this process: `ptc runs` shows those that
    /// were interrupted, and goes on with them. It holds real data and is readable for this user only
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// An input. Its end is that of the process, which leaves its runs stored.
pub struct LastInput<R> {
    /// Where it comes from.
    pub input: R,
    /// The stored runs.
    pub runs: Option<DurableRuns>,
}

impl<R: Read> Read for LastInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        if read == 0
            && let Some(runs) = &self.runs
        {
            runs.close();
        }
        Ok(read)
    }
}

/// The stored runs of a folder. It must be called on a tokio runtime.
pub(super) fn open(folder: &Path) -> Result<DurableRuns, StoreError> {
    Ok(DurableRuns::new(Arc::new(EmbeddedStore::open(folder)?), HOLDER))
}

impl StateFlags {
    /// These flags, or those if these are not given.
    pub fn or(self, other: StateFlags) -> StateFlags {
        StateFlags { state: self.state.or(other.state) }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Result<Option<PathBuf>, Abort> {
        variables::given_or_read(self.state.clone(), "state", variables::path)
    }

    /// The stored runs, if there is a folder. It must be called on a tokio runtime.
    pub fn runs(&self) -> Result<Option<DurableRuns>, Abort> {
        let Some(folder) = self.folder()? else { return Ok(None) };
        let runs = open(&folder).map_err(|error| Abort::usage(format!("--state: {error}")))?;
        Ok(Some(runs))
    }

    /// The folder, which has to be given.
    pub fn required(&self) -> Result<PathBuf, Abort> {
        self.folder()?.ok_or_else(|| Abort::usage("--state DIR says where the runs are"))
    }
}
