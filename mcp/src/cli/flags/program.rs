//! Flags of commands that run programs: what these may call, and within which limits.

use super::limits::LimitFlags;
use super::prelude::PreludeFlags;
use crate::cli::boot::{Booted, Need, UpstreamFlags, boot_servers, boot_with};
use crate::console::exit::Abort;
use ptc_runtime::config::ServerEntry;
use ptc_runtime::limits::Limits;

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
    /// Starts what programs run in, and says within which limits each does.
    pub async fn boot(&self, need: Need<'_>, workers: usize) -> Result<(Booted, Limits), Abort> {
        let booted = boot_with(&self.upstreams, self.preludes.prelude()?, need, workers).await?;
        let limits = self.limits.limits(booted.has_upstreams)?;
        Ok((booted, limits))
    }

    /// [`ProgramFlags::boot`] with these servers in place of those that are configured.
    pub async fn boot_servers(&self, servers: Vec<ServerEntry>) -> Result<(Booted, Limits), Abort> {
        let booted = boot_servers(servers, self.preludes.prelude()?).await?;
        Ok((booted, self.limits.limits(true)?))
    }
}
