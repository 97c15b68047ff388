//! The interface of engines, which execute scripts in processes of their own, so that a script cannot damage
//! this process.
//!
//! # Layout
//! - [`cpython`]: the machine's `python3`, forked for each script, in a jail of the kernel
//! - `monty` (feature): a subset of Python, in processes of this binary
//! - `filter`: the system calls that both allow
//! - `conversation`: the protocol with the process of a script: calls, replies, output

mod conversation;
pub mod cpython;
mod filter;
#[cfg(feature = "monty")]
pub mod monty;

use crate::host::Host;
use async_trait::async_trait;
use ptc_calls::outcome::Failure;
use std::sync::Arc;

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The source text.
    pub code: Arc<str>,
    /// Most bytes of output.
    pub output_bytes: usize,
}

/// The output of a script that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptOutput {
    /// The text.
    pub text: String,
    /// Whether the output was longer than the limit.
    pub cut: bool,
    /// Further notes, a line each.
    pub notes: Vec<String>,
}

/// Executes scripts.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Name, version and isolation layers, for operators.
    fn describe(&self) -> String;

    /// What the engine lacks, for authors of scripts; `None` for all of Python.
    fn lacks(&self) -> Option<&'static str> {
        None
    }

    /// An engine for other owners. What a script can read of its initial memory holds nothing of this
    /// engine's scripts.
    fn for_other_owners(self: Arc<Self>) -> Arc<dyn Engine>;

    /// Executes a script to its end. Dropping the future ends its process.
    ///
    /// # Errors
    /// Why there is no output: the script raised, was killed, or could not be started.
    async fn run(&self, script: Script, host: Arc<Host>) -> Result<ScriptOutput, Failure>;

    /// Starts a process with a shared namespace and the current functions.
    ///
    /// # Errors
    /// The process cannot be started.
    async fn namespace(&self, host: &Host) -> Result<Box<dyn Namespace>, Failure>;
}

/// A process with a namespace that several scripts share. Dropping it ends the process.
#[async_trait]
pub trait Namespace: Send {
    /// Executes a script in the namespace. If the future is dropped, the namespace must be dropped too.
    ///
    /// # Errors
    /// As [`Engine::run`]. Definitions made before the error remain.
    async fn run(&mut self, script: &Script, host: &Arc<Host>) -> Result<ScriptOutput, Failure>;

    /// Whether the process can run another script.
    fn is_alive(&self) -> bool;
}
