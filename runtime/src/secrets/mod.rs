//! What must not leave the process, and the one way text is cleaned of it.
//!
//! # Layout
//!
//! - [`SecretRegistry`] (`registry`): every known secret, shared by all who send text out.
//! - [`Credential`] (`credential`): a value that registers itself when it is made.
//! - `forms`: what to look for because of one secret. `canonical`: text without what escaping, quoting and
//!   joining do to it. `finder`: where secrets stand in a text. `fragments`: parts of those that look like keys.
//! - [`CleanText`] (`clean`): text that has been cleaned, by type. `excerpt`: the beginning of a text.
//! - [`DocumentShape`] (`document`): secrets in JSON text that has to stay what it is.
//! - [`names`]: which variables and arguments hold secrets that nobody declared as such.
//!
//! Text is cleaned twice. Where it is made it is cleaned whole, before anything is cut: the end of a run in
//! `rendering::release`, tool lists when they are read, errors and stderr of upstreams when they arrive. And
//! each stream that leaves the process is cleaned by its writer, which nothing can go around. Whatever is cut in
//! between is cut by `excerpt`: behind a cleaning, or with an ellipsis, before which a part of a secret counts as one.
//!
//! What a program computes with, and what is sent to an upstream, is never altered.
//!
//! Invariant: nothing that holds a credential implements `Debug`, `Display` or `Serialize`.

mod canonical;
mod clean;
mod credential;
mod document;
mod excerpt;
mod finder;
mod forms;
mod fragments;
pub mod names;
mod registry;

pub use clean::CleanText;
pub use credential::Credential;
pub use document::{DocumentShape, KeyClass};
pub use excerpt::{Cut, dotted, shortened};
pub use registry::{Protection, SecretRegistry};

/// What replaces a secret.
pub const REDACTED: &str = "[REDACTED]";
