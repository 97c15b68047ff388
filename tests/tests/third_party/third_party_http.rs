//! Third-party MCP servers over HTTP: npm server-everything, the examples of the TypeScript SDK with and without
//! sessions, PyPI fastmcp and mcp 1.x and 2.x.

use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::remote::RemoteProcess;
use ptc_tests::third_party::everything;
use ptc_tests::upstreams::Upstreams;
use serde_json::Value;

/// How `ptc doctor` names the eras.
const HANDSHAKE: &str = "protocol 2025-11-25";
const STATELESS: &str = "protocol 2026-07-28";

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn one_program_joins_servers_of_every_transport_and_era() {
    let streamable = RemoteProcess::everything("streamableHttp");
    let sse = RemoteProcess::everything("sse");
    let stateful = RemoteProcess::sdk_example("simpleStreamableHttp");
    let stateless = RemoteProcess::sdk_example("simpleStatelessStreamableHttp");
    let json = RemoteProcess::sdk_example("jsonResponseStreamableHttp");
    let (fast, fast_stateless) = (RemoteProcess::fastmcp("http"), RemoteProcess::fastmcp("stateless-http"));
    let fast_sse = RemoteProcess::fastmcp("sse");
    let config = Upstreams::default()
        .add("process", everything())
        .add("streamable", streamable.entry("mcp_http", "/mcp"))
        .add("sse", sse.entry("sse", "/sse"))
        .add("stateful", stateful.entry("mcp_http", "/mcp"))
        .add("stateless", stateless.entry("mcp_http", "/mcp"))
        .add("json", json.entry("mcp_http", "/mcp"))
        .add("fast", fast.entry("mcp_http", "/mcp"))
        .add("fast-stateless", fast_stateless.entry("mcp_http", "/mcp"))
        .add("fast-sse", fast_sse.entry("sse", "/sse"))
        .write();
    let program = r#"
        (pmap (fn [[server tool args]]
                (let [r (tool/call {:server server :tool tool :args args})] (if (:ok r) (:value r) r)))
          [["process" "echo" {:message "a"}]
           ["streamable" "echo" {:message "b"}]
           ["sse" "echo" {:message "c"}]
           ["stateful" "greet" {:name "d"}]
           ["stateless" "start-notification-stream" {:interval 1 :count 2}]
           ["json" "greet" {:name "e"}]
           ["fast" "add" {:a 1 :b 2}]
           ["fast-stateless" "add" {:a 3 :b 4}]
           ["fast-sse" "add" {:a 5 :b 6}]])"#;
    assert_eq!(
        value(program, &config.flags(&[])),
        "[\"Echo: a\" \"Echo: b\" \"Echo: c\" \"Hello, d!\" \"Started sending periodic notifications every 1ms\" \
         \"Hello, e!\" 3 7 11]"
    );
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn python_servers_are_spoken_to_in_their_era() {
    let servers = [
        ("old", RemoteProcess::python_sdk(1, "http"), "mcp_http", HANDSHAKE),
        ("old-stateless", RemoteProcess::python_sdk(1, "stateless-http"), "mcp_http", HANDSHAKE),
        ("old-sse", RemoteProcess::python_sdk(1, "sse"), "sse", HANDSHAKE),
        ("new", RemoteProcess::python_sdk(2, "http"), "mcp_http", STATELESS),
        ("new-stateless", RemoteProcess::python_sdk(2, "stateless-http"), "mcp_http", STATELESS),
        ("new-sse", RemoteProcess::python_sdk(2, "sse"), "sse", HANDSHAKE),
        ("fast", RemoteProcess::fastmcp("http"), "mcp_http", STATELESS),
    ];
    for (name, process, transport, protocol) in servers {
        let path = if transport == "sse" { "/sse" } else { "/mcp" };
        let config = Upstreams::default().add(name, process.entry(transport, path)).write();
        let doctor = run_ptc(&[&["doctor"][..], &config.flags(&[])].concat(), "");
        assert!(doctor.code == Some(0) && doctor.stdout.contains(protocol), "{name}: {doctor:?}");
        let program = format!("(map (fn [n] (:value (tool/call '{name}/add {{:a n :b 40}}))) (range 3))");
        assert_eq!(value(&program, &config.flags(&[])), "[40 41 42]", "{name}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_program_cannot_tell_how_its_server_is_reached() {
    let remote = RemoteProcess::everything("streamableHttp");
    let old = RemoteProcess::everything("sse");
    let program = r#"
        (defn call [tool args] (tool/call {:server "everything" :tool tool :args args}))
        [(call "echo" {:message "hello"}) (call "get-sum" {:a 2 :b 40})
         (call "get-structured-content" {:location "Chicago"}) (call "get-tiny-image" {})
         (call "echo" {:message ""})
         (count (filter :ok (pmap (fn [n] (call "echo" {:message (str n)})) (range 20))))]"#;
    let run = |entry: Value| {
        let config = Upstreams::default().add("everything", entry).write();
        let mut report = eval(program, &config.flags(&[]));
        let mut calls = report["upstream_calls"].take();
        for call in calls.as_array_mut().expect("calls") {
            call.as_object_mut().expect("a call").remove("duration_ms");
        }
        // Calls at the same time end in any order.
        calls.as_array_mut().expect("calls").sort_by_key(|call| call.to_string());
        (report["json"].take(), calls)
    };
    let as_process = run(everything());
    assert_eq!(as_process.0[5], 20, "{as_process:?}");
    assert_eq!(run(remote.entry("mcp_http", "/mcp")), as_process);
    assert_eq!(run(old.entry("sse", "/sse")), as_process);
}
