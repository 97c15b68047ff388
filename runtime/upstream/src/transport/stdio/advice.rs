//! Suggests a remedy for a server command that fails to start, or starts slowly, based on the text of the error.

use std::path::Path;

/// Programs that servers are started with, and where they come from.
pub(crate) const INSTALLERS: [(&[&str], &str); 5] = [
    (&["npx", "node", "npm"], "install Node.js (https://nodejs.org)"),
    (&["uvx", "uv"], "install uv (https://docs.astral.sh/uv)"),
    (&["python", "python3", "pip", "pipx"], "install Python 3 (https://www.python.org)"),
    (&["docker", "podman"], "install it, and start its service"),
    (&["bunx", "bun", "deno"], "install it, or use npx in its place"),
];

/// Programs that fetch the package of a server before they start it.
const FETCHERS: [&str; 7] = ["npx", "uvx", "uv", "bunx", "pipx", "docker", "podman"];

/// Texts of a start that failed, and remedies; `{}` is the command line. What a server itself has said comes first.
pub(crate) const STARTS: [(&str, &str); 20] = [
    ("ENOTFOUND", NO_HOST),
    ("EAI_AGAIN", NO_HOST),
    ("getaddrinfo", NO_HOST),
    ("failure in name resolution", NO_HOST),
    ("dns error", NO_HOST),
    ("ECONNREFUSED", NO_ANSWER),
    ("onnection refused", NO_ANSWER),
    ("E404", NO_PACKAGE),
    ("not found in the package registry", NO_PACKAGE),
    ("because there are no versions of", NO_PACKAGE),
    ("Cannot find module", "a part of the server is missing: install it again, or correct the path in args"),
    ("ModuleNotFoundError", "a part of the server is missing: install it again, or correct the path in args"),
    ("environment variable", NO_VARIABLE),
    ("env var", NO_VARIABLE),
    ("working directory does not exist", "create the folder, or correct cwd"),
    ("tools/list", "the server lists its tools wrongly: update it, or report it to its authors"),
    (
        "subprocess exited",
        "run it by hand to see what it misses (arguments, credentials): {}\n              if it works there, it misses \
         a variable: name it in env, or set \"inheritEnv\": true",
    ),
    ("ermission denied", "make it executable, and check that it may use its folders"),
    ("could not start", "make it executable, and check that it is a program for this machine"),
    ("handshake failed", "check that this starts an MCP server on standard input and output: {}"),
];

const NO_HOST: &str = "a name cannot be looked up: check the network and the address; a proxy has to be named in env \
    (HTTPS_PROXY), for servers do not inherit it";
const NO_ANSWER: &str =
    "what it connects to does not answer: start that, or correct its address in args or env";
const NO_PACKAGE: &str = "there is no such package: correct its name in args: {}";
const NO_VARIABLE: &str = "name the variable in the env of the entry (servers inherit few variables), or set \
    \"inheritEnv\": true";

/// What to do about a start that failed.
pub(crate) fn of_start(error: &str, command_line: &str) -> String {
    if let Some(command) = error.strip_prefix("command not found: ") {
        let name = Path::new(command.trim()).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if command.trim().contains(char::is_whitespace) {
            let first = command.split_whitespace().next().unwrap_or_default();
            if first.contains('/') && !Path::new(first).is_file() {
                return "there is no such file: correct the path".to_owned();
            }
            let mut words = command.split_whitespace().map(|word| format!("\"{word}\""));
            let program = words.next().unwrap_or_default();
            let rest: Vec<String> = words.collect();
            return format!(
                "a command is one program: \"command\": {program}, \"args\": [{}, \u{2026}]",
                rest.join(", ")
            );
        }
        let known = INSTALLERS.iter().find(|(names, _)| names.contains(&name));
        let install = known.map_or("install it", |(_, remedy)| remedy);
        return format!("{install}, or write the full path as command");
    }
    if let Some(file) = error.strip_prefix("not executable: ") {
        return format!(
            "make it executable: chmod +x {file}; or name the interpreter as command and the file in args"
        );
    }
    if error.starts_with("handshake timed out") {
        let program =
            command_line.split(' ').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        return if FETCHERS.contains(&program) {
            format!(
                "run it by hand and wait for its packages: {command_line}\n              or raise handshake_timeout_ms"
            )
        } else {
            format!(
                "check that this starts an MCP server on standard input and output, and not on a port: {command_line}\n\
                 \x20             or raise handshake_timeout_ms"
            )
        };
    }
    let known = STARTS.iter().find(|(text, _)| error.contains(text));
    known.map_or("run it by hand: {}", |(_, remedy)| remedy).replace("{}", command_line)
}

/// What to do about a start that took most of its time, other than raising the limit.
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
        let words = of_start("command not found: npx -y thing", "");
        assert!(words.contains("\"command\": \"npx\", \"args\": [\"-y\", \"thing\""), "{words}");
        assert!(of_start("command not found: /bin/sh -c", "").contains("\"command\": \"/bin/sh\""));
        assert!(of_start("command not found: /no such/folder/x", "").contains("correct the path"));
        for (said, remedy) in [
            ("getaddrinfo ENOTFOUND registry.npmjs.org", "HTTPS_PROXY"),
            ("connect ECONNREFUSED 127.0.0.1:5432", "does not answer"),
            ("npm error code E404", "no such package"),
            ("API_KEY environment variable is required", "inheritEnv"),
            ("usage: server DIR", "inheritEnv"),
        ] {
            let advice =
                of_start(&format!("handshake failed: subprocess exited (status=1); stderr: {said}"), "x");
            assert!(advice.contains(remedy), "{said}: {advice}");
        }
        let slow = "handshake timed out after 30000 ms";
        assert!(of_start(slow, "/usr/bin/npx -y thing").contains("packages"));
        assert!(!of_start(slow, "my-server --port 1").contains("packages"));
        let died = of_start("handshake failed: subprocess exited (status=1); stderr: no key", "npx 'a b'");
        assert!(died.contains("credentials): npx 'a b'\n"), "{died}");
    }
}
