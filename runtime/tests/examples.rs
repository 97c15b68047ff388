//! Runs the programs of `examples/` as a user would.
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use crate::common;

#[cfg(feature = "agent")]
use common::http::{HttpServer, Reply};
use std::process::{Command, Output};

/// Runs an example that cargo has built with the tests.
fn example(name: &str, arguments: &[&str]) -> String {
    let path = common::fake_server().with_file_name(name);
    let Output { status, stdout, stderr } = Command::new(path).args(arguments).output().expect("it runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text")
}

#[test]
fn a_program_is_embedded_with_a_tool_a_file_of_servers_and_a_typed_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("upstreams.json");
    let entry = serde_json::json!({"upstreams": {"fake": {"command": common::fake_server()}}});
    std::fs::write(&file, entry.to_string()).expect("a file");
    assert_eq!(example("embed", &[&file.display().to_string()]), "Grace got hello, Grace\n");
}

#[test]
fn the_first_example_of_the_document_runs() {
    assert_eq!(example("first", &[]), "[\"Ada\", \"Grace\"]\n");
    let read = |path: &str| std::fs::read_to_string(path).expect("a file of the repository");
    let document = read(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/library.md"));
    let source = read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/first.rs"));
    let (_, code) = source.split_once("\n\n").expect("a head");
    assert!(document.contains(code), "docs/library.md does not show examples/first.rs");
}

#[test]
fn limits_and_failures_are_data() {
    let want = "[1 3 6] (3 calls)\n\
                tool_call_limit_exceeded: tool/next was not called: the program has used up its calls (3 calls)\n\
                tool_error: Tool 'next' failed: \"101 is too large\" (1 calls)\n";
    assert_eq!(example("limits", &[]), want);
}

#[test]
fn programs_of_a_session_build_on_each_other_and_lines_are_streamed() {
    let want = "(def prices [3 4 5]) => #'prices\n(defn total [xs] (reduce + xs)) => #'total\n\
                (total prices) => 12\nthe total is 12\nprinted 0\nprinted 1\nprinted 2\n";
    assert_eq!(example("session", &[]), want);
}

#[cfg(feature = "agent")]
#[tokio::test]
async fn an_agent_asks_its_model_until_the_answer_is_there() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let count = AtomicUsize::new(0);
    let server = HttpServer::new(move |_| {
        let program = match count.fetch_add(1, Ordering::Relaxed) {
            0 => {
                "```clojure\n(def priced (mapv (fn [p] {:name p :price (tool/price p)}) data/products))\n```"
            }
            _ => "```clojure\n(return (apply max-key :price priced))\n```",
        };
        Reply::json(&serde_json::json!({"choices": [{"message": {"content": program}}]}))
    });
    let url = server.await.url("/v1");
    let printed = tokio::task::spawn_blocking(move || example("agent", &["some-model", &url])).await;
    assert_eq!(printed.expect("it ran"), "turn 1: Continued\nturn 2: Answered\nwheelbarrow for 27.5\n");
}
