//! Finds or builds the `ptc` binary under test, and runs its commands to the end.

use crate::{PATIENCE, workspace};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::SystemTime;

/// The folder that cargo builds binaries into: two above the running test.
pub fn build_dir() -> PathBuf {
    let mut dir = std::env::current_exe().unwrap();
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    dir
}

/// The binary under test; built first if it is absent or older than its sources.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(given) = std::env::var_os("PTC_BIN") {
            return given.into();
        }
        build(build_dir().join("ptc"), &sources(), ["--bin", "ptc"])
    })
}

/// An example of the server's library; built first if it is absent or older than its sources.
pub fn server_example(name: &str) -> PathBuf {
    let mut sources = sources();
    sources.push(workspace().join("mcp/examples"));
    build(build_dir().join("examples").join(name), &sources, ["--example", name])
}

/// The source folders of the crates behind the binary: `vm/src`, `runtime/python/src` and so on.
fn sources() -> Vec<PathBuf> {
    let crates = ["vm", "compiler", "runtime", "mcp"].map(|folder| workspace().join(folder));
    let nested = crates
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    crates
        .iter()
        .cloned()
        .chain(nested)
        .map(|folder| folder.join("src"))
        .filter(|folder| folder.is_dir())
        .collect()
}

fn newest(dir: &Path) -> SystemTime {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => newest(&entry.path()),
            false => entry.metadata().unwrap().modified().unwrap(),
        })
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Builds a binary that is absent or older than its sources. With features, cargo decides: the file's age does not
/// say which features it was built with.
fn build(path: PathBuf, sources: &[PathBuf], target: [&str; 2]) -> PathBuf {
    let built =
        std::fs::metadata(&path).and_then(|data| data.modified()).ok().filter(|_| !cfg!(feature = "monty"));
    if built.is_some_and(|built| sources.iter().all(|dir| newest(dir) <= built)) {
        return path;
    }
    let dir = build_dir();
    let profile = match dir.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let built = Command::new(env!("CARGO"))
        .args(["build", "--workspace", target[0], target[1], "--profile", profile, "--target-dir"])
        .arg(dir.parent().unwrap())
        .args(if cfg!(feature = "monty") { &["--features", "monty"][..] } else { &[] })
        .current_dir(workspace())
        .status()
        .unwrap();
    assert!(built.success(), "{} does not build", path.display());
    path
}

/// Variables that only tests read.
const OF_TESTS: [&str; 4] = ["PTC_BIN", "PTC_BLESS", "PTC_PROPERTY_SCALE", "PTC_HOSTILE"];

/// A `ptc` command that does not see the user's own configuration.
pub fn ptc<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(path());
    command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/dev/null");
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("PTC_") && !OF_TESTS.contains(&&*shown) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit code and output of a finished command.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a command to its end with this input.
pub fn run(mut command: Command, input: &str) -> Finished {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A command that does not read its input closes the pipe, which is fine.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let (sender, receiver) = mpsc::channel();
    let shown = format!("{command:?}");
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(PATIENCE) else { panic!("it does not end: {shown}") };
    let Output { status, stdout, stderr } = output.unwrap();
    writer.join().unwrap();
    Finished {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs `ptc` with these arguments and this input.
pub fn run_ptc(arguments: &[&str], input: &str) -> Finished {
    run(ptc(arguments), input)
}

/// The report of `ptc eval --output json`, with a time limit that no slow machine reaches; `flags` follow it.
pub fn eval(program: &str, flags: &[&str]) -> Value {
    let mut arguments = vec!["eval", "-", "--output", "json"];
    if !flags.contains(&"--timeout") {
        arguments.extend(["--timeout", "120s"]);
    }
    arguments.extend(flags);
    let finished = run_ptc(&arguments, program);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}\n{program}"))
}

/// The `pr-str` text of a program's value.
pub fn value(program: &str, flags: &[&str]) -> String {
    let report = eval(program, flags);
    assert_eq!(report["ok"], true, "{program}\n{report:#}");
    report["value"].as_str().unwrap().to_owned()
}

/// One line of `ptc batch` input.
pub fn batch_line(id: impl Into<Value>, program: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id.into(), "program": program }))
}

/// Runs `ptc batch` and reads its lines.
pub fn batch(flags: &[&str], input: &str) -> Vec<Value> {
    let mut arguments = vec!["batch"];
    arguments.extend(flags);
    let finished = run_ptc(&arguments, input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
