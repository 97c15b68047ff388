//! Finds the configuration file: flag, environment variable, XDG directory.

pub mod names;

use names::Environment;
use std::path::{Path, PathBuf};

/// The variable that names a configuration file, without its beginning.
const UPSTREAMS: &str = "UPSTREAMS";

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
    default_with(&|name| std::env::var_os(name), &|path| path.exists())
}

fn find_with(environment: Environment<'_>, exists: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    match names::variable_in(environment, UPSTREAMS).filter(|(_, path)| !path.is_empty()) {
        Some((_, path)) => Some(path.into()),
        None => default_with(environment, exists).filter(|path| exists(path)),
    }
}

/// The file under its older name is the default only while it is the one that exists.
fn default_with(environment: Environment<'_>, exists: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let [new, old] = names::files(environment)?;
    Some(if !exists(&new) && exists(&old) { old } else { new })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_flag_variable_xdg() {
        let with = |vars: &[(&str, &str)], there: &[&str]| {
            let get = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            let exists = |path: &Path| there.iter().any(|there| path == Path::new(there));
            find_with(&get, &exists).map(|path| path.display().to_string())
        };
        let all = [("PTC_UPSTREAMS", "/e"), ("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")];
        let (new, old) = ("/x/ptc/upstreams.json", "/x/ptc_runner_mcp/upstreams.json");
        let files = [PathBuf::from("/f"), PathBuf::from("/g")];
        assert_eq!(find(&files), files);
        assert_eq!(with(&all, &[]).as_deref(), Some("/e"));
        assert_eq!(with(&[("PTC_RUNNER_MCP_UPSTREAMS", "/old")], &[]).as_deref(), Some("/old"));
        assert_eq!(with(&all[1..], &[old, new]).as_deref(), Some(new));
        assert_eq!(with(&all[1..], &[old]).as_deref(), Some(old));
        let home = "/h/.config/ptc/upstreams.json";
        assert_eq!(with(&all[2..], &[home]).as_deref(), Some(home));
        assert_eq!(with(&all[2..], &[]), None);
        assert_eq!(with(&[("PTC_UPSTREAMS", "")], &[home]), None);
    }
}
