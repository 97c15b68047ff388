//! A server that is a child process and speaks on its standard input and output, a message a line.
//!
//! - [`spec`]: how it is started. [`link`](mod@link): its life, and its end. [`peer`]: requests and answers.
//! - [`outbox`]: lines on their way to it. [`line`](mod@line), [`frames`]: what comes from it. [`stderr`]: what it says beside.
//! - [`group`], [`kin`], [`guardian`]: what it has started ends with it, and with us.
//! - [`advice`]: what people can do about a start that failed.

pub(crate) mod advice;
mod frames;
mod group;
mod guardian;
mod kin;
mod line;
mod link;
mod outbox;
mod peer;
mod spec;
mod stderr;

pub use guardian::{Guardian, forget_companion, spawn_companion};
pub(crate) use spec::is_inherited;
pub use spec::{Environment, StdioSpec, resolve_command};

use super::{Link, PeerEvents, Transport};
use crate::secrets::SecretRegistry;
use link::StdioLink;
use std::sync::Arc;

/// Starts the processes of one server.
pub(crate) struct StdioTransport {
    name: Arc<str>,
    spec: StdioSpec,
    guardian: Arc<Guardian>,
    secrets: SecretRegistry,
}

impl StdioTransport {
    pub(crate) fn new(
        name: Arc<str>,
        spec: StdioSpec,
        guardian: Arc<Guardian>,
        secrets: SecretRegistry,
    ) -> StdioTransport {
        StdioTransport { name, spec, guardian, secrets }
    }
}

#[async_trait::async_trait]
impl Transport for StdioTransport {
    async fn open(&self, events: Arc<PeerEvents>) -> Result<Box<dyn Link>, String> {
        Ok(Box::new(StdioLink::spawn(self, events)?))
    }

    fn describe(&self) -> String {
        self.spec.command_line()
    }
}
