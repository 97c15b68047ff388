//! Finds the configuration file: flag, environment variable, XDG directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names a configuration file.
pub const ENVIRONMENT_VARIABLE: &str = "PTC_RUNNER_MCP_UPSTREAMS";

/// The file below the XDG configuration directory.
const XDG_FILE: &str = "ptc_runner_mcp/upstreams.json";

/// The first of: the explicit paths, the environment variable, the XDG file if it exists. Without any there
/// are no upstreams. An explicit path is returned even if the file is missing, so that loading it fails
/// visibly.
pub fn find(explicit: &[PathBuf]) -> Vec<PathBuf> {
    match explicit {
        [] => find_with(&|name| std::env::var_os(name), &|path| path.exists()).into_iter().collect(),
        explicit => explicit.to_vec(),
    }
}

/// The default file, whether it exists or not.
pub fn default_file() -> Option<PathBuf> {
    xdg_file(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn find_with(variable: &dyn Fn(&str) -> Option<OsString>, exists: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match set(ENVIRONMENT_VARIABLE) {
        Some(path) => Some(path.into()),
        None => xdg_file(&set).filter(|path| exists(path)),
    }
}

fn xdg_file(set: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = match set("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".config"),
    };
    Some(folder.join(XDG_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_flag_variable_xdg() {
        let with = |vars: &[(&str, &str)], there: bool| {
            let get = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            find_with(&get, &|_| there).map(|path| path.display().to_string())
        };
        let all = [(ENVIRONMENT_VARIABLE, "/e"), ("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")];
        let files = [PathBuf::from("/f"), PathBuf::from("/g")];
        assert_eq!(find(&files), files);
        assert_eq!(with(&all, false).as_deref(), Some("/e"));
        assert_eq!(with(&all[1..], true).as_deref(), Some("/x/ptc_runner_mcp/upstreams.json"));
        assert_eq!(with(&all[2..], true).as_deref(), Some("/h/.config/ptc_runner_mcp/upstreams.json"));
        assert_eq!(with(&all[2..], false), None);
        assert_eq!(with(&[(ENVIRONMENT_VARIABLE, "")], true), None);
    }
}
