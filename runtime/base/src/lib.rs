//! Foundations that the crates of `ptc-runtime` share: files, background tasks, secrets, stores, an HTTP client, OAuth
//! logins and JSON Web Tokens.
//!
//! An application uses `ptc-runtime`, which re-exports what is stable. Items of this crate change with the crates
//! above it.
//!
//! # Layout
//!
//! Imports run one way, from top to bottom.
//!
//! - [`jwt`]: tokens that issuers have signed, and their verification.
//! - [`oauth`]: logins at servers, and their tokens.
//! - [`store`]: where state that outlives a process is stored.
//! - [`net`]: the HTTP client.
//! - [`spill`]: writes results that are too large to carry to files.
//! - [`memory`]: gives memory back that nothing uses.
//! - [`process`]: hides the process from programs that it starts; gives up rights of a thread.
//! - [`strict_json`]: JSON without members that occur twice. [`yaml`]: YAML 1.2.
//! - [`digest`]: SHA-256, and bytes as hexadecimal text.
//! - `named`: enums made from a table of names.
//! - [`secrets`]: what must not leave the process.
//! - [`files`]: opens, creates and replaces files that people name.
//! - [`tasks`]: spawned tasks and blocking work, each with an owner.
//! - [`panics`]: catches panics of an application's work.
//! - [`sync`]: locks that outlive a panic.

#[cfg(not(unix))]
compile_error!(
    "ptc-runtime needs Unix: processes of servers, signals and permissions of files. On Windows, build it in WSL."
);

pub mod digest;
pub mod files;
pub mod jwt;
pub mod memory;
mod named;
pub mod net;
pub mod oauth;
pub mod panics;
pub mod process;
pub mod secrets;
pub mod spill;
pub mod store;
pub mod strict_json;
pub mod sync;
pub mod tasks;
pub mod yaml;
