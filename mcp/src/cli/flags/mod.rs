//! Defines the groups of command-line flags of `ptc`, most of which several commands share.
//!
//! # Layout
//!
//! - [`limits`]: one flag for each row of a limit table: those of a program, and those of [`server`].
//! - [`session`]: sessions, their quotas and limits. [`debug`]: recorded calls and traces.
//! - [`files`]: files that callers may name. [`proxy`]: `proxy-dispatch`. [`python`]: scripts. [`agentic`]:
//!   tasks.
//! - [`http`]: addresses, access and TLS of `ptc serve --http`.
//! - [`program`]: flags of commands that run programs. [`source`]: programs and contexts. [`prelude`]:
//!   preludes.
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
