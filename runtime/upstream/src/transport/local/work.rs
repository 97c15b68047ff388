//! Runs tools that the configuration itself defines: starts a program without a shell, or reads, lists or writes files
//! in one folder, without following symbolic links out of it.

use super::{LocalHandler, LocalWork};
use crate::transport::stdio::kin::{MARK, end_marked};
use crate::{forget_companion, spawn_companion};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions};
use ptc_base::tasks::{self, TaskOwner};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// Bytes of what a program says about its failure.
const COMPLAINT: usize = 4_096;

/// Names of one folder.
const NAMES: usize = 10_000;

/// Variables that programs have.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// The names in `{…}` of an argument.
pub(super) fn placeholders(word: &str) -> Vec<&str> {
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .filter(is_name)
        .collect()
}

/// Carries it out: its text, or why there is none.
pub(super) async fn run(
    folder: &Path,
    handler: &LocalHandler,
    arguments: &Value,
    most: usize,
) -> Result<String, String> {
    match &handler.work {
        LocalWork::Command(words) => {
            let words = words.iter().map(|word| filled(word, arguments)).collect::<Result<Vec<_>, _>>()?;
            start(folder, &words, most).await
        }
        file => {
            let (folder, file) = (folder.to_owned(), file.clone());
            let text = |name: &str| arguments[name].as_str().map(str::to_owned);
            let path = text("path").ok_or("path must be a string")?;
            let written = text("text");
            let done = tasks::blocking(TaskOwner::Run, move |_| on_file(folder, &file, &path, written, most));
            done.await.ok_or("the file could not be read")?
        }
    }
}

/// An argument with its placeholders filled in. What a caller gives is one argument, or a part of one, and no option.
fn filled(word: &str, arguments: &Value) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = word;
    for name in placeholders(word) {
        let place = format!("{{{name}}}");
        let Some((before, after)) = rest.split_once(&place) else { continue };
        text.push_str(before);
        let value = match &arguments[name] {
            Value::String(value) => value.clone(),
            value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
            _ => return Err(format!("{name} must be a string, a number or a boolean")),
        };
        if value.contains('\0') {
            return Err(format!("{name} holds a zero byte"));
        }
        if text.is_empty() && value.starts_with('-') {
            return Err(format!("{name} must not begin with -: it would be an option of the program"));
        }
        text.push_str(&value);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// A program and whatever it starts. Dropping it ends them.
struct CommandGroup {
    child: Child,
    /// In the environment of everything that it starts; `None` when all of that has ended.
    mark: Option<String>,
}

impl CommandGroup {
    /// Ends what the program has left.
    async fn end_rest(&mut self) {
        if let Some(mark) = self.mark.take() {
            let _ = tasks::blocking(TaskOwner::Run, move |_| end_marked(&mark)).await;
        }
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        if let (Some(mark), Ok(_)) = (self.mark.take(), Handle::try_current()) {
            tasks::spawn(TaskOwner::Process, async move {
                let _ = tasks::blocking(TaskOwner::Process, move |_| end_marked(&mark)).await;
            });
        }
        let Some(id) = self.child.id() else { return };
        forget_companion(id);
        if let Ok(leader) = libc::pid_t::try_from(id)
            && leader > 1
        {
            // SAFETY: kill takes two integers and touches no memory of ours. The id is above 1 and not waited for yet,
            // so its negation names the one group that this child leads.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
}

/// The value of [`MARK`] for one program.
fn next_mark() -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    format!("{}-local-{}.", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed))
}

async fn start(folder: &Path, words: &[String], most: usize) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().process_group(0).kill_on_drop(true);
    command.envs(VARIABLES.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
    let mark = next_mark();
    command.env(MARK, &mark);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn_companion(|| command.spawn(), Child::id);
    let child = child.map_err(|error| format!("{program}: {error}"))?;
    let mut group = CommandGroup { child, mark: Some(format!("{MARK}={mark}")) };
    let (Some(output), Some(errors)) = (group.child.stdout.take(), group.child.stderr.take()) else {
        return Err("no pipes".to_owned());
    };
    let (output, errors) = tokio::join!(up_to(output, most), up_to(errors, COMPLAINT));
    if output.len() > most {
        return Err(format!("its output is larger than {most} bytes"));
    }
    let id = group.child.id();
    let status = group.child.wait().await.map_err(|error| error.to_string())?;
    id.into_iter().for_each(forget_companion);
    group.end_rest().await;
    let output = String::from_utf8_lossy(&output).into_owned();
    if status.success() {
        return Ok(output);
    }
    let complaint = String::from_utf8_lossy(&errors[..errors.len().min(COMPLAINT)]).trim().to_owned();
    Err(if complaint.is_empty() { format!("{program} ended with {status}") } else { complaint })
}

/// The bytes until the end, or one more than `most`; a longer output is not read to its end.
async fn up_to(source: impl AsyncRead + Unpin, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read until an error is what there is.
    let _ = source.take(most as u64 + 1).read_to_end(&mut bytes).await;
    bytes
}

fn on_file(
    folder: PathBuf,
    work: &LocalWork,
    path: &str,
    text: Option<String>,
    most: usize,
) -> Result<String, String> {
    let about = |error: std::io::Error| format!("{path}: {error}");
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(about)?;
    let path_or_here = if path.is_empty() { "." } else { path };
    // A pipe or a device would be waited for.
    let is_other = dir.metadata(path_or_here).is_ok_and(|about| !about.is_file() && !about.is_dir());
    if is_other {
        return Err(format!("{path}: neither a file nor a folder"));
    }
    match work {
        LocalWork::Write => {
            let text = text.ok_or("text must be a string")?;
            write(&dir, path, &text).map_err(about)?;
            Ok(json!({ "bytes": text.len() }).to_string())
        }
        LocalWork::List => {
            let mut names = Vec::new();
            for entry in dir.read_dir(path_or_here).map_err(about)?.take(NAMES) {
                let entry = entry.map_err(about)?;
                let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
                names.push(entry.file_name().to_string_lossy().into_owned() + end);
            }
            names.sort_unstable();
            Ok(json!(names).to_string())
        }
        LocalWork::Read | LocalWork::Command(_) => {
            let mut bytes = Vec::new();
            let file = dir.open(path).map_err(about)?;
            file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(about)?;
            if bytes.len() > most {
                return Err(format!("{path}: larger than {most} bytes"));
            }
            String::from_utf8(bytes).map_err(|_| format!("{path}: not UTF-8"))
        }
    }
}

/// Writes a file. One with several names is refused: the others may be outside of the folder.
fn write(dir: &Dir, path: &str, text: &str) -> io::Result<()> {
    let mut file = dir.open_with(path, OpenOptions::new().write(true).create(true))?;
    if file.metadata()?.nlink() > 1 {
        return Err(io::Error::other("the file has other names (hard links)"));
    }
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_gives_is_one_argument_and_no_option() {
        let arguments = json!({ "a": "x y; rm *", "n": 5, "o": "--output=/etc/x", "z": "\0", "l": [] });
        assert_eq!(placeholders("{a}-{b}{c d}{"), ["a", "b"]);
        assert_eq!(filled("{a}", &arguments).as_deref(), Ok("x y; rm *"));
        assert_eq!(filled("--max={n}/{a}{", &arguments).as_deref(), Ok("--max=5/x y; rm *{"));
        assert_eq!(filled("--in={o}", &arguments).as_deref(), Ok("--in=--output=/etc/x"));
        for wrong in ["{o}", "{z}", "{l}", "{gone}"] {
            assert!(filled(wrong, &arguments).is_err(), "{wrong}");
        }
    }
}
