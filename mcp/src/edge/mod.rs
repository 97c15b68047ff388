//! The edge of the process: whatever is written to standard output or standard error passes here, and nothing
//! that passes has a secret in it, and whatever a person reads nothing that a terminal would obey.
//!
//! # Layout
//!
//! - [`Filtered`] (`filtered`): a stream that can only be written through the scrubber. The writer thread of
//!   `ptc serve`, the output of `ptc batch`, the console and the log take no other.
//! - [`CleanBytes`] (`payload`): the same for what is sent over sockets of ours: the bodies of `ptc serve --http`.
//! - `visible`: which reader sees characters as they are.
//! - [`shapes`]: what of our messages is protocol and not text.
//!
//! Architecture invariant: no other module of this crate names the standard streams (`mcp/clippy.toml` refuses
//! it), so a new way out has to begin with [`stdout`] or [`stderr`].

mod filtered;
mod payload;
pub mod shapes;
mod visible;

pub use filtered::{Filtered, Form};
pub use payload::CleanBytes;
pub use ptc_runtime::tools::visible::{is_shown, visible, visible_line};

use visible::Reader;

use ptc_runtime::secrets::{Cut, SecretRegistry};
use std::borrow::Cow;
use std::io::{IsTerminal, Stderr, Stdout};
use std::sync::LazyLock;

/// Secrets of this process. The standard streams are the process's, and so is what must not be written to them:
/// a log line that is written before or beside a runtime has no other way of knowing.
static SECRETS: LazyLock<SecretRegistry> = LazyLock::new(SecretRegistry::new);

/// The secrets that no standard stream lets through.
pub fn secrets() -> &'static SecretRegistry {
    &SECRETS
}

/// The beginning of a text that somebody will read: cleaned, and cut then.
pub fn excerpt(text: &str, room: Cut) -> Cow<'_, str> {
    secrets().excerpt(text, room)
}

/// Bytes for a client on a socket.
pub fn clean(bytes: Vec<u8>, form: Form) -> CleanBytes {
    CleanBytes::new(bytes, form, secrets())
}

/// Standard output.
#[expect(clippy::disallowed_methods, reason = "the one place where it is opened")]
pub fn stdout(form: Form) -> Filtered<Stdout> {
    Filtered::new(std::io::stdout(), form, secrets().clone()).read_by(reader(form, stdout_is_terminal()))
}

/// Standard error.
#[expect(clippy::disallowed_methods, reason = "the one place where it is opened")]
pub fn stderr(form: Form) -> Filtered<Stderr> {
    Filtered::new(std::io::stderr(), form, secrets().clone()).read_by(reader(form, stderr_is_terminal()))
}

fn reader(form: Form, is_terminal: bool) -> Reader {
    match form {
        Form::Text => Reader::Person { colours: is_terminal },
        Form::Data | Form::Json(_) if is_terminal => Reader::Person { colours: false },
        Form::Data | Form::Json(_) => Reader::Program,
    }
}

/// True when a person reads standard output.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True when a person reads standard error.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
