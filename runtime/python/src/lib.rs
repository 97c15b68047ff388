//! Runs Python scripts next to MCP tools: a guest of the tool broker that knows neither MCP nor PTC-Lisp.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`guest`]: a script as a run: its turns are waiting for the engine, its end is that of the run.
//! - [`engine`]: what executes scripts, in processes of its own; `engine/cpython`: the machine's `python3` in a jail;
//!   `engine/monty`: an interpreter of a subset, in workers.
//! - [`host`]: what a script reaches: tool calls through the broker, nothing else.
//! - [`heard`]: what a script has written until now.
//! - [`kept`]: results that are too large to be carried, as scripts look into them.
//! - [`functions`]: the tools as functions of Python: their names and parameters.
//! - [`output`]: the texts that whoever sent a script gets.
//!
//! Architecture invariant: whatever a script's process writes is untrusted. It is bounded before it is read, and how
//! the process ended is known from the system.

#![forbid(unsafe_code)]

pub mod engine;
pub mod functions;
pub mod guest;
pub mod heard;
pub mod host;
pub mod kept;
pub mod output;
