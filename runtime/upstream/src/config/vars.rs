//! Fills `${VAR}` placeholders in configuration files from environment variables, defaults, and editor folders such as
//! `${workspaceFolder}`.
//!
//! In the `upstreams` shape only `env` values have them. Hosts also fill the command, its arguments and its
//! folder, and support `${VAR:-default}`, `${env:VAR}` and the folders. Where a host would ask its user
//! (`${input:api-key}`), the variable of that name (`API_KEY`) is used.

use super::entry::EntryReader;
use super::{ConfigError, Shape};
use crate::is_inherited;
use ptc_base::secrets::names;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

impl EntryReader<'_> {
    /// Fills placeholders in the hosts' shapes; in our own shape such a text is literal.
    pub(super) fn host_text(&self, key: &str, text: &str) -> Result<String, ConfigError> {
        match self.shape {
            Shape::Upstreams => Ok(text.to_owned()),
            Shape::McpServers | Shape::Servers | Shape::Listed => self.filled(&[key], text),
        }
    }

    pub(super) fn filled(&self, path: &[&str], text: &str) -> Result<String, ConfigError> {
        let placeholders = match self.shape {
            Shape::Upstreams => Placeholders::Plain,
            Shape::McpServers | Shape::Servers | Shape::Listed => Placeholders::Host,
        };
        let text = match placeholders {
            Placeholders::Plain => Cow::Borrowed(text),
            Placeholders::Host => self.without_inputs(path, text)?,
        };
        let file = Path::new(self.document.name);
        let variables = |name: &str| match placeholders {
            Placeholders::Plain => (self.variables)(name),
            Placeholders::Host => {
                (self.variables)(name).or_else(|| folder_of_editors(name, file, self.variables))
            }
        };
        let expanded = expand(&text, placeholders, &variables).map_err(|unset| {
            let message =
                format!("upstreams_config: env var {unset} is not set (referenced as ${{{unset}}})");
            self.error(path, message)
        })?;
        for (name, value) in expanded.used {
            if !is_public(&name) {
                self.protect(path, &format!("the value of ${{{name}}}"), &value);
            }
        }
        Ok(expanded.text)
    }

    /// The text with a variable in the place of each input.
    fn without_inputs<'t>(&self, path: &[&str], text: &'t str) -> Result<Cow<'t, str>, ConfigError> {
        let mut text = Cow::Borrowed(text);
        while let Some((_, rest)) = text.split_once(INPUT) {
            let Some((input, _)) = rest.split_once('}') else { break };
            let variable = input_variable(input);
            if (self.variables)(&variable).is_none() {
                let what = format!(
                    "asks its host for the input \"{input}\", which ptc cannot ask for; set the environment variable \
                    {variable} instead"
                );
                return Err(self.about(path, &what));
            }
            text = Cow::Owned(text.replacen(&format!("{INPUT}{input}}}"), &format!("${{{variable}}}"), 1));
        }
        Ok(text)
    }
}

/// How a placeholder begins for which a host would ask its user.
const INPUT: &str = "${input:";

/// The environment variable that gives the value of an input: `API_KEY` for `${input:api-key}`.
fn input_variable(input: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    let digit = input.starts_with(|first: char| first.is_ascii_digit()) || input.is_empty();
    digit.then_some('_').into_iter().chain(input.chars().map(letter)).collect()
}

/// The variables that give the values of the inputs in a text.
pub(super) fn variables_of_inputs(text: &str) -> Vec<String> {
    let inputs = text.split(INPUT).skip(1).filter_map(|rest| rest.split_once('}'));
    inputs.map(|(input, _)| input_variable(input)).collect()
}

