//! Finds the folders of this user in which `ptc` keeps files.

use std::ffi::OsString;
use std::path::PathBuf;

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
