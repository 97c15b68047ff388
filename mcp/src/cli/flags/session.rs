//! Flags of `ptc serve` for sessions, which keep the values of one program for the next: whether they are offered,
//! their quotas and limits.

use super::limits::{FlagTable, LimitFlags};
use ptc_engine::session::SessionLimits;
use ptc_server::console::Abort;
use ptc_server::tools::session::SessionQuotas;

impl FlagTable for SessionQuotas {}
impl FlagTable for SessionLimits {}

/// Flags of sessions.
#[derive(Debug, clap::Args)]
pub struct SessionFlags {
    /// Offer sessions: tools with which programs build on each other
    #[arg(long)]
    sessions: bool,
    #[command(flatten)]
    quotas: LimitFlags<SessionQuotas>,
    #[command(flatten)]
    limits: LimitFlags<SessionLimits>,
}

impl SessionFlags {
    /// Whether all session tools are enabled.
    pub fn wants_tools(&self) -> Result<bool, Abort> {
        super::variables::switch(self.sessions, "sessions")
    }

    /// The quotas of sessions, and the limits of each.
    pub fn bounds(&self) -> Result<(SessionQuotas, SessionLimits), Abort> {
        Ok((self.quotas.limits(false)?, self.limits.limits(false)?))
    }
}
