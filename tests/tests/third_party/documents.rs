//! Runs what the documents show: the `sh` blocks of README.md and docs/*.md, a page at a time in one shell, and the
//! programs and the conversation of the README.
//!
//! A page runs in an empty home folder, with the files of tests/documents/PAGE, of which `setup.sh` is run first. `npx`, `uvx` and `uv` start the packages of
//! tests/third_party. A line with `#=> text` must print that text. `ptc serve --http` runs in the background to the end
//! of the page, on a free port.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::third_party::installed;
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use ptc_tests::workspace;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words after `sh`, for blocks that are not run, and why.
const NOT_RUN: [(&str, &str); 6] = [
    ("build", "builds, tests or measures for minutes"),
    ("root", "changes the system"),
    ("model", "asks a model of a provider"),
    ("login", "logs in at a server of the internet"),
    ("example", "needs files of the reader"),
    ("scripts", "is run only where an engine for Python scripts is"),
];

/// The port of the documents.
const PORT: &str = "7332";

/// What every page begins with.
const BEGIN: &str = r#"set -euo pipefail
servers=()
trap 'for server in ${servers[@]+"${servers[@]}"}; do kill "$server" && wait "$server" || true; done 2>/dev/null' EXIT
ptc() {
  local flag address=
  for flag in "$@"; do
    [ "$address" = next ] && address=$flag
    [ "$flag" = --http ] && address=next
  done
  if [ -z "$address" ]; then command ptc "$@"; return; fi
  command ptc "$@" & servers+=($!)
  until curl --silent --fail "http://$address/health" >/dev/null; do kill -0 "$!" || exit 8; sleep 0.05; done
}
"#;

