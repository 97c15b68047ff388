//! Runs Python scripts that call MCP tools, in processes other than this one, under limits of time, memory, output and
//! calls. It uses the tool broker, and knows neither MCP nor PTC-Lisp.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`guest`]: a script as a run, which waits for the engine and ends with the script.
//! - [`mod@replay`]: recorded scripts that run again.
//! - [`engine`]: executes scripts in processes of their own; `engine/cpython`: the machine's `python3` in a
//!   jail; `engine/monty`: an interpreter for a subset, in workers.
//! - [`host`]: the host functions of a script: tool calls through the broker, and discovery.
//! - `requests`: the functions for resources and prompts.
//! - [`reply`]: what a script receives of a result.
//! - [`received`]: the output that a running script has sent so far.
//! - [`retained`]: spilled results that scripts read in parts.
//! - [`functions`]: the tools as Python functions, with names and parameters.
//! - [`output`]: the texts of answers to the client.
//!
//! Architecture invariant: everything that a script's process writes is untrusted. It is bounded before it is
//! read, and the exit status comes from the system.

#![forbid(unsafe_code)]

pub mod engine;
pub mod functions;
pub mod guest;
pub mod host;
pub mod output;
pub mod received;
pub mod replay;
pub mod reply;
mod requests;
pub mod retained;
