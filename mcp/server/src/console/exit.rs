//! Defines the exit codes of `ptc`, and the error type that ends a command with one of them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything is fine.
    Ok = 0,
    /// The program failed, or `check` found errors.
    ProgramFailed = 1,
    /// Wrong flags, an unreadable file, or a wrong configuration.
    Usage = 2,
    /// An upstream server did not start.
    Upstream = 3,
    /// Reading or writing failed.
    Io = 4,
}

/// For `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0  success
  1  the program failed, or `ptc check` found errors
  2  usage or configuration error
  3  an upstream server did not start
  4  input or output failed";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error that ends a command: its text for stderr, and the exit code.
#[derive(Debug)]
pub struct Abort {
    /// Code.
    pub exit: Exit,
    /// Text, without prefix. It is empty when the reader of the output has gone.
    pub message: String,
}

impl Abort {
    /// A usage or configuration error.
    pub fn usage(message: impl Into<String>) -> Abort {
        Abort { exit: Exit::Usage, message: message.into() }
    }
}

impl From<std::io::Error> for Abort {
    fn from(error: std::io::Error) -> Abort {
        // The reader of a pipe has enough, as in `ptc demo | head`.
        let gone = error.kind() == std::io::ErrorKind::BrokenPipe;
        Abort { exit: Exit::Io, message: if gone { String::new() } else { error.to_string() } }
    }
}
