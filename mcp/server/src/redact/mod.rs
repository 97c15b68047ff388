//! Redacts secrets in everything that the process writes to standard output, standard error and its clients.
//! What a person reads is also freed of characters that a terminal would interpret.
//!
//! # Layout
//!
//! - [`RedactingWriter`] (`writer`): a writer that redacts. The writer thread of `ptc serve`, the output of `ptc
//!   batch`, the console and the log accept no other.
//! - [`RedactedBytes`] (`payload`): redacted bytes for sockets: the bodies of `ptc serve --http`.
//! - `visible`: escapes characters, depending on the reader.
//! - [`shapes`]: which members of our JSON messages are protocol, and which are text.
//!
//! Architecture invariant: no other module of this crate names the standard streams (`mcp/clippy.toml` refuses
//! it), so all output begins with [`stdout`] or [`stderr`].

mod payload;
pub mod shapes;
mod visible;
mod writer;

pub use payload::RedactedBytes;
pub use ptc_calls::tools::visible::{is_shown, visible, visible_line};
pub use writer::{Form, RedactingWriter};

use visible::Reader;

use ptc_base::secrets::{Cut, SecretRegistry};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Secrets of this process. They are global because the standard streams are: a log line may be written where
/// no runtime exists.
static SECRETS: LazyLock<SecretRegistry> = LazyLock::new(SecretRegistry::new);

/// The secrets that are redacted in all output.
pub fn secrets() -> &'static SecretRegistry {
    &SECRETS
}

/// The beginning of a text for output: redacted first, and then cut.
pub fn excerpt(text: &str, room: Cut) -> Cow<'_, str> {
    secrets().excerpt(text, room)
}

/// Redacts bytes for a client on a socket.
pub fn clean(bytes: Vec<u8>, form: Form) -> RedactedBytes {
    RedactedBytes::new(bytes, form, secrets())
}

static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// From now on what is written to standard output is an error. For a process that began without one: what it writes
/// there would be lost without an error.
pub fn close_stdout() {
    STDOUT_IS_CLOSED.store(true, Ordering::Relaxed);
}

/// The error of what is written to a closed standard output.
pub fn closed_stdout() -> io::Error {
    io::Error::other("standard output is closed")
}

/// Standard output; `None` if it is closed.
pub struct Output(Option<Stdout>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().ok_or_else(closed_stdout)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Stdout::flush)
    }
}

/// Standard output.
#[expect(clippy::disallowed_methods, reason = "the one place where it is opened")]
pub fn stdout(form: Form) -> RedactingWriter<Output> {
    let output = (!STDOUT_IS_CLOSED.load(Ordering::Relaxed)).then(io::stdout);
    RedactingWriter::new(Output(output), form, secrets().clone()).read_by(reader(form, stdout_is_terminal()))
}

/// Standard error.
#[expect(clippy::disallowed_methods, reason = "the one place where it is opened")]
pub fn stderr(form: Form) -> RedactingWriter<Stderr> {
    RedactingWriter::new(std::io::stderr(), form, secrets().clone())
        .read_by(reader(form, stderr_is_terminal()))
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
