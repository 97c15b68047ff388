//! `proxy-dispatch` through `ptc serve`.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use serde_json::{Value, json};

const ONLY_PROXY: [&str; 2] = ["--tools", "proxy-dispatch"];

/// Two servers with the same tools, and one that never starts.
fn config() -> ConfigFile {
    let mut absent =
        ptc_tests::upstreams::stdio("/nonexistent/server", &["--token", "correct-horse-battery"]);
    absent["required"] = false.into();
    Upstreams::default()
        .add("one", probe_server(&[]))
        .add("two", probe_server(&[]))
        .add("zero", absent)
        .write()
}

/// The result of one call of the tool.
fn dispatch(server: &mut Server, arguments: Value) -> Value {
    let id = server.begin("tools/call", json!({ "name": "proxy-dispatch", "arguments": arguments }));
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

/// What it says, as data.
fn data(server: &mut Server, arguments: Value) -> Value {
    let result = dispatch(server, arguments);
    assert_eq!(result["isError"], false, "{result}");
    serde_json::from_str(&text_of(&result)).unwrap()
}

/// What it says is wrong.
fn wrong(server: &mut Server, arguments: Value) -> String {
    let result = dispatch(server, arguments);
    assert_eq!(result["isError"], true, "{result}");
    text_of(&result)
}

#[test]
fn connections_and_tools_are_listed_and_found() {
    let config = config();
    let mut server = Server::start(&config.flags(&ONLY_PROXY));
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(tools[0]["name"], "proxy-dispatch");
    assert!(tools[0]["description"].as_str().unwrap().ends_with("c1 = one, c2 = two, c3 = zero"), "{tools}");
    let list = data(&mut server, json!({ "action": "list" }));
    let entries = list["connections"].as_array().unwrap();
    let shown = |key: &str| entries.iter().map(|entry| entry[key].clone()).collect::<Value>();
    assert_eq!(shown("alias"), json!(["c1", "c2", "c3"]));
    assert_eq!(shown("name"), json!(["one", "two", "zero"]));
    assert!(entries[0]["tools"][0]["name"] == "echo" && entries[0]["tools"][0].get("inputSchema").is_none());
    assert!(entries[0]["lastRefreshed"].as_str().unwrap().ends_with('Z'), "{list}");
    assert!(entries[2].get("lastRefreshed").is_none() && entries[2]["error"].is_string(), "{list}");
    assert!(!list.to_string().contains("correct-horse"), "{list}");
    let id = entries[1]["id"].as_str().unwrap().to_owned();
    assert!(id.len() == 32 && id != entries[0]["id"], "one id a connection: {list}");
    for name in ["c2", "two", &id] {
        let arguments = json!({ "action": "list", "connection": name, "includeTools": false });
        let one = data(&mut server, arguments)["connections"].clone();
        assert_eq!((&one[0]["id"], one.as_array().unwrap().len()), (&json!(id), 1));
        assert!(one[0].get("tools").is_none());
    }
    let arguments = json!({ "action": "list", "connection": "c1", "includeInputSchema": true });
    assert!(data(&mut server, arguments)["connections"][0]["tools"][0]["inputSchema"].is_object());
    let found = data(&mut server, json!({ "action": "search", "query": "echo", "limit": 1 }));
    assert_eq!((&found["totalMatches"], found["results"].as_array().unwrap().len()), (&json!(2), 1));
    assert_eq!(
        (&found["results"][0]["connection"], &found["results"][0]["name"]),
        (&json!("c1"), &json!("echo"))
    );
    assert_eq!(found["unsearched"][0]["connection"], "c3", "{found}");
    let found = data(&mut server, json!({ "action": "search", "query": "echo", "connection": "c2" }));
    assert_eq!(found["results"][0]["server"], "two");
    // The id does not depend on the process.
    let mut again = Server::start(&config.flags(&ONLY_PROXY));
    let list = data(&mut again, json!({ "action": "list", "connection": "two" }));
    assert_eq!(list["connections"][0]["id"], id);
}

#[test]
fn calls_carry_their_result_once() {
    let config = config();
    let mut server = Server::start(&config.flags(&ONLY_PROXY));
    let call = |tool: &str, arguments: Value| json!({ "action": "call", "connection": "c1", "tool": tool, "arguments": arguments });
    let result = dispatch(&mut server, call("echo", json!({ "v": { "rows": [1, 2] } })));
    let want = json!({ "content": [{ "type": "text", "text": "{\"rows\":[1,2]}" }], "isError": false,
        "action": "call", "connection": "c1", "tool": "echo", "estimatedTokens": 4 });
    assert_eq!(result, want);
    assert_eq!(wrong(&mut server, call("refuse", json!({}))), "no");
    let several = wrong(&mut server, json!({ "action": "call", "tool": "echo" }));
    assert_eq!(several, "several connections have a tool \"echo\": c1 (one), c2 (two); say which");
    let none = wrong(&mut server, json!({ "action": "call", "tool": "eco" }));
    assert!(none.contains("no connection has a tool \"eco\"") && none.contains("c3 (zero): "), "{none}");
    let none = wrong(&mut server, call("eco", json!({})));
    assert!(none.starts_with("no tool 'eco' in upstream 'one'") && none.contains("Did you mean"), "{none}");
    let none = wrong(&mut server, json!({ "action": "list", "connection": "c9" }));
    assert_eq!(none, "there is no connection \"c9\"; there is: c1 (one), c2 (two), c3 (zero)");
    let fields = wrong(&mut server, json!({ "action": "list", "tool": "echo" }));
    assert!(fields.starts_with("`tool` belongs to call, not to list; list takes connection?"), "{fields}");
}

#[test]
fn it_stands_beside_other_tools_and_starts_servers_when_they_are_needed() {
    let config = config();
    let flags = ["--tools", "proxy-dispatch,lisp_eval", "--catalog-snapshot-mode", "live"];
    let mut server = Server::start(&config.flags(&flags));
    assert_eq!(server.text("(+ 1 2)"), "3");
    let call = json!({ "action": "call", "connection": "two", "tool": "echo", "arguments": { "v": 7 } });
    assert_eq!(text_of(&dispatch(&mut server, call)), "7");
}
