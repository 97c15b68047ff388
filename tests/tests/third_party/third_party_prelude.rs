//! The worked example of a prelude, `examples/desk`, over two third-party servers: its tests, the text that a model
//! gets, and the one-line program that the model writes. `PTC_BLESS=1` writes `inventory.txt`.

use ptc_tests::binary::{run_ptc, value};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::third_party::{filesystem, memory};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use ptc_tests::workspace;
use serde_json::{Value, json};
use tempfile::TempDir;

fn file(name: &str) -> String {
    workspace().join("examples/desk").join(name).to_str().expect("a path").to_owned()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_default()
}

/// The servers of the example, the folder that they may change, and their configuration.
fn servers() -> (TempDir, ConfigFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("memory.jsonl");
    std::fs::copy(file("memory.jsonl"), &graph).expect("copied");
    let config = Upstreams::default()
        .add("files", filesystem(&workspace().join("examples/desk")))
        .add("memory", memory(&graph))
        .write();
    (folder, config)
}

const ANSWER: &str = "[\"Login loops after the update\" \"Webhook signatures do not match\"]";

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn its_assertions_hold_against_both_servers() {
    let (_folder, config) = servers();
    let prelude = file("desk.clj");
    let checked = run_ptc(&[&["prelude", "check", &prelude], config.flags(&[]).as_slice()].concat(), "");
    assert_eq!(checked.stdout, "desk: ok (5 exports)\n", "{checked:?}");
    let tests = file("desk_test.clj");
    let tested =
        run_ptc(&[&["prelude", "test", &tests], config.flags(&["-p", &prelude]).as_slice()].concat(), "");
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.stdout.ends_with("\n9 held, 0 failed\n"), "{tested:?}");
}

#[test]
fn its_assertions_hold_against_what_the_servers_once_said() {
    let (prelude, tests, calls) = (file("desk.clj"), file("desk_test.clj"), file("calls.json"));
    let tested = run_ptc(&["prelude", "test", &tests, "-p", &prelude, "--replay", &calls], "");
    assert!(tested.stdout.ends_with("\n9 held, 0 failed\n"), "{tested:?}");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_model_is_told_of_it_and_writes_one_line() {
    let (_folder, config) = servers();
    let prelude = file("desk.clj");
    let flags = config.flags(&["-p", &prelude]);
    let inventory = run_ptc(&["prelude", "inventory", &prelude], "").stdout;
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::write(file("inventory.txt"), &inventory).expect("written");
    }
    assert_eq!(read("inventory.txt"), inventory, "PTC_BLESS=1 writes it");
    let program = read("program.ptc");
    assert_eq!(program.trim().lines().count(), 1);
    let mut server = Server::start(&flags);
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let tool = tools.as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == "lisp_eval"));
    let description = tool.and_then(|tool| tool["description"].as_str()).expect("a description");
    assert!(description.contains(inventory.trim_end()), "{description}");
    assert_eq!(text_of(&server.run(&program)), ANSWER);
    server.end();
    // A note is there for the next program.
    let noted = "(do (desk/note! \"Cleo\" \"city: Oslo\") (:city (desk/customer \"Cleo\")))";
    assert_eq!(value(noted, &flags), "\"Oslo\"");
}

#[test]
fn its_configuration_names_the_versions_that_are_tested() {
    let config: Value = serde_json::from_str(&read("upstreams.json")).expect("JSON");
    let pins = std::fs::read_to_string(workspace().join("tests/third_party/package.json")).expect("pins");
    let pins: Value = serde_json::from_str(&pins).expect("JSON");
    for (name, package) in [
        ("files", "@modelcontextprotocol/server-filesystem"),
        ("memory", "@modelcontextprotocol/server-memory"),
    ] {
        let version = pins["dependencies"][package].as_str().expect("a pin");
        assert_eq!(config["mcpServers"][name]["args"][1], format!("{package}@{version}"));
    }
}
