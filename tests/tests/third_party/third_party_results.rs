//! How results of third-party servers become values of a program, and by which rule: a table of calls, stored as a
//! golden file. The servers run behind a recorder, so each row begins with what was really sent.
//! `PTC_UPDATE_GOLDEN=1` rewrites the file.

use ptc_tests::binary::eval;
use ptc_tests::third_party::{
    everything, fetch, filesystem, git, memory, python, sequential_thinking, sqlite, time,
};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use regex::{NoExpand, Regex};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// `$DIR` is the folder of the test. Calls are made in this order.
const CALLS: &str = include_str!("../../third_party/results_calls.txt");

/// A server behind the recorder.
fn recorded(mut entry: Value, transcript: &Path) -> Value {
    let recorder = workspace().join("tests/third_party/record.py");
    let mut arguments = vec![json!(recorder), json!(transcript), entry["command"].take()];
    arguments.extend(entry["args"].as_array().expect("arguments").iter().cloned());
    entry["command"] = python().into();
    entry["args"] = arguments.into();
    entry
}

fn repository(path: &Path) {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(path).args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]);
        git.args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]).args(arguments);
        // A hook or a workflow may have set these for another repository.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        let output = git.output().expect("git runs");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "notes.md"]);
    git(&["commit", "--quiet", "-m", "Notes"]);
}

fn files(path: &Path) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(path.join(name), bytes).expect("written");
    write("notes.md", b"# Notes\nBuy milk.\n");
    write("rows.json", br#"[{"id": 1, "item": "tea"}, {"id": 2, "item": "milk"}]"#);
    write("number.txt", b"42");
    write("word.txt", b"true");
    write("broken.json", b"{\"a\": 1");
    write("quoted.txt", b"\"only a string\"");
    write("empty.txt", b"");
    write("dot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    write("beep.wav", b"RIFF\x04\0\0\0WAVE");
    std::fs::create_dir(path.join("sub")).expect("created");
    std::fs::write(path.join("sub/deep.txt"), "deep\n").expect("written");
}

/// A short description of what a server sent.
fn sent(result: &Value) -> String {
    let mut parts = Vec::new();
    if result["isError"] == true {
        parts.push("isError".to_owned());
    }
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    for block in &blocks {
        parts.push(match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().unwrap_or_default();
                let is_json = serde_json::from_str::<Value>(text).is_ok();
                (if is_json { "JSON text" } else { "text" }).to_owned()
            }
            Some(kind) => kind.to_owned(),
            None => "?".to_owned(),
        });
    }
    if let Some(structured) = result.get("structuredContent") {
        let names: Vec<&str> =
            structured.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
        parts.push(format!("structured {{{}}}", names.join(", ")));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

/// The rule by which the sent content became the value.
fn why(sent: &Value, given: &Value) -> &'static str {
    let structured = sent.get("structuredContent");
    let text = sent["content"].as_array().into_iter().flatten().find(|block| block["type"] == "text");
    let value = &given["value"];
    if given["ok"] == false {
        return match given["reason"].as_str() {
            Some("tool_error") => "isError: the texts are the message",
            Some("upstream_error") => "an error of the protocol",
            _ => "the world failed",
        };
    }
    match (structured, text) {
        (Some(whole), _) if whole == value => "structuredContent",
        (Some(whole), None) if whole.get("content") == sent.get("content") => {
            "structuredContent repeats the blocks"
        }
        (Some(whole), _) if whole.get("result") == Some(value) => "structuredContent wraps it in result",
        (Some(whole), _) if whole.get("content") == Some(value) => {
            "structuredContent repeats the text in content"
        }
        (Some(_), _) => "structuredContent wraps JSON text",
        (None, None) => "no text and no structuredContent",
        (None, Some(block)) if block["text"] == *value && given["value_kind"] == "text" => "the first text",
        (None, Some(_)) => "the first text is JSON, decoded",
    }
}