/// A fenced block: its first line, info string and text.
struct Block {
    line: usize,
    info: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (number, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(info) => {
                is_inside = true;
                blocks.push(Block { line: number + 2, info: info.trim().to_owned(), text: String::new() });
            }
            None if is_inside => {
                let block = blocks.last_mut().expect("a block");
                block.text += line;
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// README.md and docs/*.md, with their names.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(workspace().join("docs")).unwrap();
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    paths.push(workspace().join("README.md"));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let name = |path: &Path| path.strip_prefix(workspace()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The script of a page, and the blocks that it leaves out.
fn script(name: &str, document: &str) -> (Option<String>, Vec<String>) {
    let (mut script, mut left_out) = (BEGIN.to_owned(), Vec::new());
    for block in blocks(document) {
        let mut words = block.info.split(' ');
        if words.next() != Some("sh") {
            continue;
        }
        match words.next() {
            word if word.is_none() || (word == Some("scripts") && cfg!(scripts)) => {
                let _ = writeln!(script, "at={name}:{}", block.line);
                script += &checked(&block.text);
            }
            word => {
                let word = word.unwrap_or_default();
                assert!(NOT_RUN.iter().any(|(known, _)| *known == word), "{name}:{}: sh {word}", block.line);
                left_out.push(format!("{name}:{} {word}", block.line));
            }
        }
    }
    ((script.len() > BEGIN.len()).then_some(script), left_out)
}

/// Commands, with a check of what they print where a line says it.
fn checked(text: &str) -> String {
    let line = |line: &str| match line.split_once("#=> ") {
        Some((command, wanted)) => {
            let wanted = wanted.trim().replace('\'', r"'\''");
            format!(
                "got=$({})\n[ \"$got\" = '{wanted}' ] || {{ echo \"$at: $got\"; exit 9; }} >&2\n",
                command.trim()
            )
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A program for the shell of a page.
fn write_program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs the script of a page; gives what it printed if it failed.
fn run_page(name: &str, script: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let [home, bin, work] = ["home", "bin", "work"].map(|name| folder.path().join(name));
    for folder in [&home, &bin, &work] {
        std::fs::create_dir(folder).unwrap();
    }
    let mut script = script.replace(PORT, &free_port());
    let page = Path::new(name).file_stem().unwrap().to_str().unwrap();
    for entry in std::fs::read_dir(workspace().join("tests/documents").join(page)).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.ends_with("setup.sh") {
            let setup = std::fs::read_to_string(&path).unwrap();
            script.insert_str(BEGIN.len(), &setup);
        }
        std::fs::copy(&path, work.join(path.file_name().unwrap())).unwrap();
    }
    std::os::unix::fs::symlink(binary::path(), bin.join("ptc")).unwrap();
    let packages = installed().display();
    let npx = format!(
        "shift; package=$1; shift\nexec node \"{packages}/node_modules/$package/dist/index.js\" \"$@\""
    );
    write_program(&bin, "npx", &format!("#!/bin/sh\n{npx}\n"));
    let uvx = format!(
        "module=$(echo \"$1\" | tr - _); shift\nexec \"{packages}/venv/bin/python\" -m \"$module\" \"$@\""
    );
    // `uv run --quiet --with PACKAGE FILE`
    write_program(&bin, "uv", &format!("#!/bin/sh\nshift 4; exec \"{packages}/venv/bin/python\" \"$@\"\n"));
    write_program(&bin, "uvx", &format!("#!/bin/sh\n{uvx}\n"));
    let path = std::env::var("PATH").unwrap_or_default();
    let done = Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("HOME", &home)
        .env("PATH", format!("{}:{path}", bin.display()))
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{name}: {}\n{}{}\n{script}",
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn commands_of_all_pages_run() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for (name, document) in pages() {
        let (script, left_out) = script(&name, &document);
        left_out.iter().for_each(|block| println!("not run: {block}"));
        if let Some(script) = script {
            ran += 1;
            failures.extend(run_page(&name, &script).err());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 8, "{ran} pages have commands");
}

/// Flags of `ptc` in all blocks and in text, also of commands that are not run.
#[test]
fn flags_in_the_documents_exist() {
    let table = std::fs::read_to_string(workspace().join("docs/configuration.md")).unwrap();
    let is_flag =
        |word: &&str| word.starts_with("--") && word[2..].chars().all(|c| c == '-' || c.is_ascii_lowercase());
    let mut known: BTreeSet<&str> = ["--help", "--version"].into();
    known.extend(table.lines().filter_map(|line| line.strip_prefix("| `--")).map(|rest| {
        let end = rest.find([' ', '`']).expect("the end of a flag");
        &table[rest.as_ptr() as usize - table.as_ptr() as usize - 2..][..end + 2]
    }));
    assert!(known.len() > 80, "{known:?}");
    for (name, document) in pages() {
        for code in document.split(['`', '\n']).filter(|code| code.trim_start().starts_with("ptc ")) {
            // What stands after `--` is a command of its own.
            let code = code.split(" -- ").next().unwrap_or_default();
            for flag in code.split([' ', '=', ']', '[', '|']).filter(is_flag) {
                assert!(known.contains(flag), "{name}: {flag} in {code}");
            }
        }
    }
}

/// The two servers of the demo. `ptc` refuses to start itself, so a shell starts them.
fn demo() -> ConfigFile {
    let server =
        |name: &str| stdio("sh", &["-c", &format!("exec '{}' demo-server {name}", binary::path().display())]);
    Upstreams::default().add("desk", server("desk")).add("shop", server("shop")).write()
}

#[test]
fn programs_and_conversation_of_the_readme_are_true() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    assert!(readme.len() <= 9 * 1024, "{} bytes", readme.len());
    let config = demo();
    let mut server = Server::start(&config.flags(&[]));
    let (mut programs, mut answers) = (0, 0);
    for block in blocks(&readme) {
        if let Some((program, result)) = block.text.split_once(";=> ").filter(|_| block.info == "clojure") {
            assert_eq!(server.text(program), result.trim());
            programs += 1;
        }
        // A conversation: programs and answers in turn, each in a column of its own.
        let mut asked: Option<String> = None;
        let mut lines = block.text.lines().filter(|_| block.info == "text").peekable();
        while let Some(line) = lines.next() {
            if let Some(program) = line.strip_prefix("lisp_eval  ") {
                asked = Some(program.to_owned());
            } else if let Some(first) = line.strip_prefix("answer     ") {
                let mut answer = first.to_owned();
                while let Some(more) = lines.next_if(|line| line.starts_with("           ")) {
                    answer = answer + "\n" + more.trim();
                }
                assert_eq!(text_of(&server.run(&asked.take().expect("a program"))), answer);
                answers += 1;
            }
        }
    }
    assert!(programs == 1 && answers == 2, "{programs} programs, {answers} answers");
}
