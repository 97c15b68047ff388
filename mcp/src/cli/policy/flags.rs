//! Flags of the policy: the files that say which calls may be made.

use crate::cli::flags::variables;
use crate::console::exit::Abort;
use ptc_runtime::policy::{Policy, PolicyError};
use std::path::PathBuf;
use std::sync::Arc;

/// Flags of the policy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyFlags {
    /// File with rules for calls (TOML): what may be called, with which arguments, by whom, and what a person has to
    /// approve; may be given several times, then the strictest file decides
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
}

impl PolicyFlags {
    /// The files of the policy.
    pub fn files(&self) -> Result<Vec<PathBuf>, Abort> {
        if !self.policy.is_empty() {
            return Ok(self.policy.clone());
        }
        let paths = |text: &str| Ok(std::env::split_paths(text).collect::<Vec<_>>());
        Ok(variables::read("policy", paths)?.unwrap_or_default())
    }

    /// The policy; `None`: there is none.
    pub fn load(&self) -> Result<Option<Arc<Policy>>, Abort> {
        let files = self.files()?;
        match files.is_empty() {
            true => Ok(None),
            false => Ok(Some(Arc::new(Policy::load(&files).map_err(|error| refused(&error))?))),
        }
    }
}

/// The error of a policy that cannot be used.
pub fn refused(error: &PolicyError) -> Abort {
    Abort::usage(format!("policy {error}"))
}
