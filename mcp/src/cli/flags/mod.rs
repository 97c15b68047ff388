//! Flags that several commands take.
//!
//! # Layout
//!
//! - [`limits`]: one flag for each row of a table of limits: those of a program, and [`server`]'s.
//! - [`session`]: whether and how many sessions there are. [`debug`]: what is remembered of calls.
//! - [`files`]: files that callers may name, and tools that look into them.
//! - [`http`]: where `ptc serve --http` listens, and who gets in.
//! - [`program`]: what commands take that run programs. [`source`]: where programs and contexts come from.
//! - [`catalog`]: flags of the tool list in the description of `lisp_eval`.
//! - [`variables`]: flags as environment variables.

pub mod agentic;
pub mod catalog;
pub mod debug;
pub mod files;
pub mod http;
pub mod limits;
pub mod prelude;
pub mod program;
pub mod proxy;
pub mod python;
pub mod server;
pub mod session;
pub mod source;
pub mod variables;