/// Which placeholders are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholders {
    /// `${VAR}`.
    Plain,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`.
    Host,
}

/// Variables of the desktop and of the shell that hold folders and names, as do all that begin with `XDG_`.
const PUBLIC: [&str; 6] = ["PWD", "OLDPWD", "SHELL", "LOGNAME", "TZ", "USERPROFILE"];

/// True for variables whose values are no secrets: to redact the working directory, a home directory or a user name would
/// spoil ordinary output.
fn is_public(name: &str) -> bool {
    is_inherited(&name.into())
        || EDITOR_FOLDERS.contains(&name)
        || PUBLIC.contains(&name)
        || name.starts_with("XDG_")
}

/// Placeholders of editors that stand for folders.
const EDITOR_FOLDERS: [&str; 4] = ["workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome"];

/// The folder that an editor would fill in for one of [`EDITOR_FOLDERS`], in the configuration file `file`.
/// The workspace is the parent of the `.vscode`, `.cursor` or similar folder that holds the file. If that is
/// the user's home, the working directory is used.
fn folder_of_editors(name: &str, file: &Path, variables: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let home = || variables("HOME").or_else(|| variables("USERPROFILE"));
    let workspace = || {
        let file = std::path::absolute(file).ok()?;
        let of_host = file.ancestors().skip(1).find(|folder| {
            folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'))
        });
        let project = of_host.and_then(Path::parent).map(Path::to_owned);
        let is_home = |folder: &PathBuf| home().is_some_and(|home| Path::new(&home) == folder);
        project.filter(|folder| !is_home(folder)).or_else(|| std::env::current_dir().ok())
    };
    match name {
        "userHome" => home(),
        "workspaceFolder" | "workspaceRoot" => Some(workspace()?.display().to_string()),
        "workspaceFolderBasename" => Some(workspace()?.file_name()?.to_str()?.to_owned()),
        _ => None,
    }
}

/// A text with its placeholders filled, and the values that filled them.
struct Expanded {
    text: String,
    used: Vec<(String, String)>,
}

/// Fills the placeholders. The error is the name of an unset variable.
fn expand(
    text: &str,
    placeholders: Placeholders,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, String> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(open) = rest.find("${") {
        let Some(close) = rest[open..].find('}') else { break };
        let Some((name, default)) = reference(&rest[open + 2..open + close], placeholders) else {
            expanded.text.push_str(&rest[..open + 2]);
            rest = &rest[open + 2..];
            continue;
        };
        expanded.text.push_str(&rest[..open]);
        match (variables(name), default) {
            (Some(value), None) => {
                expanded.text.push_str(&value);
                expanded.used.push((name.to_owned(), value));
            }
            // As in a shell, a default also replaces an empty value.
            (Some(value), Some(_)) if !value.is_empty() => {
                expanded.text.push_str(&value);
                expanded.used.push((name.to_owned(), value));
            }
            (_, Some(default)) => {
                expanded.text.push_str(default);
                if names::is_secret(name) {
                    expanded.used.push((name.to_owned(), default.to_owned()));
                }
            }
            (None, None) => return Err(name.to_owned()),
        }
        rest = &rest[open + close + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

/// Name and default between the braces; `None` when this is no placeholder.
fn reference(inside: &str, placeholders: Placeholders) -> Option<(&str, Option<&str>)> {
    let (name, default) = match placeholders {
        Placeholders::Plain => (inside, None),
        Placeholders::Host => match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside.strip_prefix("env:").unwrap_or(inside), None),
        },
    };
    is_name(name).then_some((name, default))
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_know_folders() {
        let vars = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let folder = |name: &str, file: &str| folder_of_editors(name, Path::new(file), &vars);
        assert_eq!(folder("userHome", "/p/.vscode/mcp.json").as_deref(), Some("/home/me"));
        assert_eq!(folder("workspaceFolder", "/p/.vscode/mcp.json").as_deref(), Some("/p"));
        assert_eq!(folder("workspaceFolder", "/p/.kiro/settings/mcp.json").as_deref(), Some("/p"));
        assert_eq!(folder("workspaceFolderBasename", "/a/p/.cursor/mcp.json").as_deref(), Some("p"));
        let here = std::env::current_dir().unwrap().display().to_string();
        assert_eq!(folder("workspaceFolder", "/home/me/.cursor/mcp.json"), Some(here));
        assert_eq!(folder("other", "/p/.vscode/mcp.json"), None);
    }

    #[test]
    fn only_well_formed_placeholders_are_filled() {
        let vars = |name: &str| (name == "TOKEN").then(|| "t${TOKEN}t".to_owned());
        let text = |input: &str| expand(input, Placeholders::Plain, &vars).map(|expanded| expanded.text);
        assert_eq!(text("a ${TOKEN} b"), Ok("a t${TOKEN}t b".into()), "values are not expanded again");
        assert_eq!(text("$TOKEN ${} ${1} ${a-b} ${TOKEN"), Ok("$TOKEN ${} ${1} ${a-b} ${TOKEN".into()));
        assert_eq!(text("x${NOPE}"), Err("NOPE".into()));
    }

    #[test]
    fn hosts_have_defaults_and_a_namespace() {
        let vars = |name: &str| match name {
            "TOKEN" => Some("t".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let text = |input: &str| expand(input, Placeholders::Host, &vars).map(|expanded| expanded.text);
        assert_eq!(
            text("${env:TOKEN} ${TOKEN:-x} ${NOPE:-d e} ${EMPTY:-f} ${NOPE:-}"),
            Ok("t t d e f ".into())
        );
        assert_eq!(text("${env:NOPE}"), Err("NOPE".into()));
        assert_eq!(text("${input:key}"), Ok("${input:key}".into()));
        let plain = expand("${TOKEN:-x}", Placeholders::Plain, &vars).map(|expanded| expanded.text);
        assert_eq!(plain, Ok("${TOKEN:-x}".into()));
    }
}
