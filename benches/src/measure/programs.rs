//! Starts the programs that measurements need: servers of this binary, and `ptc` as users run it.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// A program that a measurement starts.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// This binary: the baseline of a measurement, or a server that `ptc` calls.
    Own,
    /// `ptc`, in the same folder as this binary.
    Product,
}

impl Program {
    /// The path of the program.
    ///
    /// # Errors
    /// `ptc` was not built.
    pub fn path(self) -> io::Result<PathBuf> {
        let own = std::env::current_exe()?;
        let product = own.with_file_name(format!("ptc{}", std::env::consts::EXE_SUFFIX));
        match self {
            Program::Own => Ok(own),
            Program::Product if product.exists() => Ok(product),
            Program::Product => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} is missing: build it first (cargo build --release)", product.display()),
            )),
        }
    }

    /// A command without arguments.
    ///
    /// # Errors
    /// `ptc` was not built.
    pub fn command(self) -> io::Result<Command> {
        self.path().map(Command::new)
    }
}
