//! Defines the flags common to commands that run Lisp programs (upstream servers, libraries, limits), and starts the
//! runtime that they configure.

use super::limits::LimitFlags;
use super::prelude::PreludeFlags;
use crate::cli::boot::{Booted, Need, UpstreamFlags, boot_servers, boot_with};
use ptc_calls::journal::Recorder;
use ptc_calls::limits::Limits;
use ptc_server::console::Abort;
use ptc_upstream::config::ServerEntry;

/// Flags of programs.
#[derive(Debug, clap::Args)]
pub struct ProgramFlags {
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl ProgramFlags {
    /// Records runs.
    pub fn record(&mut self, recorder: Option<Recorder>) {
        self.upstreams.recorder = recorder;
    }

    /// Starts the runtime. Returns it with the limits of each program.
    pub async fn boot(&self, need: Need<'_>, workers: usize) -> Result<(Booted, Limits), Abort> {
        let booted = boot_with(&self.upstreams, self.preludes.prelude()?, need, workers).await?;
        let limits = self.limits.limits(booted.has_upstreams)?;
        Ok((booted, limits))
    }

    /// [`ProgramFlags::boot`] with these servers instead of the configured ones.
    pub async fn boot_servers(&self, servers: Vec<ServerEntry>) -> Result<(Booted, Limits), Abort> {
        let booted = boot_servers(servers, self.preludes.prelude()?).await?;
        Ok((booted, self.limits.limits(true)?))
    }
}
