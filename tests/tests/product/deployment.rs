//! The recipes of docs/deploy.md match this tree: the Dockerfile and the systemd unit, parsed as their tools parse
//! them.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{ptc, run};
use ptc_tests::workspace;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// The instructions with their arguments, with continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |line: &str| {
        let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("an instruction alone: {line}"));
        (word.to_owned(), rest.trim().to_owned())
    };
    lines.map(split).collect()
}

/// A stage of a Dockerfile: base, name, and instructions.
struct Stage {
    base: String,
    name: Option<String>,
    steps: Vec<(String, String)>,
}

fn stages(text: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for (word, rest) in instructions(text) {
        if word == "FROM" {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let name = match words[1..] {
                [] => None,
                ["AS", name] => Some(name.to_owned()),
                _ => panic!("FROM {rest}"),
            };
            stages.push(Stage { base: words[0].to_owned(), name, steps: Vec::new() });
        } else {
            stages.last_mut().expect("FROM comes first").steps.push((word, rest));
        }
    }
    stages
}

impl Stage {
    fn all<'s>(&'s self, word: &'s str) -> impl Iterator<Item = &'s str> {
        self.steps.iter().filter(move |(known, _)| known == word).map(|(_, rest)| rest.as_str())
    }
}

/// The flags that the manual page of a command lists.
fn flags_of(arguments: &[&str]) -> BTreeSet<String> {
    let page = run(ptc(&[&["man"], arguments].concat()), "").stdout.replace("\\-", "-").replace("\\f", " ");
    let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter_map(|word| word.find("--").map(|at| &word[at..])).map(str::to_owned).collect()
}

#[test]
fn the_image_is_made_of_what_is_there() {
    const KNOWN: [&str; 7] = ["RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"];
    let root = workspace();
    let stages = stages(&std::fs::read_to_string(root.join("docs/Dockerfile")).unwrap());
    let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let wanted = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    for (at, stage) in stages.iter().enumerate() {
        assert!(stage.name.is_some() || at + 1 == stages.len(), "nothing is taken from stage {at}");
        for (word, rest) in &stage.steps {
            assert!(KNOWN.contains(&word.as_str()), "{word} {rest}");
        }
        let earlier: Vec<&str> = stages[..at].iter().filter_map(|stage| stage.name.as_deref()).collect();
        let is_pinned = stage.base.split_once(':').is_some_and(|(_, tag)| tag != "latest");
        assert!(
            stage.base == "scratch" || earlier.contains(&stage.base.as_str()) || is_pinned,
            "{}",
            stage.base
        );
        for copy in stage.all("COPY") {
            let words: Vec<&str> = copy.split_whitespace().collect();
            let (from, paths) = match words[0].strip_prefix("--from=") {
                Some(from) => (Some(from), &words[1..]),
                None => (None, &words[..]),
            };
            let (_, sources) = paths.split_last().expect("a place");
            assert!(!sources.is_empty(), "COPY {copy}");
            match from {
                Some(from) => assert!(earlier.contains(&from), "COPY {copy}"),
                None => assert!(sources.iter().all(|source| root.join(source).exists()), "COPY {copy}"),
            }
        }
    }
    let [build, last] = &stages[..] else { panic!("{} stages", stages.len()) };
    // A musl image with the Rust version of the sources builds a static binary.
    assert_eq!(build.base, format!("rust:{wanted}-alpine"));
    let builds: Vec<&str> = build.all("RUN").filter(|run| run.starts_with("cargo ")).collect();
    let [command] = builds[..] else { panic!("{builds:?}") };
    let words: Vec<&str> = command.split_whitespace().collect();
    let arguments = ["rustc", "--locked", "--profile", "dist", "--package", "ptc-mcp", "--bin", "ptc"];
    let features = ["--features", "monty", "--", "-L", "native=/memory", "-l", "static=ptcmemory"];
    assert_eq!(words, [&["cargo"][..], &arguments, &features].concat());
    // The copies of memory are those of the packages.
    assert!(build.all("RUN").any(|run| run.contains("-c packaging/memory.c -o /memory/memory.o")));
    assert!(root.join("packaging/memory.c").exists() && manifest["profile"].get("dist").is_some());
    // cargo has these flags, and this package exists with a valid lock file.
    let metadata = Command::new("cargo")
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(&root)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == words[6]).expect("the package");
    let binary =
        package["targets"].as_array().unwrap().iter().find(|target| target["kind"][0] == "bin").unwrap();
    let built =
        format!("{}/target/dist/{}", build.all("WORKDIR").next().unwrap(), binary["name"].as_str().unwrap());
    assert!(last.all("COPY").any(|copy| copy == format!("--from=build {built} /ptc")), "{built}");
    // An empty image has no folder for temporary files, which a server needs to spill results.
    assert!(build.all("RUN").any(|run| run == "mkdir -p -m 1777 /image/tmp"));
    assert!(last.all("COPY").any(|copy| copy == "--from=build /image /"));
    // Build output and history stay out of the image.
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).unwrap();
    assert!(["target", ".git"].iter().all(|name| ignored.lines().any(|line| line == *name)), "{ignored}");
    assert_eq!(last.base, "scratch");
    let user = last.all("USER").last().expect("no root");
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().expect("scratch knows no names")).collect();
    assert!(ids.iter().all(|id| *id > 0), "{user}");
    assert_eq!(last.all("STOPSIGNAL").collect::<Vec<_>>(), ["SIGTERM"]);
    let entry: Vec<String> =
        serde_json::from_str(last.all("ENTRYPOINT").last().expect("a command")).expect("its list form");
    let port = last.all("EXPOSE").last().expect("a port");
    assert!(
        entry[0] == "/ptc" && entry.last().is_some_and(|address| address.ends_with(&format!(":{port}"))),
        "{entry:?}"
    );
    let known = flags_of(&["serve"]);
    assert!(entry.iter().filter(|word| word.starts_with("--")).all(|flag| known.contains(flag)), "{entry:?}");
}

