//! The transports that there are, as a configuration names them. Everything that depends on which one a server has
//! goes through a method here: nothing outside of `upstream` and `config` takes a [`TransportSpec`] apart.

use super::http::{HttpSpec, HttpTransport};
use super::local::{LocalSpec, LocalTransport};
use super::stdio::{Guardian, StdioSpec, StdioTransport, advice};
use super::{Link, PeerEvents, Transport};
use crate::secrets::SecretRegistry;
use crate::upstream::openapi::{OpenApiSpec, OpenApiTransport};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How one server is reached. May hold resolved secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub enum TransportSpec {
    /// A child process that speaks on its standard input and output.
    Stdio(StdioSpec),
    /// A remote server.
    Http(Box<HttpSpec>),
    /// An entry of a configuration file that cannot be used, and why: a server that never starts.
    Unusable(String),
    /// A plain JSON service with an OpenAPI document.
    OpenApi(Box<OpenApiSpec>),
    /// Tools that the configuration defines.
    Local(Box<LocalSpec>),
    /// A transport of whoever embeds the runtime. No configuration file can name one.
    Custom(Arc<dyn Transport>),
}

/// Where a server is, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// What `place` is: `command`, `address`.
    pub kind: &'static str,
    /// Where it was found; `None` when it is not there.
    pub place: Option<String>,
}

impl TransportSpec {
    /// Its tools are those of a document, which is read without asking the service for anything else.
    pub fn is_document(&self) -> bool {
        matches!(self, TransportSpec::OpenApi(_))
    }

    /// The transport of the server `name`.
    pub(crate) fn transport(
        self,
        name: &Arc<str>,
        guardian: &Arc<Guardian>,
        secrets: &SecretRegistry,
    ) -> Arc<dyn Transport> {
        match self {
            TransportSpec::Stdio(spec) => {
                Arc::new(StdioTransport::new(name.clone(), spec, guardian.clone(), secrets.clone()))
            }
            TransportSpec::Http(spec) => Arc::new(HttpTransport::new(*spec)),
            TransportSpec::Unusable(why) => Arc::new(UnusableTransport(why)),
            TransportSpec::OpenApi(spec) => Arc::new(OpenApiTransport::new(*spec)),
            TransportSpec::Local(spec) => Arc::new(LocalTransport::new(*spec)),
            TransportSpec::Custom(transport) => transport,
        }
    }

    /// How the server is reached, as a person would write it. What it holds of secrets is to be scrubbed.
    pub fn describe(&self) -> String {
        match self {
            TransportSpec::Stdio(spec) => spec.command_line(),
            TransportSpec::Http(spec) => spec.address(),
            TransportSpec::Unusable(why) => why.clone(),
            TransportSpec::OpenApi(spec) => spec.base_url.to_string(),
            TransportSpec::Local(spec) => spec.describe(),
            TransportSpec::Custom(transport) => transport.describe(),
        }
    }

    /// How the server is reached, as data: names of variables and headers without their values. What it holds of
    /// secrets beside those is to be scrubbed. The same for the same configuration.
    pub fn descriptor(&self) -> Value {
        match self {
            TransportSpec::Stdio(spec) => {
                let mut variables: Vec<&str> = spec.variables.iter().map(|(name, _)| &**name).collect();
                variables.sort_unstable();
                json!({ "type": "stdio", "command": spec.command, "args": spec.arguments, "env": variables,
                    "cwd": spec.directory })
            }
            TransportSpec::Http(spec) => {
                json!({ "type": "remote", "url": spec.address(), "headers": spec.headers.names() })
            }
            TransportSpec::OpenApi(spec) => {
                json!({ "type": "openapi", "url": spec.base_url.as_str(), "headers": spec.headers.names(),
                    "operations": spec.include })
            }
            TransportSpec::Local(spec) => {
                let names: Vec<&str> = spec.handlers.iter().map(|handler| &*handler.name).collect();
                json!({ "type": "local", "folder": spec.folder, "handlers": names })
            }
            TransportSpec::Unusable(_) => json!({ "type": "unusable" }),
            TransportSpec::Custom(transport) => json!({ "type": "custom", "address": transport.describe() }),
        }
    }

    /// Why the configuration of the server cannot be used.
    pub fn why_unusable(&self) -> Option<&str> {
        match self {
            TransportSpec::Unusable(why) => Some(why),
            _ => None,
        }
    }

    /// Looks for the server at this moment, without starting it.
    pub fn locate(&self) -> Location {
        match self {
            TransportSpec::Stdio(spec) => {
                let place = spec.resolve().map(|path| path.display().to_string());
                Location { kind: "command", place }
            }
            TransportSpec::Http(spec) => Location { kind: "address", place: Some(spec.address()) },
            TransportSpec::Local(spec) => {
                let place = spec.folder.is_dir().then(|| spec.folder.display().to_string());
                Location { kind: "folder", place }
            }
            TransportSpec::Unusable(_) => Location { kind: "entry", place: None },
            TransportSpec::OpenApi(spec) => {
                Location { kind: "address", place: Some(spec.base_url.to_string()) }
            }
            TransportSpec::Custom(transport) => {
                Location { kind: "address", place: Some(transport.describe()) }
            }
        }
    }

    /// What to do about a start that failed with this text.
    pub fn remedy(&self, error: &str) -> String {
        match self {
            TransportSpec::Stdio(spec) => advice::of_start(error, &spec.command_line()),
            TransportSpec::Http(spec) => spec.remedy(error),
            TransportSpec::Local(_) => "make the folder, or correct the entry".to_owned(),
            TransportSpec::Unusable(_) => "correct the entry".to_owned(),
            TransportSpec::OpenApi(_) => crate::upstream::openapi::remedy(error),
            TransportSpec::Custom(_) => format!("check that an MCP server answers at {}", self.describe()),
        }
    }

    /// What to do about a start that took most of the time it may take.
    pub fn remedy_of_slow_start(&self, patience: Duration) -> String {
        let raise = format!("raise handshake_timeout_ms (now {})", patience.as_millis());
        match self {
            TransportSpec::Stdio(_) => advice::of_slow_start(&raise),
            TransportSpec::OpenApi(_) => format!("{raise}, or set schema_file instead of schema_url"),
            TransportSpec::Http(_)
            | TransportSpec::Local(_)
            | TransportSpec::Unusable(_)
            | TransportSpec::Custom(_) => raise,
        }
    }

    /// True when it runs this very file.
    pub(crate) fn runs(&self, program: &Path) -> bool {
        match self {
            TransportSpec::Stdio(spec) => {
                let theirs = spec.resolve().and_then(|path| path.canonicalize().ok());
                theirs.is_some_and(|theirs| theirs == program)
            }
            TransportSpec::Http(_)
            | TransportSpec::OpenApi(_)
            | TransportSpec::Local(_)
            | TransportSpec::Unusable(_)
            | TransportSpec::Custom(_) => false,
        }
    }
}

/// Reaches nobody, and says why.
struct UnusableTransport(String);

#[async_trait::async_trait]
impl Transport for UnusableTransport {
    fn describe(&self) -> String {
        self.0.clone()
    }

    async fn open(&self, _events: Arc<PeerEvents>) -> Result<Box<dyn Link>, String> {
        Err(self.0.clone())
    }
}
