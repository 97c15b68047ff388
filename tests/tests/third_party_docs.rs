//! Tools of servers that we did not write can be called from `doc` alone: arguments that are made of its signature, with
//! nothing else known, fit the schema.

use ptc_tests::binary::eval;
use ptc_tests::signature::{Style, read};
use ptc_tests::third_party::{
    everything, fetch, filesystem, git, memory, python, sequential_thinking, sqlite, time,
};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const DOCUMENTED: &str = r#"
    (mapcat (fn [server]
              (map (fn [line]
                     (let [tool (str (:name server) "/" (first (str/split line #" ")))]
                       {:tool tool :doc (doc tool) :schema (:input_schema (meta tool))}))
                   (dir (:name server) {:limit 200})))
            (tool/servers))"#;

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_tool_can_be_called_from_its_documentation() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    let done = Command::new("git").current_dir(&path).args(["init", "--quiet"]).status().expect("git runs");
    assert!(done.success());
    let config = Upstreams::default()
        .add("everything", everything())
        .add("fs", filesystem(&path))
        .add("time", time())
        .add("git", git(&path))
        .add("fetch", fetch())
        .add("sqlite", sqlite(&path.join("data.db")))
        .add("memory", memory(&path.join("memory.json")))
        .add("thinking", sequential_thinking())
        .write();
    let report = eval(DOCUMENTED, &config.flags(&["--max-catalog-ops", "10000", "--timeout", "300s"]));
    let tools = report["json"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    assert!(tools.len() >= 50, "only {} tools", tools.len());
    let mut cases = String::new();
    for tool in tools {
        let (name, doc) = (tool["tool"].as_str().expect("a name"), tool["doc"].as_str().expect("a text"));
        let signature = doc.lines().find_map(|line| line.strip_prefix("Args: ")).expect("a signature");
        let arguments = read(signature);
        for style in [Style::Least, Style::First, Style::Last] {
            let name = format!("{name} {style:?} {signature}");
            let case = json!({ "name": name, "schema": tool["schema"], "value": arguments.value(style) });
            writeln!(cases, "{case}").expect("memory");
        }
        assert!(doc.contains(&format!("(meta {})", tool["tool"])), "{doc}");
    }
    let mut validator = Command::new(python())
        .arg(workspace().join("tests/third_party/validate.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python runs");
    // The validator reads all of it before it has much to say.
    validator.stdin.take().expect("a pipe").write_all(cases.as_bytes()).expect("written");
    let output = validator.wait_with_output().expect("it ends");
    let misfits = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && misfits.is_empty(), "{misfits}");
}
