//! What executes scripts. An engine has processes of its own: nothing that a script does may hurt this one.
//!
//! # Layout
//! - [`cpython`]: the machine's `python3`, forked for each script, in a jail of the kernel
//! - [`monty`]: a subset of Python, in processes of our own binary
//! - `filter`: the system calls that both have
//! - `conversation`: the lines of one script: calls, replies, its output

mod conversation;
pub mod cpython;
mod filter;
#[cfg(feature = "monty")]
pub mod monty;

use crate::host::Host;
use async_trait::async_trait;
use ptc_runtime::outcome::Failure;
use std::sync::Arc;

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its text.
    pub code: Arc<str>,
    /// Bytes of output that are kept.
    pub output_bytes: usize,
}

/// What a script that ended well has printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// True when there was more.
    pub cut: bool,
    /// What should be known beside it, a line each.
    pub notes: Vec<String>,
}

/// Executes scripts.
#[async_trait]
pub trait Engine: Send + Sync {
    /// What it is, for operators: name, version, and the layers that hold its scripts.
    fn describe(&self) -> String;

    /// What its scripts cannot do, for whoever writes them; `None` for all of Python.
    fn lacks(&self) -> Option<&'static str> {
        None
    }

    /// One for whoever may not know what this one's scripts are told: what a script can find out about the memory that it
    /// begins with has nothing of theirs in it.
    fn apart(self: Arc<Self>) -> Arc<dyn Engine>;

    /// Executes a script to its end. Dropping the future ends its process.
    ///
    /// # Errors
    /// Why there is no output: it raised, was killed, or could not be started.
    async fn run(&self, script: Script, host: Arc<Host>) -> Result<Printed, Failure>;

    /// A process whose namespace scripts share, with the functions that there are now.
    ///
    /// # Errors
    /// It could not be started.
    async fn namespace(&self, host: &Host) -> Result<Box<dyn Namespace>, Failure>;
}

/// A process that is kept between scripts, with what they have defined. Dropping it ends the process.
#[async_trait]
pub trait Namespace: Send {
    /// Executes a script in it. Whoever drops the future has to drop the namespace.
    ///
    /// # Errors
    /// As [`Engine::run`]. What the script has defined until then is kept.
    async fn run(&mut self, script: &Script, host: &Arc<Host>) -> Result<Printed, Failure>;

    /// False when its process is of no more use.
    fn is_alive(&self) -> bool;
}
