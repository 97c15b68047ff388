//! Defines transports, the ways to reach a server: as a child process, over HTTP, or locally, for tools that the
//! configuration itself defines. A [`Transport`] connects; its [`Connection`] carries requests and results. It starts
//! nothing again and stores no tool list: the [supervisor](super::supervisor) does, once for all transports.
//!
//! A new transport is a folder here with a specification that implements [`Transport`], and a line in the table of
//! transports of `config`.
//!
//! - [`connection`]: the trait of a server that was reached. [`events`]: what a server says unasked. [`questions`]: what it
//!   asks the client. [`listings`]: the loads of its tool list.
//! - [`stdio`]: a child process. [`http`]: a remote server. [`local`]: tools that the configuration defines.
//!   [`unusable`]: an entry that cannot be used.
//! - [`companions`]: children of this process that are no servers.
//! - [`life`]: whether a connection without a process may be used.
//! - [`pace`], [`throttle`]: how fast a server is listened to and logged.

pub(crate) mod companions;
pub(crate) mod connection;
pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod life;
pub(crate) mod listings;
pub(crate) mod local;
pub(crate) mod pace;
mod questions;
pub(crate) mod stdio;
pub(crate) mod throttle;
pub(crate) mod unusable;

pub(super) use connection::MayList;
pub use connection::{Connection, ConnectionEnd, Opened, Opening};
pub use events::ServerEvents;

use crate::{Guardian, UpstreamFault};
use ptc_base::oauth::{LoginOptions, ServerLogin};
use ptc_base::secrets::SecretRegistry;
use serde_json::{Value, json};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How one server is reached: its specification in the configuration. May hold resolved secrets, so what implements
/// this implements neither `Debug` nor `Serialize`.
#[async_trait::async_trait]
pub trait Transport: Any + Send + Sync {
    /// Reaches the server, without a word of MCP: a process is started, an address looked up. What the server says
    /// unasked goes to the events for as long as the connection lives. Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// Why the server cannot be reached; secrets in it are taken out later.
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault>;

    /// The login at the server, for a transport that has logins.
    ///
    /// # Errors
    /// Its client cannot be made.
    async fn login(
        &self,
        _options: LoginOptions,
        _secrets: &SecretRegistry,
    ) -> Result<Option<ServerLogin>, String> {
        Ok(None)
    }

    /// True where each caller of a shared process has a login of its own.
    fn has_login_of_callers(&self) -> bool {
        false
    }

    /// Where the server is, as a person would write it: a command line, an address. Secrets in it are scrubbed later.
    fn describe(&self) -> String;

    /// Its connections carry messages of MCP, so a session of MCP wraps them.
    fn speaks_mcp(&self) -> bool {
        true
    }

    /// How the server is reached, as data: names of variables and headers without their values. The same for the same
    /// configuration. Other secrets in it are scrubbed later.
    fn descriptor(&self) -> Value {
        json!({ "type": "custom", "address": self.describe() })
    }

    /// Where the server is, as `ptc.lock` names it: the origin of an address, since its path may hold a token; else the
    /// kind of the entry.
    fn origin(&self) -> String {
        let descriptor = self.descriptor();
        match descriptor["url"].as_str().and_then(|url| Url::parse(url).ok()) {
            Some(url) => url.origin().ascii_serialization(),
            None => descriptor["type"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Everything that decides which server answers and for which account, as data. It holds secrets: only a keyed digest
    /// of it leaves the process.
    fn identity(&self) -> Value {
        self.descriptor()
    }

    /// Looks for the server at this moment, without starting it.
    fn locate(&self) -> Location {
        Location { kind: "address", place: Some(self.describe()) }
    }

    /// Why the configuration of the server cannot be used.
    fn why_unusable(&self) -> Option<&str> {
        None
    }

    /// What to do about a start that failed with this text.
    fn remedy(&self, _error: &str) -> String {
        format!("check that an MCP server answers at {}", self.describe())
    }

    /// What to do about a start that took most of the time it may take.
    fn remedy_of_slow_start(&self, patience: Duration) -> String {
        format!("raise handshake_timeout_ms (now {})", patience.as_millis())
    }

    /// Its tools are those of a document, which is read without asking the service for anything else.
    fn is_document(&self) -> bool {
        false
    }

    /// True when it runs this very file.
    fn runs(&self, _program: &Path) -> bool {
        false
    }
}

/// What a transport connects with.
#[derive(Clone)]
pub struct ConnectContext {
    /// Receives what the server says unasked; has the configured name of the server.
    pub events: Arc<ServerEvents>,
    /// Ends processes of the server, if this process is killed.
    pub guardian: Arc<Guardian>,
    /// Where secrets are known.
    pub secrets: SecretRegistry,
    /// Where logins are stored, and what else holds for all of them.
    pub logins: LoginOptions,
}

/// Where a server is, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// What `place` is: `command`, `address`.
    pub kind: &'static str,
    /// Where it was found; `None` when it is not there.
    pub place: Option<String>,
}

/// A path as text. One that is not UTF-8 has its bytes as escapes, so that two paths never have the same text.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_str()
        .map_or_else(|| path.as_os_str().as_encoded_bytes().escape_ascii().to_string(), str::to_owned)
}
