//! Starts a stdio server: finds its program on `PATH`, makes a clean environment, and spawns it without a shell, in a
//! process group of its own.

use super::kin::MARK;
use ptc_base::secrets::Credential;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Variables every child gets; `LC_*` too. Everything else is the entry's own business.
const INHERITED: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR"];

/// How a child's environment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// A short list of harmless variables plus the entry's own.
    Clean,
    /// Everything of the parent plus the entry's own.
    Inherited,
}

/// How to start a stdio server. Holds resolved secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct StdioSpec {
    /// Program: a path, or a name looked up on PATH at each start.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Extra variables, resolved.
    pub variables: Vec<(String, Credential)>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// What it inherits.
    pub environment: Environment,
}

impl StdioSpec {
    /// A program and its arguments, in a clean environment.
    pub fn new(command: String, arguments: Vec<String>) -> StdioSpec {
        let (variables, directory, environment) = (Vec::new(), None, Environment::Clean);
        StdioSpec { command, arguments, variables, directory, environment }
    }

    /// The file `command` names at this moment.
    pub fn resolve(&self) -> Option<PathBuf> {
        let own_path = self.variables.iter().find(|(name, _)| name == "PATH");
        let own_path = own_path.map(|(_, value)| value.expose());
        resolve_command(&self.command, self.directory.as_deref(), own_path)
    }

    /// Why `command` names no program.
    fn why_not_found(&self) -> String {
        let own_path = Path::new(&self.command);
        let path =
            self.directory.as_deref().map_or(own_path.to_owned(), |directory| directory.join(own_path));
        match self.command.contains('/') && path.is_file() {
            true => format!("not executable: {}", self.command),
            false => format!("command not found: {}", self.command),
        }
    }

    /// The command line as a person types it. Arguments may hold secrets: what is written is scrubbed later.
    pub(crate) fn command_line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.arguments);
        words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Spawns the server with pipes on all three streams, and this value of [`MARK`].
    pub(super) fn spawn(&self, mark: &str) -> Result<Child, String> {
        let program = self.resolve().ok_or_else(|| self.why_not_found())?;
        if let Some(directory) = self.directory.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(format!("working directory does not exist: {}", directory.display()));
        }
        let mut command = Command::new(program);
        command.args(&self.arguments);
        if self.environment == Environment::Clean {
            command.env_clear();
            for (name, value) in std::env::vars_os() {
                if is_inherited(&name) {
                    command.env(name, value);
                }
            }
        }
        for (name, value) in &self.variables {
            command.env(name, value.expose());
        }
        command.env(MARK, mark);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command.spawn().map_err(|error| format!("could not start {}: {error}", self.command))
    }
}

/// True for variables that every child gets.
pub(crate) fn is_inherited(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"))
}

/// Finds the file a command names: a path as it is, a bare name on `search_path`.
pub fn resolve_command(
    command: &str,
    directory: Option<&Path>,
    search_path: Option<&str>,
) -> Option<PathBuf> {
    if command.contains('/') {
        let path = match directory {
            Some(directory) if Path::new(command).is_relative() => directory.join(command),
            _ => PathBuf::from(command),
        };
        return is_executable(&path).then_some(path);
    }
    let search: OsString = match search_path {
        Some(path) => path.into(),
        None => std::env::var_os("PATH")?,
    };
    std::env::split_paths(&search).map(|folder| folder.join(command)).find(|path| is_executable(path))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_wants_them() {
        assert_eq!(quoted("a/b=c"), "a/b=c");
        assert_eq!((quoted("it's"), quoted("")), ("'it'\\''s'".to_owned(), "''".to_owned()));
    }
}
