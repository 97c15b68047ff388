//! Where the configuration file is: flag, environment variable, XDG directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names a configuration file.
pub const ENVIRONMENT_VARIABLE: &str = "PTC_RUNNER_MCP_UPSTREAMS";

/// The file below the XDG configuration directory.
const XDG_FILE: &str = "ptc_runner_mcp/upstreams.json";

/// The first of: the explicit path, the environment variable, the XDG file if it exists. `None` means
/// that there are no upstreams. A path that was asked for is returned even when nothing is there, so that
/// loading it fails loudly.
pub fn find(explicit: Option<&Path>) -> Option<PathBuf> {
    find_with(explicit, &|name| std::env::var_os(name), &|path| path.exists())
}

fn find_with(
    explicit: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
    exists: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = explicit {
        return Some(path.to_owned());
    }
    if let Some(path) = set(ENVIRONMENT_VARIABLE) {
        return Some(path.into());
    }
    let folder = match set("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".config"),
    };
    Some(folder.join(XDG_FILE)).filter(|path| exists(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_flag_variable_xdg() {
        let with = |vars: &[(&str, &str)], explicit: Option<&str>, there: bool| {
            let get = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            find_with(explicit.map(Path::new), &get, &|_| there).map(|path| path.display().to_string())
        };
        let all = [(ENVIRONMENT_VARIABLE, "/e"), ("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(&all, Some("/f"), false).as_deref(), Some("/f"));
        assert_eq!(with(&all, None, false).as_deref(), Some("/e"));
        assert_eq!(with(&all[1..], None, true).as_deref(), Some("/x/ptc_runner_mcp/upstreams.json"));
        assert_eq!(with(&all[2..], None, true).as_deref(), Some("/h/.config/ptc_runner_mcp/upstreams.json"));
        assert_eq!(with(&all[2..], None, false), None);
        assert_eq!(with(&[(ENVIRONMENT_VARIABLE, "")], None, true), None);
    }
}
