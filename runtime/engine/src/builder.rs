//! Collects the settings of a [`Runtime`] (host tools, preludes, servers, number of workers) and starts it.

use crate::guest::lisp::prelude::Prelude;
use crate::runtime::Runtime;
use crate::startup::RuntimeConfig;
use crate::startup::StartError;
use ptc_calls::host::HostTool;
use ptc_upstream::config::{Config, ConfigError, ServerEntry};
use std::path::Path;
use std::sync::Arc;

/// Builds a [`Runtime`]; see [`Runtime::builder`]. Settings without a method are fields of
/// [`RuntimeBuilder::config`].
#[derive(Clone, Default)]
pub struct RuntimeBuilder {
    /// All settings.
    pub config: RuntimeConfig,
}

impl Runtime {
    /// A builder with default settings.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }
}

impl RuntimeBuilder {
    /// Gives programs a function of the application.
    #[must_use]
    pub fn tool(mut self, tool: HostTool) -> RuntimeBuilder {
        self.config.tools.push(tool);
        self
    }

    /// Gives programs a namespace.
    #[must_use]
    pub fn prelude(mut self, prelude: Arc<Prelude>) -> RuntimeBuilder {
        self.config.preludes.push(prelude);
        self
    }

    /// Gives programs the servers of a configuration file.
    ///
    /// # Errors
    /// The file cannot be read or is invalid; the error has the location.
    pub fn upstreams(self, file: impl AsRef<Path>) -> Result<RuntimeBuilder, ConfigError> {
        let config = Config::load(file.as_ref(), &self.config.secrets)?;
        Ok(self.servers(config))
    }

    /// [`RuntimeBuilder::upstreams`] for the text of such a file, in JSON.
    ///
    /// # Errors
    /// As [`RuntimeBuilder::upstreams`].
    pub fn upstreams_text(self, text: &str) -> Result<RuntimeBuilder, ConfigError> {
        let config = Config::parse(text, "upstreams.json", &self.config.secrets)?;
        Ok(self.servers(config))
    }

    fn servers(mut self, config: Config) -> RuntimeBuilder {
        self.config.servers.extend(config.servers);
        self
    }

    /// Gives programs a server.
    #[must_use]
    #[doc(hidden)]
    pub fn server(mut self, entry: ServerEntry) -> RuntimeBuilder {
        self.config.servers.push(entry);
        self
    }

    /// How many threads run programs. Default: one per core.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> RuntimeBuilder {
        self.config.workers = workers;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn start(self) -> Result<Runtime, StartError> {
        Runtime::start(self.config).await
    }
}
