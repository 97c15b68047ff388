//! Checks that tools can be called from `doc` alone, and from `dir` alone: arguments are made from the signature, without any other
//! knowledge, and a JSON Schema validator judges them.

use crate::binary::eval;
use crate::signature::{Style, arguments, read, read_start};
use crate::third_party::python;
use crate::workspace;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const DOCUMENTED: &str = r#"
    (mapcat (fn [server]
              (map (fn [line]
                     (let [tool (str (:name server) "/" (first (str/split line #" ")))]
                       {:tool tool :line line :doc (doc tool) :schema (:input_schema (meta tool))}))
                   (dir (:name server) {:limit 200})))
            (tool/servers))"#;

/// Makes arguments for every tool of the servers in a configuration file. Gives the number of tools, and the misfits.
pub fn misfits(config: &str) -> (usize, String) {
    let flags = ["--upstreams-config", config, "--max-catalog-ops", "10000", "--timeout", "600s"];
    let report = eval(DOCUMENTED, &flags);
    let tools = report["json"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let mut cases = String::new();
    for tool in tools {
        let (name, doc) = (tool["tool"].as_str().unwrap(), tool["doc"].as_str().unwrap());
        let signature = arguments(doc).unwrap_or_else(|| panic!("{name} has no signature: {doc}"));
        // What `dir` says of it suffices, too.
        let line = tool["line"].as_str().unwrap();
        let (_, listed) = line.split_once(' ').unwrap_or_else(|| panic!("no signature: {line}"));
        let (in_list, rest) = read_start(listed);
        assert!(rest.is_empty() || rest.starts_with(" - "), "{line}");
        for style in [Style::Least, Style::First, Style::Last] {
            let name = format!("{name} in dir {style:?} {listed}");
            let case = json!({ "name": name, "schema": tool["schema"], "value": in_list.value(style) });
            writeln!(cases, "{case}").unwrap();
        }
        let read = read(signature);
        for style in [Style::Least, Style::First, Style::Last] {
            let name = format!("{name} {style:?} {signature}");
            let case = json!({ "name": name, "schema": tool["schema"], "value": read.value(style) });
            writeln!(cases, "{case}").unwrap();
        }
    }
    let mut validator = Command::new(python())
        .arg(workspace().join("tests/third_party/validate.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The validator reads all its input before it writes much.
    validator.stdin.take().unwrap().write_all(cases.as_bytes()).unwrap();
    let output = validator.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (tools.len(), String::from_utf8_lossy(&output.stdout).into_owned())
}
