//! Tests of what a program that `ptc` starts can see of `ptc`.

use crate::binary::support::{ptc, stderr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user that owns nothing.
const OTHER: u32 = 65_534;

fn is_superuser() -> bool {
    std::fs::metadata("/proc/self").expect("a process").uid() == 0
}

/// Copies the binary to where another user can start it.
fn program(folder: &Path) -> PathBuf {
    let place = folder.join("ptc");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &place).expect("copied");
    place
}

/// A script in the role of a server. It writes down what it can see and speaks no MCP.
const LOOK: &str = r#"
ls -l /proc/self/fd > descriptors
cat /proc/$PPID/environ > environment
cat /proc/$PPID/maps > maps
until [ "$found" ]; do
  for entry in $(grep -lsF ptc-guardian /proc/[0-9]*/cmdline); do
    grep -qs "^PPid:.*[^0-9]$PPID\$" "${entry%cmdline}status" && found=${entry%cmdline}
  done
done
tr '\0' '\n' < "${found}environ" > guardian
"#;

#[test]
fn a_server_reads_neither_the_environment_of_ptc_nor_its_descriptors() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path();
    // The other user writes into this folder.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let secret = path.join("secret.txt");
    std::fs::write(&secret, "x").expect("written");
    std::fs::write(path.join("look.sh"), LOOK).expect("written");
    std::fs::write(
        path.join("servers.json"),
        serde_json::json!({ "mcpServers": { "look": { "command": "sh", "args": ["look.sh"] } } }).to_string(),
    )
    .expect("written");
    let program = program(path);
    // The shell leaves a descriptor open without the close-on-exec flag.
    let line = format!("exec 7<'{}'; exec \"$@\"", secret.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, "sh"]).arg(program);
    shell.args(["tools", "--upstreams-config", "servers.json"]).current_dir(path);
    shell.env("PTC_HTTP_AUTH_TOKEN", "a-secret-of-the-server");
    if is_superuser() {
        shell.uid(OTHER).gid(OTHER);
    }
    let output = shell.output().expect("binary ends");
    let read = |name: &str| {
        std::fs::read_to_string(path.join(name)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    assert!(read("descriptors").contains(" 0 -> "), "{}", read("descriptors"));
    assert!(!read("descriptors").contains("secret.txt"), "{}", read("descriptors"));
    assert!(!read("environment").contains("a-secret-of-the-server"));
    assert!(read("environment").is_empty() && read("maps").is_empty());
    // The guardian shell of the servers is another process of this user.
    let names = ["PATH=", "PWD=", "OLDPWD=", "SHLVL=", "_="];
    assert!(
        read("guardian").lines().all(|line| names.iter().any(|name| line.starts_with(name))),
        "{}",
        read("guardian")
    );
}

/// As the superuser nothing in the system hides the environment; `ptc doctor` says so.
#[test]
fn doctor_says_who_can_read_what() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, "{\"mcpServers\": {\"a\": {\"command\": \"false\"}}}").expect("written");
    let output =
        ptc(&["doctor", "--output", "json", "--upstreams-config", file.to_str().expect("UTF-8")]).output();
    let text = crate::binary::support::stdout(&output.expect("binary ends"));
    assert_eq!(text.contains("runs as the superuser"), is_superuser(), "{text}");
}
