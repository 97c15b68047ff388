//! What to do about what `ptc doctor` finds: tables from the texts of this product to remedies.

use ptc_runtime::upstream::StdioSpec;
use std::path::Path;
use std::time::Duration;

/// Programs that servers are started with, and where they come from.
const INSTALLERS: [(&[&str], &str); 5] = [
    (&["npx", "node", "npm"], "install Node.js (https://nodejs.org)"),
    (&["uvx", "uv"], "install uv (https://docs.astral.sh/uv)"),
    (&["python", "python3", "pip", "pipx"], "install Python 3 (https://www.python.org)"),
    (&["docker", "podman"], "install it, and start its service"),
    (&["bunx", "bun", "deno"], "install it, or use npx in its place"),
];

/// Texts of a start that failed, and remedies; `{}` is the command line.
const STARTS: [(&str, &str); 6] = [
    ("working directory does not exist", "create the folder, or correct cwd"),
    (
        "handshake timed out",
        "run it by hand and wait for its packages: {}\n              or raise handshake_timeout_ms",
    ),
    ("tools/list", "the server lists its tools wrongly: update it, or report it to its authors"),
    ("subprocess exited", "run it by hand to see what it misses (arguments, credentials): {}"),
    ("could not start", "make it executable, and check that it is a program for this machine"),
    ("handshake failed", "check that this starts an MCP server on standard input and output: {}"),
];

/// Texts about the file, and remedies.
const CONFIGS: [(&str, &str); 6] = [
    ("is not set", "export the variable before ptc is started, or write the value into the file"),
    ("JSON decode failed", "correct the JSON at this place"),
    ("is not built into this version", "remove the entry, or set \"disabled\": true in it"),
    ("requires command", "name the program that starts the server: \"command\": \"npx\""),
    ("requires explicit transport", "add \"command\" for a server on this machine"),
    ("No such file", "correct the path, or run `ptc config import` to write one"),
];

/// What to do about a configuration that cannot be read.
pub(super) fn of_config(message: &str) -> String {
    let known = CONFIGS.iter().find(|(text, _)| message.contains(text));
    known.map_or("compare with `ptc config schema`", |(_, remedy)| remedy).to_owned()
}

/// What to do about a warning of the configuration.
pub(super) fn of_warning(message: &str) -> String {
    let remedy = if message.contains("replaces the one") {
        "rename one of the two if both are needed"
    } else if message.contains("nothing hides it") {
        "if it is a secret, use a longer one; if it is none, write it into the file under another name"
    } else {
        "correct or remove it; `ptc config schema` lists what there is"
    };
    remedy.to_owned()
}

/// What to do about a server that did not start.
pub(super) fn of_start(error: &str, command_line: &str) -> String {
    if let Some(command) = error.strip_prefix("command not found: ") {
        let name = Path::new(command.trim()).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = INSTALLERS.iter().find(|(names, _)| names.contains(&name));
        let install = known.map_or("install it", |(_, remedy)| remedy);
        return format!("{install}, or write the full path as command");
    }
    let known = STARTS.iter().find(|(text, _)| error.contains(text));
    known.map_or("run it by hand: {}", |(_, remedy)| remedy).replace("{}", command_line)
}

/// What to do about a start that took most of its time.
pub(super) fn of_slow_start(patience: Duration) -> String {
    format!(
        "install its package instead of fetching it at each start, or raise handshake_timeout_ms (now {})",
        patience.as_millis()
    )
}

/// The command line as a person types it. Arguments may hold secrets: what is written is scrubbed later.
pub(super) fn command_line(spec: &StdioSpec) -> String {
    std::iter::once(&spec.command)
        .chain(&spec.arguments)
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_fit_their_findings() {
        assert!(of_start("command not found: /opt/npx", "").starts_with("install Node.js"));
        assert!(of_start("command not found: mine", "").starts_with("install it, or write"));
        let died = of_start("handshake failed: subprocess exited (status=1); stderr: no key", "npx 'a b'");
        assert!(died.ends_with("npx 'a b'") && died.contains("credentials"), "{died}");
        assert!(of_config("upstreams_config: env var X is not set").contains("export"));
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
