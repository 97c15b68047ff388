//! Finds environment variables and the configuration folder by their present or older names, and reports where both are
//! set and differ.
//!
//! [`VARIABLE`] and [`FOLDER`] are the only place of the older names. Both names of a pair work. Where both are set,
//! the new one wins, and [`conflicts`] says so if they differ.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A name and the older name of the same thing.
#[derive(Clone, Copy, Debug)]
pub struct Renamed {
    /// What documents and help say.
    pub new: &'static str,
    /// What goes on working.
    pub old: &'static str,
}

/// How the names of variables begin.
pub const VARIABLE: Renamed = Renamed { new: "PTC_", old: "PTC_RUNNER_MCP_" };

/// The folder below the XDG configuration directory.
pub const FOLDER: Renamed = Renamed { new: "ptc", old: "ptc_runner_mcp" };

/// The file in [`FOLDER`] that names servers.
const SERVERS: &str = "upstreams.json";

/// Reads a variable of the environment.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A variable that is set: its full name and its value. The name is given without its beginning. An empty value counts
/// only if no name of the variable has another one.
pub fn variable(name: &str) -> Option<(String, OsString)> {
    variable_in(&|name| std::env::var_os(name), name)
}

pub(super) fn variable_in(environment: Environment<'_>, name: &str) -> Option<(String, OsString)> {
    let set = [VARIABLE.new, VARIABLE.old].map(|beginning| {
        let name = format!("{beginning}{name}");
        let value = environment(&name)?;
        Some((name, value))
    });
    let [new, old] = set;
    let filled =
        |pair: &Option<(String, OsString)>| pair.as_ref().is_some_and(|(_, value)| !value.is_empty());
    if filled(&new) || !filled(&old) { new.or(old) } else { old }
}

/// The configuration file below the XDG directory: under its new name, and under the older one.
pub(super) fn files(environment: Environment<'_>) -> Option<[PathBuf; 2]> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".config"),
    };
    Some([FOLDER.new, FOLDER.old].map(|name| folder.join(name).join(SERVERS)))
}

/// A sentence for each pair of names that are both set and differ.
pub fn conflicts() -> Vec<String> {
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut found = variables_in_conflict(variables.collect());
    let both = files(&|name| std::env::var_os(name)).filter(|files| files.iter().all(|file| file.exists()));
    if let Some([new, old]) = both.filter(|[new, old]| !same_text(new, old)) {
        found.push(format!("{} is used, {} is not: both exist and differ", new.display(), old.display()));
    }
    found
}

fn variables_in_conflict(variables: Vec<(String, OsString)>) -> Vec<String> {
    let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let sentence = |(old, old_value): &(String, OsString)| {
        let new = format!("{}{}", VARIABLE.new, old.strip_prefix(VARIABLE.old)?);
        let new_value = value(&new)?;
        let differ = !new_value.is_empty() && !old_value.is_empty() && new_value != old_value;
        differ.then(|| format!("{new} is used, {old} is not: both are set and differ"))
    };
    variables.iter().filter_map(sentence).collect()
}

fn same_text(one: &Path, other: &Path) -> bool {
    let read = |path| ptc_base::files::read_text(path).ok();
    read(one) == read(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_name_wins_unless_it_is_empty() {
        let with = |pairs: &[(&str, &str)]| {
            let get = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            variable_in(&get, "FUEL").map(|(name, value)| format!("{name}={}", value.display()))
        };
        let (new, old) = (("PTC_FUEL", "1"), ("PTC_RUNNER_MCP_FUEL", "2"));
        assert_eq!(with(&[new, old]).as_deref(), Some("PTC_FUEL=1"));
        assert_eq!(with(&[old]).as_deref(), Some("PTC_RUNNER_MCP_FUEL=2"));
        assert_eq!(with(&[("PTC_FUEL", ""), old]).as_deref(), Some("PTC_RUNNER_MCP_FUEL=2"));
        assert_eq!(with(&[("PTC_FUEL", "")]).as_deref(), Some("PTC_FUEL="));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn names_that_differ_are_reported_without_their_values() {
        let set = |pairs: &[(&str, &str)]| {
            variables_in_conflict(
                pairs.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect(),
            )
        };
        let said = set(&[("PTC_FUEL", "1"), ("PTC_RUNNER_MCP_FUEL", "2"), ("PTC_RUNNER_MCP_TIMEOUT", "3")]);
        assert_eq!(said, ["PTC_FUEL is used, PTC_RUNNER_MCP_FUEL is not: both are set and differ"]);
        assert!(set(&[("PTC_FUEL", "1"), ("PTC_RUNNER_MCP_FUEL", "1")]).is_empty());
        assert!(set(&[("PTC_FUEL", ""), ("PTC_RUNNER_MCP_FUEL", "1")]).is_empty());
    }
}
