//! The tool list of `ptc serve` in front of servers with few and with many tools: how large it is, and what it names.

use ptc_tests::binary::run_ptc;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, table_server};
use serde_json::{Map, Value, json};
use std::io::Write;
use tempfile::NamedTempFile;

const VERBS: [&str; 5] = ["list", "get", "search", "create", "update"];
const NOUNS: [&str; 4] = ["issues", "comments", "labels", "milestones"];

/// Tools as servers of repositories have them.
fn tools(count: usize) -> Map<String, Value> {
    let pairs = NOUNS.iter().flat_map(|noun| VERBS.map(|verb| (verb, *noun)));
    let tool = |(verb, noun): (&str, &str)| {
        let says = format!(
            "Use this tool to {verb} the {noun} of a repository. Results come in pages of at most 100 items; pass the \
             cursor of one page to get the next."
        );
        let args = json!({ "owner": "string", "repo": "string", "state": "string", "limit": "integer", "cursor": "string" });
        (
            format!("{verb}_{noun}"),
            json!({ "description": says, "annotations": {}, "args": args, "required": ["owner", "repo"] }),
        )
    };
    pairs.take(count).map(tool).collect()
}

/// Servers of so many made-up tools each, at most 20; the file of their tools lives as long as it is held.
fn made_up(servers: &[usize]) -> (NamedTempFile, ConfigFile) {
    let name = |index: usize| format!("server-{index:02}");
    let mut file = NamedTempFile::new().expect("a file");
    let tables: Map<String, Value> = servers
        .iter()
        .enumerate()
        .map(|(index, count)| (name(index), json!({ "tools": tools(*count) })))
        .collect();
    write!(file, "{}", Value::Object(tables)).expect("written");
    let path = file.path().to_str().expect("UTF-8 path").to_owned();
    let config = (0..servers.len()).fold(Upstreams::default(), |upstreams, index| {
        let mut entry = table_server(&path, &name(index));
        entry["description"] = "Repositories".into();
        upstreams.add(&name(index), entry)
    });
    (file, config.write())
}

/// The answer to `tools/list` as text.
fn tool_list(config: &ConfigFile, flags: &[&str]) -> String {
    let mut server = Server::start(&config.flags(flags));
    let list = server.request("tools/list", json!({})).to_string();
    assert_eq!(server.end(), Some(0));
    list
}

#[test]
fn the_tool_list_is_small_and_the_same_bytes_in_every_run() {
    // One tool, ten, a hundred, a thousand.
    let sets: [&[usize]; 4] = [&[1], &[10], &[20; 5], &[20; 50]];
    for servers in sets {
        let (_tables, config) = made_up(servers);
        let list = tool_list(&config, &[]);
        assert_eq!(list, tool_list(&config, &[]), "{servers:?}");
        let value: Value = serde_json::from_str(&list).expect("JSON");
        let description = value["result"]["tools"][0]["description"].as_str().expect("description");
        assert!(description.len() < 2_048, "{} bytes: {description}", description.len());
        assert_eq!(description.contains("  - list_issues"), servers == [1], "{description}");
        assert!(description.contains("server-00"), "{description}");
        assert!(list.len() < 4_096, "{} bytes", list.len());
    }
}

#[test]
fn the_catalog_mode_decides_what_is_listed() {
    let (_tables, config) = made_up(&[20, 3]);
    let inline = tool_list(&config, &["--catalog-mode", "inline"]);
    assert_eq!(inline.matches("  - list_issues - Use this tool to list the issues").count(), 2, "{inline}");
    assert_eq!(inline.matches("\\n  - ").count(), 23, "{inline}");
    let lazy = tool_list(&config, &["--catalog-mode", "lazy"]);
    assert!(lazy.contains("- server-01: Repositories. 3 tools.\\n(dir 'server) lists their tools"), "{lazy}");
    let auto =
        tool_list(&config, &["--catalog-inline-max-tools", "23", "--catalog-inline-max-chars", "2000"]);
    assert!(!auto.contains("  - list_issues - ") && auto.len() < 4_096, "{auto}");
    let refused = run_ptc(&["serve", "--catalog-mode", "everything"], "");
    assert!(refused.stderr.contains("--catalog-mode"), "{refused:?}");
}
