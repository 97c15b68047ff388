//! Tests of `ptc` in front of real servers, which are copies of the binary that serve the demo's sample data.

use crate::binary::support::{Server, run, stderr, stdout};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

/// A configuration file with the two sample servers.
fn configuration() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    // The copy has another path, because `ptc` refuses to start its own binary as an upstream.
    let copy: PathBuf = folder.path().join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &copy).expect("copied");
    let server =
        |name: &str| json!({ "transport": "mcp_stdio", "command": copy, "args": ["demo-server", name] });
    let file = folder.path().join("upstreams.json");
    let config = json!({ "upstreams": { "shop": server("shop"), "desk": server("desk") } });
    std::fs::write(&file, config.to_string()).expect("written");
    (folder, file.to_str().expect("UTF-8 path").to_owned())
}

#[test]
fn a_program_joins_two_servers() {
    let (_folder, file) = configuration();
    let mut server = Server::start(&["--upstreams-config", &file, "--response-profile", "debug"]);
    let tool = server.ask(1, "tools/list", json!({}))["result"]["tools"][0].clone();
    let description = tool["description"].as_str().expect("description");
    assert!(description.len() < 2_048);
    assert!(description.contains("- shop:") && description.contains("list_orders"), "{description}");
    assert_eq!(tool["annotations"]["readOnlyHint"], false);

    let program = r#"
        (let [call (fn [tool id] (:value (tool/call {:server "shop" :tool tool :args {:id id :customer_id id}})))
              missing (tool/call {:server "shop" :tool "get_customer" :args {:id "nobody"}})]
          {:names (pmap (fn [id] (:name (call "get_customer" id))) ["c-01" "c-02"])
           :orders (count (:orders (call "list_orders" "c-01")))
           :missing (:reason missing)})"#;
    let content = server.eval(2, json!({ "program": program }))["structuredContent"].clone();
    assert_eq!(content["status"], "ok", "{content}");
    assert_eq!(content["value"]["missing"], "tool_error");
    assert_eq!(content["value"]["names"].as_array().map(Vec::len), Some(2));
    let calls = content["upstream_calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call["server"] == "shop" && call["effect"] == "read"));
    let metrics = &content["ptc_metrics"];
    assert_eq!((&metrics["upstream_ok_count"], &metrics["upstream_error_count"]), (&json!(3), &json!(1)));
    assert!(metrics["payload_reduction_ratio"].as_f64().expect("ratio") > 10.0, "{metrics}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn programmer_faults_end_the_program() {
    let (_folder, file) = configuration();
    let mut server = Server::start(&["--upstreams-config", &file]);
    let mut text = |id, program: &str| {
        server.eval(id, json!({ "program": program }))["content"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let unknown_server = text(1, "(let [s \"nope\"] (tool/call {:server s :tool \"x\"}))");
    assert!(unknown_server.contains("no upstream 'nope' configured"), "{unknown_server}");
    let unknown_tool = text(2, "(let [t \"nope\"] (tool/call {:server \"shop\" :tool t}))");
    assert!(unknown_tool.contains("no tool 'nope' in upstream 'shop'"), "{unknown_tool}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn tools_shows_states_and_signatures() {
    let (_folder, file) = configuration();
    let output = run(&["tools", "--upstreams-config", &file], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("shop ready, 2 tools"), "{text}");
    assert!(text.contains("list_orders {:customer_id string}"), "{text}");
}

#[test]
fn eval_and_batch_call_servers_too() {
    let (_folder, file) = configuration();
    let program = r#"(:id (:value (tool/call {:server "shop" :tool "get_customer" :args {:id "c-03"}})))"#;
    let output = run(&["eval", program, "--upstreams-config", &file, "--output", "json"], "");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&report["json"], &report["upstream_calls"][0]["status"]), (&json!("c-03"), &json!("ok")));
    let line = json!({ "id": 1, "program": program }).to_string();
    let output = run(&["batch", "--upstreams-config", &file], &line);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["value"], "\"c-03\"");
}

/// An optional server starts in the background. The handshake does not wait for it, and the tool list has it
/// once it is ready.
#[test]
fn initialize_is_answered_while_a_server_still_starts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("sample-server");
    std::fs::copy(env!("CARGO_BIN_EXE_ptc"), &copy).expect("copied");
    let file = folder.path().join("hosts.json");
    let config = json!({ "mcpServers": {
        "shop": { "command": copy, "args": ["demo-server", "shop"] },
        // This server never answers, and its handshake timeout exceeds the test's.
        "silent": { "command": "sleep", "args": ["600"], "handshake_timeout_ms": 600_000 },
    } });
    std::fs::write(&file, config.to_string()).expect("written");
    let mut server = Server::start(&["--upstreams-config", file.to_str().expect("UTF-8")]);
    let answer = server.ask(1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
    // Before `notifications/initialized` the server sends nothing unasked, so the test asks for the list
    // until it is complete.
    let mut id = 1;
    let tool = loop {
        id += 1;
        let tool = server.ask(id, "tools/list", json!({}))["result"]["tools"][0].clone();
        if tool["description"].as_str().expect("text").contains("- shop: 2 tools") {
            break tool;
        }
    };
    assert!(tool["description"].as_str().expect("text").contains("- silent: Tools not loaded"), "{tool}");
    let text = server
        .eval(id + 1, json!({ "program": "(:name (:value (tool/call 'shop/get_customer {:id \"c-07\"})))" }));
    assert_eq!(text["isError"], false, "{text}");
    assert_eq!(server.end(), Some(0));
}

/// Two mandatory servers of `upstreams`: one starts, the other one fails in the way that `how` says.
fn strict(how: Value) -> (TempDir, String) {
    let (folder, file) = configuration();
    let text = std::fs::read_to_string(&file).expect("the file");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["upstreams"]["other"] = how;
    std::fs::write(&file, config.to_string()).expect("written");
    (folder, file)
}

/// Mandatory servers decide the tool list, so only the list waits for them.
#[test]
fn initialize_is_answered_while_a_server_that_has_to_start_still_does() {
    let slow = json!({ "transport": "mcp_stdio", "command": "sh", "handshake_timeout_ms": 600_000,
        "args": ["-c", "read line; exec sleep 600"] });
    let (_folder, file) = strict(slow);
    let mut server = Server::start(&["--upstreams-config", &file]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    assert_eq!(server.ask(1, "initialize", hello)["result"]["serverInfo"]["name"], "ptc");
    assert_eq!(server.ask(2, "ping", json!({}))["result"], json!({}));
    server.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }));
    // The list would wait for ten minutes; the end of the input does not.
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_list_that_waited_is_that_of_all_strict_servers() {
    let (_folder, file) = configuration();
    let mut server = Server::start(&["--upstreams-config", &file]);
    let list = server.ask(1, "tools/list", json!({}));
    let text = list["result"]["tools"][0]["description"].as_str().expect("text").to_owned();
    assert!(text.contains("- shop: 2 tools"), "{text}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_strict_start_that_fails_ends_a_server_that_was_greeted_with_the_reason() {
    let (_folder, file) = strict(json!({ "transport": "mcp_stdio", "command": "no-such-program-for-ptc" }));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {} } });
    let output = run(&["serve", "--upstreams-config", &file], &format!("{hello}\n"));
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("\"protocolVersion\":\"2025-11-25\""), "{}", stdout(&output));
    let told = stderr(&output);
    assert_eq!(told.matches("no-such-program-for-ptc").count(), 1, "one line a failure: {told}");
}
