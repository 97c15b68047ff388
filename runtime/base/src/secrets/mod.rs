//! Keeps secrets from leaving the process: registers them and redacts texts.
//!
//! # Layout
//!
//! - [`SecretRegistry`] (`registry`): every known secret, shared by all code that sends text out. `owners`: the
//!   servers that secrets belong to.
//! - [`Credential`] (`credential`): a secret value, which registers itself when it is made.
//! - `forms`: the forms of one secret to search for. `canonical`: text with escaping, quoting and joining
//!   undone. `finder`: finds secrets in a text. `fragments`: finds parts of key material.
//! - [`CleanText`] (`clean`): a redacted text. `excerpt`: the beginning of a text.
//! - [`DocumentShape`] (`document`): redacts JSON text that has to stay valid.
//! - [`names`]: recognizes undeclared secrets, by the names that hold them and by their form.
//!
//! Text is redacted twice. The first time is where it arises, before anything is cut: outcomes in
//! `run::release`, tool lists when they are read, errors and stderr of upstreams when they arrive. The second
//! time is in the writer of each stream that leaves the process, which no code bypasses. In between, texts
//! are cut only by `excerpt`: after redaction, or with an ellipsis, so that a part of a secret in front of it
//! is recognized.
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
mod owners;
mod registry;

pub use clean::CleanText;
pub use credential::Credential;
pub use document::{DocumentShape, KeyClass};
pub use excerpt::{Cut, dotted, shortened};
pub use registry::{Protection, SecretRegistry};

/// What replaces a secret.
pub const REDACTED: &str = "[REDACTED]";
