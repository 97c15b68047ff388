//! Nodes with sessions of programs, each with its own way to the database that they share.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use crate::any_node::messages;
use ptc_tests::binary::run_ptc;
use ptc_tests::postgres::{Database, Way};
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{Door, WebServer, stateless_body, stateless_headers};
use serde_json::{Value, json};

/// Nodes with `--sessions`.
pub(super) struct SessionNodes {
    /// Where they are reached.
    pub(super) nodes: Vec<Door>,
    pub(super) ways: Vec<Way>,
    pub(super) config: ConfigFile,
    pub(super) database: Database,
    pub(super) servers: Vec<WebServer>,
}

impl SessionNodes {
    /// `None`: PostgreSQL is not installed.
    pub(super) fn start(count: usize, flags: &[&str]) -> Option<SessionNodes> {
        let database = Database::start()?;
        // The database may still be starting.
        while run_ptc(&["runs", "--state", &database.url()], "").code != Some(0) {}
        let config = Upstreams::probe().add("other", probe_server(&[])).write();
        let ways: Vec<Way> = (0..count).map(|_| Way::to(&database)).collect();
        let servers: Vec<WebServer> = ways.iter().map(|way| node(&config, &way.url(), flags)).collect();
        let nodes = servers.iter().map(WebServer::door).collect();
        Some(SessionNodes { nodes, ways, config, database, servers })
    }

    /// One more node, with a way of its own.
    pub(super) fn one_more(&self, flags: &[&str]) -> WebServer {
        node(&self.config, &self.database.url(), flags)
    }
}

fn node(config: &ConfigFile, state: &str, flags: &[&str]) -> WebServer {
    let words = ["--sessions", "--state", state, "--upstream-call-timeout", "60s", "--timeout", "60s"];
    WebServer::start(&config.flags(&[&words[..], flags].concat()))
}

/// The result of a tool of sessions.
pub(super) fn tool(node: &Door, name: &str, arguments: Value) -> Value {
    tool_as(node, "", name, arguments)
}

/// The same with a token.
pub(super) fn tool_as(node: &Door, token: &str, name: &str, arguments: Value) -> Value {
    let body = stateless_body(1, "tools/call", json!({ "name": name, "arguments": arguments }));
    let authorization = format!("Bearer {token}");
    let mut headers = stateless_headers("tools/call", name);
    headers.push(("Authorization", &authorization));
    let answer = node.try_connect().unwrap().ask("POST", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    messages(&answer).pop().unwrap()["result"].clone()
}

/// What a tool says of a session.
pub(super) fn call(node: &Door, name: &str, id: &str) -> String {
    text_of(&tool(node, name, json!({ "session_id": id })))
}

/// The first line of the answer to a program: its value.
pub(super) fn eval(node: &Door, id: &str, program: &str) -> String {
    let answer = tool(node, "lisp_session_eval", json!({ "session_id": id, "program": program }));
    text_of(&answer).lines().next().unwrap_or_default().to_owned()
}

/// A new session.
pub(super) fn start(node: &Door) -> String {
    let started = tool(node, "lisp_session_start", json!({}));
    started["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}
