//! The programs that measurements start: servers of this binary, and `ptc` as users run it.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// A program to start.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// This binary: what `ptc` is measured against, and servers that it calls.
    Own,
    /// `ptc`, in the same folder as this binary.
    Product,
}

impl Program {
    /// Where it is.
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
