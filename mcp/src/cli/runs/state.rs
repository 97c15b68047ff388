//! Flags that choose where runs are stored (`--state`: a folder or a database), so that another process can continue
//! them after an interruption. Also opens that store; `--lease` and `--state-patience` are for databases.

use crate::cli::flags::limits::parser;
use crate::cli::flags::variables;
use ptc_base::store::{EmbeddedStore, PostgresStore, StoreError, password_in};
use ptc_calls::journal::{DurableRuns, RunHolder};
use ptc_calls::limits::Unit;
use ptc_server::console::Abort;
use ptc_server::redact;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a run stays with a node that has died, if `--lease` does not say.
pub(in crate::cli) const LEASE: Duration = Duration::from_secs(30);

/// How long a call waits for a database that is away, if `--state-patience` does not say.
pub(in crate::cli) const PATIENCE: Duration = Duration::from_secs(10);

/// Flags of commands with stored runs.
#[derive(Debug, clap::Args)]
pub struct StateFlags {
    /// Store runs that change something in this folder, so that they outlive this process: `ptc runs` shows those that
    /// were interrupted, and goes on with them. It holds real data and is readable for this user only.
    /// `postgres://USER@HOST/DATABASE` is a database that many processes share
    #[arg(long, value_name = "DIR|URL")]
    state: Option<String>,
    /// How long a run stays with a process that has died, when processes share a database [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    lease: Option<u64>,
    /// How long a call that may change something waits for a database that is away, before it fails with
    /// `:state_unavailable`; the program's time goes on [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    state_patience: Option<u64>,
}

/// Where runs are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateLocation {
    /// A folder, which one process has at a time.
    Folder(PathBuf),
    /// The address of a database. It may hold a password.
    Database(String),
}

impl StateLocation {
    /// Reads the value of `--state`. A password in it is a secret from here on.
    ///
    /// # Errors
    /// It is an address of something else. The message does not quote it.
    pub fn new(text: &str) -> Result<StateLocation, String> {
        if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            if let Some(password) = password_in(text) {
                let _ = redact::secrets().register(&password);
            }
            // As it stands in the address, with percent signs.
            let written = text.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
            if let Some((_, password)) = written.and_then(|(user, _)| user.split_once(':')) {
                let _ = redact::secrets().register(password);
            }
            return Ok(StateLocation::Database(text.to_owned()));
        }
        match text.contains("://") {
            true => Err("it is neither a folder nor an address that begins with postgres://".to_owned()),
            false => Ok(StateLocation::Folder(text.into())),
        }
    }

    /// The folder, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            StateLocation::Folder(folder) => Some(folder),
            StateLocation::Database(_) => None,
        }
    }
}

/// The stored runs of a place. It must be called on a tokio runtime.
pub(in crate::cli) async fn open(
    location: &StateLocation,
    lease: Duration,
    patience: Duration,
) -> Result<DurableRuns, StoreError> {
    match location {
        StateLocation::Folder(folder) => {
            Ok(DurableRuns::new(Arc::new(EmbeddedStore::open(folder)?), RunHolder::only()))
        }
        StateLocation::Database(url) => {
            Ok(DurableRuns::new(Arc::new(PostgresStore::open(url).await?), RunHolder::node(lease, patience)))
        }
    }
}

impl StateFlags {
    /// These flags, or those if these are not given.
    pub fn or(self, other: StateFlags) -> StateFlags {
        StateFlags {
            state: self.state.or(other.state),
            lease: self.lease.or(other.lease),
            state_patience: self.state_patience.or(other.state_patience),
        }
    }

    /// Where runs are stored; `None`: nowhere.
    pub fn location(&self) -> Result<Option<StateLocation>, Abort> {
        let state = variables::given_or_read(self.state.clone(), "state", variables::text)?;
        let location = state.as_deref().map(StateLocation::new).transpose();
        location.map_err(|why| Abort::usage(format!("--state: {why}")))
    }

    /// How long a run stays with a process that has died.
    pub fn lease(&self) -> Result<Duration, Abort> {
        let given = variables::given_or_read(self.lease, "lease", parser(Unit::Millis))?;
        match given.map(Duration::from_millis) {
            Some(time) if time < Duration::from_secs(1) => {
                Err(Abort::usage("--lease is at least 1s: a database may take that long to answer"))
            }
            given => Ok(given.unwrap_or(LEASE)),
        }
    }

    /// How long a call waits for a database that is away.
    pub fn patience(&self) -> Result<Duration, Abort> {
        let given = variables::given_or_read(self.state_patience, "state-patience", parser(Unit::Millis))?;
        Ok(given.map_or(PATIENCE, Duration::from_millis))
    }

    /// The stored runs, if they are stored. It must be called on a tokio runtime.
    pub async fn runs(&self) -> Result<Option<DurableRuns>, Abort> {
        let Some(location) = self.location()? else { return Ok(None) };
        let runs = open(&location, self.lease()?, self.patience()?).await;
        Ok(Some(runs.map_err(|error| Abort::usage(format!("--state: {error}")))?))
    }

    /// Where runs are stored, which has to be given.
    pub fn required(&self) -> Result<StateLocation, Abort> {
        self.location()?.ok_or_else(|| Abort::usage("--state DIR says where the runs are"))
    }
}
