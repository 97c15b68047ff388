//! `docs/models.md` shows what models see: descriptions and answers of `ptc serve` over the two servers of the demo.
//! `PTC_BLESS=1 cargo test -p ptc-tests --test product models` rewrites it.

#[path = "../../src/document_section.rs"]
#[allow(dead_code, reason = "the tables are of other documents")]
mod document_section;

use document_section::assert_section;
use ptc_tests::binary;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use serde_json::json;

/// Programs and what they show.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "A value",
        "(->> (:value (tool/call {:server \"desk\" :tool \"search_tickets\" :args {:status \"open\"}}))\n     \
         :tickets (map :priority) frequencies)",
    ),
    ("Documentation", "(doc 'shop/list_orders)"),
    ("A mistake", "(tool/call {:server \"shop\" :tool \"list_orders\" :args {:customer \"c-01\"}})"),
    ("A call that failed", "(tool/call {:server \"shop\" :tool \"get_customer\" :args {:id \"c-99\"}})"),
];

/// The two servers of the demo. `ptc` refuses to start itself, so a shell starts them.
fn demo() -> ConfigFile {
    let server =
        |name: &str| stdio("sh", &["-c", &format!("exec '{}' demo-server {name}", binary::path().display())]);
    Upstreams::default().add("desk", server("desk")).add("shop", server("shop")).write()
}

fn fenced(text: &str) -> String {
    format!("```text\n{}\n```\n", text.trim_end())
}

#[test]
fn the_texts_are_those_of_the_server() {
    let config = demo();
    let mut server = Server::silent(binary::ptc(
        &["serve"]
            .into_iter()
            .chain(config.flags(&["--tools", "lisp_eval,execute_program", "--python-unsandboxed"]))
            .collect::<Vec<_>>(),
    ));
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tests", "version": "1" } });
    let greeting = server.request("initialize", hello);
    assert_section(
        "models.md",
        "instructions",
        &fenced(greeting["result"]["instructions"].as_str().unwrap()),
    );
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let list = server.request("tools/list", json!({}));
    for name in ["lisp_eval", "execute_program"] {
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
        assert_section("models.md", name, &fenced(tool["description"].as_str().unwrap()));
    }
    let mut text = String::new();
    for (title, program) in PROGRAMS {
        text += &format!(
            "{title}:\n\n```clojure\n{program}\n```\n\n{}\n",
            fenced(&text_of(&server.run(program)))
        );
    }
    assert_section("models.md", "answers", &text);
}
