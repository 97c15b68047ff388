//! What people can do about a process that does not become a server: from the texts of a failed start to remedies.

use std::path::Path;

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

/// What to do about a start that failed.
pub(crate) fn of_start(error: &str, command_line: &str) -> String {
    if let Some(command) = error.strip_prefix("command not found: ") {
        let name = Path::new(command.trim()).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = INSTALLERS.iter().find(|(names, _)| names.contains(&name));
        let install = known.map_or("install it", |(_, remedy)| remedy);
        return format!("{install}, or write the full path as command");
    }
    let known = STARTS.iter().find(|(text, _)| error.contains(text));
    known.map_or("run it by hand: {}", |(_, remedy)| remedy).replace("{}", command_line)
}

/// What to do about a start that took most of its time, beside raising it.
pub(crate) fn of_slow_start(raise: &str) -> String {
    format!("install its package instead of fetching it at each start, or {raise}")
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
    }
}
