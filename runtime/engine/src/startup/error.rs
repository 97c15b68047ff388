//! Defines the errors that keep a runtime from starting, such as two servers of the same name or the failure of a
//! required server.

use ptc_calls::policy::PolicyError;
use std::fmt;

/// Why a runtime did not start.
#[derive(Debug)]
pub enum StartError {
    /// A configured command is this very program.
    SelfAsUpstream {
        /// The server.
        server: String,
    },
    /// Two servers have one name.
    DuplicateServer {
        /// The name.
        server: String,
    },
    /// A tool of the host cannot be called by programs; the reason.
    Tool(String),
    /// Two preludes have a namespace of this name.
    Prelude(String),
    /// Strict servers that did not start, with the reason of each.
    Upstreams(Vec<(String, String)>),
    /// A rule of the policy names a server that is not configured.
    Policy(PolicyError),
    /// No thread could be started.
    Threads(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::SelfAsUpstream { server } => {
                write!(f, "upstream {server}: its command is this program itself, which is not allowed")
            }
            StartError::DuplicateServer { server } => write!(f, "upstream {server} is configured twice"),
            StartError::Tool(why) | StartError::Prelude(why) => f.write_str(why),
            StartError::Upstreams(failed) => {
                for (at, (server, error)) in failed.iter().enumerate() {
                    let newline = if at > 0 { "\n" } else { "" };
                    write!(f, "{newline}upstream {server} could not start: {error}")?;
                }
                Ok(())
            }
            StartError::Policy(error) => write!(f, "{error}"),
            StartError::Threads(error) => write!(f, "cannot start worker threads: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
