//! Finds the folders of this user in which `ptc` keeps state and sockets, creates private ones, and checks whether a
//! folder is private.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder for what is remembered between runs: `$XDG_STATE_HOME/ptc`, else `~/.local/state/ptc` (XDG Base
/// Directory Specification). `None` without a home folder. A relative `XDG_STATE_HOME` is ignored, as the
/// specification demands. The folder need not exist.
pub fn state_folder() -> Option<PathBuf> {
    state_folder_with(&|name| std::env::var_os(name))
}

fn state_folder_with(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("ptc"))
}

/// The folder for sockets: `$XDG_RUNTIME_DIR/ptc`, else `run` in the state folder. `None` without either. The folder need
/// not exist.
pub fn runtime_folder() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    given.map(|folder| folder.join("ptc")).or_else(|| Some(state_folder()?.join("run")))
}

/// Creates a folder if it is missing; then only this user can enter it. A folder that exists stays as it is.
///
/// # Errors
/// It cannot be created.
pub fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a folder that only this user can enter, if it is missing.
///
/// # Errors
/// It cannot be created, or it is not [private](is_private_folder).
pub fn private_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    match is_private_folder(path) {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} is open to other users", path.display()))),
    }
}

/// True for a folder of this user that no other user can enter.
pub fn is_private_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == super::user() && found.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_specification() {
        let with = |variables: &[(&str, &str)]| {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
            };
            state_folder_with(&get).map(|path| path.display().to_string())
        };
        assert_eq!(with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]).as_deref(), Some("/s/ptc"));
        assert_eq!(with(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]).as_deref(), Some("/h/.local/state/ptc"));
        assert_eq!(with(&[("HOME", "")]), None);
    }
}
