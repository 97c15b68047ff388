//! Connects to MCP servers that run as child processes and exchange one message per line over standard input and
//! output.
//!
//! - [`spec`]: how it is started. [`connection`]: its life. [`channel`]: requests and answers, matched by id.
//! - [`outbox`]: messages on their way to it. [`line`](mod@line), [`frames`]: what comes from it. [`stderr`]: its log.
//!   [`said`]: output that explains a failed start.
//! - [`group`], [`kin`], [`guardian`]: what it has started ends with it, and with this process.
//! - [`attached`]: a server that another process keeps running.
//! - [`advice`]: what people can do about a start that failed.

pub(crate) mod advice;
mod attached;
mod channel;
mod connection;
mod frames;
mod group;
mod guardian;
pub(super) mod kin;
mod line;
mod outbox;
mod said;
mod spec;
mod stderr;

pub use attached::{ATTACHED, AttachedSpec};
pub use guardian::Guardian;
pub(crate) use spec::is_inherited;
pub use spec::{Environment, StdioSpec, resolve_command};

use super::{ConnectContext, Connection, Location, Transport, path_text};
use crate::UpstreamFault;
use connection::StdioConnection;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[async_trait::async_trait]
impl Transport for StdioSpec {
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        Ok(Arc::new(StdioConnection::spawn(self, context)?))
    }

    fn describe(&self) -> String {
        self.command_line()
    }

    fn descriptor(&self) -> Value {
        let mut variables: Vec<&str> = self.variables.iter().map(|(name, _)| &**name).collect();
        variables.sort_unstable();
        let folder = self.directory.as_deref().map(path_text);
        json!({ "type": "stdio", "command": self.command, "args": self.arguments, "env": variables, "cwd": folder })
    }

    /// With the working folder: arguments may name files in it, and programs look there for their packages.
    fn identity(&self) -> Value {
        let mut variables: Vec<_> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        variables.sort_unstable();
        let folder = std::path::absolute(self.directory.as_deref().unwrap_or(Path::new("."))).ok();
        json!({ "descriptor": self.descriptor(), "folder": folder.as_deref().map(path_text), "env": variables })
    }

    fn locate(&self) -> Location {
        Location { kind: "command", place: self.resolve().map(|path| path.display().to_string()) }
    }

    fn remedy(&self, error: &str) -> String {
        advice::of_start(error, &self.command_line())
    }

    fn remedy_of_slow_start(&self, patience: Duration) -> String {
        advice::of_slow_start(&format!("raise handshake_timeout_ms (now {})", patience.as_millis()))
    }

    fn runs(&self, program: &Path) -> bool {
        let theirs = self.resolve().and_then(|path| path.canonicalize().ok());
        theirs.is_some_and(|theirs| theirs == program)
    }
}