/// The text of the systemd unit.
fn unit() -> String {
    std::fs::read_to_string(workspace().join("docs/ptc.service")).unwrap()
}

#[test]
fn the_unit_is_one() {
    let unit = unit();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}"))
    };
    let words: Vec<&str> = value("ExecStart").split_whitespace().collect();
    assert_eq!(&words[..2], ["/usr/local/bin/ptc", "serve"]);
    let known = flags_of(&["serve"]);
    assert!(
        words.iter().filter(|word| word.starts_with("--")).all(|flag| known.contains(*flag)),
        "{words:?}"
    );
    assert_eq!((value("KillSignal"), value("ExecReload")), ("SIGTERM", "/bin/kill -HUP $MAINPID"));
    // systemd must not kill a draining server before its own deadline.
    let page = run(ptc(&["man", "serve"]), "").stdout.replace("\\-", "-").replace("\\f", " ");
    let grace =
        page.split("--http-shutdown-grace").last().and_then(|rest| rest.split("[default: ").nth(1)).unwrap();
    let grace: u32 = grace.split('s').next().unwrap().parse().expect("seconds");
    assert!(value("TimeoutStopSec").parse::<u32>().unwrap() > grace, "{grace}");
    // systemd's own check, if it is installed, with a command that exists.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ptc.service");
    let here = ptc_tests::binary::path();
    std::fs::write(&file, unit.replace("/usr/local/bin/ptc", here.to_str().unwrap())).unwrap();
    if let Some(complaints) = verified(&file) {
        let ours: Vec<&str> = complaints.lines().filter(|line| line.contains("ptc.service")).collect();
        assert!(ours.is_empty(), "{ours:?}");
    }
}

/// What systemd reports about a unit; `None` without systemd.
fn verified(unit: &Path) -> Option<String> {
    let output = Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(unit).output().ok()?;
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}