/// Makes a text independent of place and time of the test.
fn steady(text: &str, folder: &str) -> String {
    let mut text = text.replace(folder, "$DIR");
    for (pattern, stands_for) in [
        (r"\b[0-9a-f]{40}\b", "$HASH"),
        (r"\b[0-9a-f]{7}\b", "$HASH"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d ?[-+.:0-9Z]*", "$TIME"),
        (r"\d\d?:\d\d:\d\d [AP]M", "$TIME"),
        (r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day", "$DAY"),
        (r"127\.0\.0\.1:\d+", "$HOST"),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, NoExpand(stands_for)).into_owned();
    }
    text
}

fn cell(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', " ");
    match text.char_indices().nth(150) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn results_are_what_the_table_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    let root = path.to_str().expect("UTF-8");
    files(&path);
    repository(&path);
    let mut upstreams = Upstreams::default();
    for (name, entry) in [
        ("everything", everything()),
        ("fs", filesystem(&path)),
        ("memory", memory(&desk.path().join("memory.json"))),
        ("thinking", sequential_thinking()),
        ("time", time()),
        ("git", git(&path)),
        ("fetch", fetch()),
        ("sqlite", sqlite(&desk.path().join("data.db"))),
    ] {
        upstreams = upstreams.add(name, recorded(entry, &desk.path().join(name)));
    }
    let config = upstreams.write();
    let calls: Vec<(&str, Value)> = CALLS
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let (tool, arguments) = line.split_once(' ').expect("a tool and its arguments");
            let arguments = arguments.replace("$DIR", root);
            (tool, serde_json::from_str(&arguments).unwrap_or_else(|error| panic!("{line}: {error}")))
        })
        .collect();
    let rows: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| {
            let (server, tool) = tool.split_once('/').expect("a server");
            json!({ "server": server, "tool": tool, "args": arguments })
        })
        .collect();
    let context = json!({ "calls": rows }).to_string();
    let program =
        "(mapv (fn [c] (tool/call {:server (:server c) :tool (:tool c) :args (:args c)})) data/calls)";
    let more = ["--max-upstream-calls", "200", "--timeout", "300s", "--context", &context];
    let report = eval(program, &config.flags(&more));
    let given = report["json"].as_array().unwrap_or_else(|| panic!("{report:#}"));

    let mut table = String::from(
        "# What results of real servers are for a program\n\nWritten by `tests/tests/third_party/third_party_results.rs`.\n\n\
         | call | sent | `:value_kind` | `:value` or failure | `:content` | why |\n|---|---|---|---|---|---|\n",
    );
    let mut answers = Answers::read(desk.path());
    for ((tool, arguments), given) in calls.iter().zip(given) {
        let (server, name) = tool.split_once('/').expect("a server");
        let raw = answers.next(server, name);
        let kind = given["value_kind"].as_str().map_or("", |kind| kind);
        let value = match given["ok"] == true {
            true => given["value"].to_string(),
            false => format!(
                "{}: {}",
                given["reason"].as_str().unwrap_or("?"),
                given["message"].as_str().unwrap_or("?")
            ),
        };
        let content: Vec<&str> = given["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["type"].as_str())
            .collect();
        let row = [
            &*format!("{tool} {arguments}"),
            &*sent(&raw),
            kind,
            &*value,
            &*content.join(", "),
            why(&raw, given),
        ]
        .map(|text| cell(&steady(text, root)));
        writeln!(table, "| {} |", row.join(" | ")).expect("memory");
    }
    assert!(given.len() >= 60, "{} results", given.len());
    let golden = workspace().join("tests/third_party/results.md");
    if std::env::var_os("PTC_UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &table).expect("written");
    }
    let expected = std::fs::read_to_string(&golden).expect("the golden file");
    for (found, wanted) in table.lines().zip(expected.lines()) {
        assert_eq!(found, wanted);
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}

/// The answers of servers to calls, in order.
struct Answers {
    transcripts: std::collections::HashMap<String, Vec<(String, Value)>>,
}

impl Answers {
    fn read(folder: &Path) -> Answers {
        let mut transcripts = std::collections::HashMap::new();
        for file in std::fs::read_dir(folder).expect("a folder").flatten() {
            let Ok(text) = std::fs::read_to_string(file.path()) else { continue };
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let calls =
                lines.iter().map(|line| &line["message"]).filter(|message| message["method"] == "tools/call");
            let answered = calls.map(|call| {
                let is_answer = |line: &&Value| {
                    line["from"] == "server"
                        && line["message"]["id"] == call["id"]
                        && line["message"].get("method").is_none()
                };
                let answer = lines.iter().find(is_answer).expect("an answer");
                (
                    call["params"]["name"].as_str().expect("a name").to_owned(),
                    answer["message"]["result"].clone(),
                )
            });
            transcripts
                .insert(file.file_name().to_str().expect("UTF-8").to_owned(), answered.rev().collect());
        }
        Answers { transcripts }
    }

    fn next(&mut self, server: &str, tool: &str) -> Value {
        let (name, result) = self.transcripts.get_mut(server).and_then(Vec::pop).expect("a call");
        assert_eq!(name, tool);
        result
    }
}
