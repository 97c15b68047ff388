//! Nodes that share a database, where PostgreSQL is installed: any request may go to any of them.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use ptc_tests::PATIENCE;
use ptc_tests::binary::run_ptc;
use ptc_tests::postgres::Database;
use ptc_tests::processes::eventually;
use ptc_tests::serve::text_of;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{
    Answer, Browser, STATELESS, SessionClient, WebServer, after_a_call, begin, program, stateless_headers,
    stateless_params,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

const VERSIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

pub(crate) const FORM: &str = r#"(get-in (tool/call 'probe/ask {:message "Delete it?"
    :requestedSchema {:type "object" :properties {:sure {:type "boolean"}}} :secret 1}) [:value 0 "action"])"#;

/// Nodes of one database.
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<WebServer>,
    pub(crate) _config: ConfigFile,
    pub(crate) _database: Database,
}

impl Nodes {
    /// `None`: PostgreSQL is not installed.
    pub(crate) fn start(count: usize, flags: &[&str]) -> Option<Nodes> {
        let database = Database::start()?;
        let state = database.url();
        // The database may still be starting.
        while run_ptc(&["runs", "--state", &state], "").code != Some(0) {}
        let config = Upstreams::probe().add("other", probe_server(&[])).write();
        let words =
            [&["--state", &state, "--upstream-call-timeout", "60s", "--timeout", "60s"], flags].concat();
        let nodes = (0..count).map(|_| WebServer::start(&config.flags(&words))).collect();
        Some(Nodes { nodes, _config: config, _database: database })
    }
}

/// The messages of an answer.
pub(crate) fn messages(answer: &Answer) -> Vec<Value> {
    match answer.header("content-type") {
        Some("text/event-stream") => answer.events(),
        _ => vec![answer.json()],
    }
}

/// The result of a request of this session at this node.
pub(crate) fn request(node: &WebServer, client: &mut SessionClient, method: &str, params: Value) -> Value {
    let body = client.body(method, params);
    let answer = node.ask("POST", &client.headers(), &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    messages(&answer).pop().unwrap()
}

pub(crate) fn eval(node: &WebServer, client: &mut SessionClient, text: &str) -> String {
    text_of(&request(node, client, "tools/call", program(text))["result"])
}

pub(crate) fn offering(node: &WebServer, version: &str) -> SessionClient {
    SessionClient::offering(node, version, &json!({ "elicitation": {} }), &[])
}

/// A client with a session of the latest revision that has sessions, with these headers.
pub(crate) fn offering_with(node: &WebServer, headers: &[(&str, &str)]) -> SessionClient {
    SessionClient::offering(node, "2025-11-25", &json!({ "elicitation": {} }), headers)
}

/// A request that has no answer yet.
pub(crate) struct Pending(pub(crate) Browser, pub(crate) Answer);

impl Pending {
    pub(crate) fn begin(node: &WebServer, client: &mut SessionClient, text: &str) -> Pending {
        let mut browser = client.begin_program(node, text);
        let head = browser.head().unwrap();
        Pending(browser, head)
    }

    pub(crate) fn next(&mut self) -> Value {
        let event = self.0.event(&self.1);
        event.unwrap_or_else(|| panic!("{:?}", self.1))
    }
}

#[test]
fn a_session_goes_on_at_every_node_and_ends_at_all_of_them() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(3, &[]) else { return };
    for version in VERSIONS {
        let mut client = SessionClient::begin(&nodes[0], version, &[]);
        for round in 0..6 {
            assert_eq!(eval(&nodes[round % 3], &mut client, "(+ 1 2)"), "3");
        }
        let wrong =
            [("Mcp-Session-Id", client.headers[0].1.as_str()), ("MCP-Protocol-Version", "2024-11-05")];
        let body = client_body("ping");
        assert_eq!(nodes[1].ask("POST", &wrong, &body).status, 400);
        assert_eq!(nodes[1].ask("DELETE", &client.headers(), "").status, 204);
        for node in &nodes {
            eventually("the session ends", || node.ask("POST", &client.headers(), &body).status == 404);
        }
    }
}

pub(crate) fn client_body(method: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string()
}

#[test]
fn more_sessions_than_a_node_may_have_go_on_at_every_node() {
    let Some(Nodes { nodes, _config, _database }) =
        Nodes::start(2, &["--http-max-sessions", "3", "--http-max-sessions-per-owner", "2"])
    else {
        return;
    };
    let mut clients: Vec<SessionClient> =
        (0..5).map(|number| offering(&nodes[number % 2], "2025-11-25")).collect();
    for round in 0..4 {
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(eval(&nodes[(round + number) % 2], client, "(+ 1 2)"), "3");
        }
    }
    // Sessions with a request are not dropped for others, so there is no room.
    let held = clients[1].body("tools/call", after_a_call("(tool/call 'probe/hold {})"));
    let _held = begin(&nodes[0], &clients[1].headers(), &held);
    let mut asked = Pending::begin(&nodes[0], &mut clients[0], &FORM.replace("probe/", "other/"));
    asked.next();
    let body = clients[2].body("ping", json!({}));
    assert_eq!(nodes[0].ask("POST", &clients[2].headers(), &body).status, 429);
    assert_eq!(nodes[1].ask("POST", &clients[2].headers(), &body).status, 200);
}

#[test]
fn an_id_that_is_changed_or_of_another_token_is_no_session() {
    let tokens = tempfile::NamedTempFile::new().unwrap();
    let [one, other] = ["a", "b"].map(|letter| letter.repeat(40));
    let mut text = String::new();
    for (name, token) in [("one", &one), ("other", &other)] {
        let hash = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        let hash: String = hash.as_ref().iter().fold(String::new(), |mut all, byte| {
            let _ = write!(all, "{byte:02x}");
            all
        });
        text.push_str(&format!("[{name}]\nsha256 = \"{hash}\"\n"));
    }
    std::fs::write(tokens.path(), text).unwrap();
    let Some(Nodes { nodes, _config, _database }) =
        Nodes::start(2, &["--http-tokens", tokens.path().to_str().unwrap()])
    else {
        return;
    };
    let [one, other] = [one, other].map(|token| format!("Bearer {token}"));
    let client = SessionClient::begin(&nodes[0], "2025-11-25", &[("Authorization", &one)]);
    let id = &client.headers.iter().find(|(name, _)| name == "Mcp-Session-Id").unwrap().1;
    let status = |token: &str, id: &str| {
        let headers = [("Authorization", token), ("Mcp-Session-Id", id)];
        nodes[1].ask("POST", &headers, &client_body("ping")).status
    };
    assert_eq!(status(&other, id), 404);
    let mut changed = id.clone();
    let last = if changed.pop() == Some('A') { 'B' } else { 'A' };
    changed.push(last);
    for wrong in [&changed, &id[..id.len() - 1], "mcp_", "mcp_AAAA"] {
        assert_eq!(status(&one, wrong), 404, "{wrong}");
    }
    assert_eq!(status(&one, id), 200);
}

#[test]
fn an_answer_to_a_question_may_go_to_every_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    for version in VERSIONS {
        let mut client = offering(&nodes[0], version);
        for round in 0..4 {
            // The ids of requests are different, though each node numbers its own.
            let mut run = Pending::begin(&nodes[round % 2], &mut client, FORM);
            let question = run.next();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let said = json!({ "result": { "action": "decline" } });
            assert_eq!(client.respond(&nodes[(round + 1) % 2], &question, &said), 202);
            assert_eq!(text_of(&run.next()["result"]), "\"decline\"");
        }
        let mut runs = nodes.iter().map(|node| Pending::begin(node, &mut client, FORM)).collect::<Vec<_>>();
        let questions: Vec<Value> = runs.iter_mut().map(Pending::next).collect();
        assert_ne!(questions[0]["id"], questions[1]["id"]);
    }
}

#[test]
fn a_cancellation_may_go_to_every_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let mut run = Pending::begin(&nodes[0], &mut client, FORM);
    run.next();
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    assert_eq!(nodes[1].ask("POST", &client.headers(), &cancel.to_string()).status, 202);
    let ended = loop {
        let message = run.next();
        if message.get("result").is_some() {
            break message;
        }
    };
    assert!(text_of(&ended["result"]).starts_with("cancelled: "), "{ended}");
}

#[test]
fn the_level_of_log_messages_is_that_of_every_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let mut client = SessionClient::begin(&nodes[0], "2025-11-25", &[]);
    // Both have the session before.
    eval(&nodes[1], &mut client, "1");
    let level = |client: &mut SessionClient, node: &WebServer, level: &str| {
        request(node, client, "logging/setLevel", json!({ "level": level }));
    };
    let logged = |client: &mut SessionClient, node: &WebServer| {
        let body = client.body("tools/call", program("(println 1)"));
        let answer = node.ask("POST", &client.headers(), &body);
        messages(&answer).iter().any(|message| message["method"] == "notifications/message")
    };
    level(&mut client, &nodes[0], "debug");
    let is_logged = logged(&mut client, &nodes[0]);
    eventually("the level is known", || logged(&mut client, &nodes[1]) == is_logged);
    let mut later = SessionClient::begin(&nodes[0], "2025-11-25", &[]);
    level(&mut later, &nodes[0], "debug");
    assert_eq!(logged(&mut later, &nodes[1]), is_logged);
}

/// A stateless request.
pub(crate) fn stateless(
    node: &WebServer,
    method: &str,
    name: &str,
    params: Value,
    capabilities: Value,
) -> Value {
    let params = stateless_params(params, capabilities);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = stateless_headers(method, name);
    messages(&node.ask("POST", &headers, &body)).pop().unwrap()
}

#[test]
fn a_call_that_waits_for_its_client_goes_on_at_every_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    assert_eq!(STATELESS, "2026-07-28");
    let able = json!({ "elicitation": {} });
    let mut params = program(FORM);
    let asked = stateless(&nodes[0], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let question = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["inputResponses"] = json!({ question: { "action": "decline" } });
    params["requestState"] = "unknown".into();
    let refused = stateless(&nodes[1], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    params["requestState"] = asked["result"]["requestState"].clone();
    let done = stateless(&nodes[1], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert_eq!(text_of(&done["result"]), "\"decline\"");
    // It works once, everywhere.
    for node in &nodes {
        let refused = stateless(node, "tools/call", "lisp_eval", params.clone(), able.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[test]
fn a_task_is_that_of_every_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let mut params = program(FORM);
    params["task"] = json!({});
    let begun = request(&nodes[0], &mut client, "tools/call", params.clone());
    let id = begun["result"]["task"]["taskId"].clone();
    let named = json!({ "taskId": id });
    eventually("the task asks", || {
        let state = request(&nodes[1], &mut client, "tasks/get", named.clone());
        state["result"]["status"] == "input_required"
    });
    // The question comes on the stream of `tasks/result`, and its answer goes to a third place.
    let body = client.body("tasks/result", named.clone());
    let mut browser = nodes[1].connect();
    browser.send("POST", &client.headers(), &body);
    let head = browser.head().unwrap();
    let mut waiting = Pending(browser, head);
    let question = waiting.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client.respond(&nodes[1], &question, &json!({ "result": { "action": "decline" } }));
    assert_eq!(text_of(&waiting.next()["result"]), "\"decline\"");
    let begun = request(&nodes[0], &mut client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    let cancelled = request(&nodes[1], &mut client, "tasks/cancel", named.clone());
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(request(&nodes[0], &mut client, "tasks/get", named)["result"]["status"], "cancelled");
    let unknown = request(&nodes[1], &mut client, "tasks/get", json!({ "taskId": "nothing" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn a_task_of_a_node_that_was_killed_goes_on_at_another_one() {
    let Some(Nodes { mut nodes, _config, _database }) = Nodes::start(3, &["--lease", "1s"]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let mut params = program(&FORM.replace("[:value 0 \"action\"]", "[:reason]"));
    params["task"] = json!({});
    let begun = request(&nodes[0], &mut client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    eventually("the task asks", || {
        request(&nodes[0], &mut client, "tasks/get", named.clone())["result"]["status"] == "input_required"
    });
    // With SIGKILL.
    drop(nodes.remove(0));
    eventually("its lease is over", || {
        let body = client.body("tasks/get", named.clone());
        let answer = nodes[0].ask("POST", &client.headers(), &body);
        assert!([200, 503].contains(&answer.status), "{answer:?}");
        answer.status == 200
    });
    // From then on it is that of the node that has taken it over.
    let done = request(&nodes[1], &mut client, "tasks/result", named);
    assert_eq!(text_of(&done["result"]), ":outcome_unknown");
}

#[test]
fn of_nodes_that_start_together_one_goes_on_with_a_task() {
    let Some(Nodes { mut nodes, _config, _database }) = Nodes::start(1, &["--lease", "1s"]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let mut params = program(&FORM.replace("[:value 0 \"action\"]", "[:reason]"));
        params["task"] = json!({});
        let begun = request(&nodes[0], &mut client, "tools/call", params);
        let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
        eventually("the task asks", || {
            request(&nodes[0], &mut client, "tasks/get", named.clone())["result"]["status"]
                == "input_required"
        });
        tasks.push(named);
    }
    // With SIGKILL.
    drop(nodes.remove(0));
    let state = _database.url();
    let is_interrupted = || {
        let listed = run_ptc(&["runs", "list", "--output", "json", "--state", &state], "").stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["runs"].as_array().unwrap().iter().all(|run| run["status"] == "interrupted")
    };
    eventually("its leases are over", is_interrupted);
    let flags = _config.flags(&["--state", &state, "--lease", "1s", "--timeout", "60s"]);
    let nodes: Vec<WebServer> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..3).map(|_| scope.spawn(|| WebServer::start(&flags))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for named in tasks {
        for node in &nodes {
            let mut answer = Value::Null;
            eventually("it answers", || {
                let body = client.body("tasks/result", named.clone());
                let said = node.ask("POST", &client.headers(), &body);
                answer = if said.status == 200 { messages(&said).pop().unwrap() } else { Value::Null };
                said.status == 200
            });
            assert_eq!(text_of(&answer["result"]), ":outcome_unknown", "{answer}");
        }
    }
}

#[test]
fn a_client_that_goes_away_cancels_its_call_at_the_other_node() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &[]) else { return };
    let able = json!({ "elicitation": {} });
    let twice = format!("[{FORM} {FORM} (:reason (tool/call 'probe/hold {{}}))]");
    let mut params = program(&twice);
    let asked = stateless(&nodes[0], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let question = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["inputResponses"] = json!({ question: { "action": "decline" } });
    params["requestState"] = asked["result"]["requestState"].clone();
    let again = stateless(&nodes[1], "tools/call", "lisp_eval", params.clone(), able.clone());
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let question = again["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["inputResponses"] = json!({ question: { "action": "decline" } });
    params["requestState"] = again["result"]["requestState"].clone();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": stateless_params(params, able) });
    let mut browser = nodes[1].connect();
    browser.send("POST", &stateless_headers("tools/call", "lisp_eval"), &body.to_string());
    let in_flight = || {
        let stats = "(get (:value (tool/call 'probe/stats {})) :in_flight)";
        stateless(&nodes[0], "tools/call", "lisp_eval", program(stats), json!({}))
    };
    eventually("it sleeps", || text_of(&in_flight()["result"]) == "2");
    drop(browser);
    eventually("it is cancelled", || text_of(&in_flight()["result"]) == "1");
}

#[test]
fn nodes_that_start_together_make_the_tables_once() {
    let Some(database) = Database::start() else { return };
    let state = database.url();
    // The database may still be starting.
    while run_ptc(&["state", "check", &state], "").code != Some(0) {}
    let nodes: Vec<_> = (0..6)
        .map(|_| {
            let state = state.clone();
            std::thread::spawn(move || run_ptc(&["runs", "--state", &state], ""))
        })
        .collect();
    for node in nodes {
        let finished = node.join().unwrap();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}

#[test]
fn a_large_answer_comes_from_another_node_whole() {
    let Some(Nodes { nodes, _config, _database }) = Nodes::start(2, &["--memory", "100M"]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    let long = "(apply str (repeat 300000 \"\u{e4}\\n\"))";
    let mut params = program(long);
    params["task"] = json!({});
    let begun = request(&nodes[0], &mut client, "tools/call", params);
    let named = json!({ "taskId": begun["result"]["task"]["taskId"] });
    let here = request(&nodes[0], &mut client, "tasks/result", named.clone());
    let there = request(&nodes[1], &mut client, "tasks/result", named);
    assert_eq!(here["result"], there["result"]);
}

pub(crate) fn node_is_in_touch(node: &WebServer) -> bool {
    node.get("/ready").json().get("state").is_none()
}

#[test]
fn sessions_go_on_while_the_database_is_away() {
    let Some(Nodes { nodes, _config, _database: mut database }) = Nodes::start(2, &[]) else { return };
    let mut client = offering(&nodes[0], "2025-11-25");
    // Both nodes are in touch with the database.
    offering(&nodes[1], "2025-11-25");
    database.stop();
    for node in &nodes {
        eventually("it says so", || node.get("/ready").json()["state"] == "unavailable");
        assert_eq!(node.get("/ready").json()["status"], "ready");
    }
    // A node that does not know the session reads it from its id.
    assert_eq!(eval(&nodes[1], &mut client, "(+ 1 2)"), "3");
    database.run();
    eventually("it is back", || node_is_in_touch(&nodes[0]));
    // Messages arrive again once the connection is made again.
    eventually("an answer reaches the other node", || {
        let mut run = Pending::begin(&nodes[0], &mut client, FORM);
        if run.1.header("content-type") != Some("text/event-stream") {
            // The database is not back yet, so the call was not made.
            return false;
        }
        let question = run.next();
        let said = json!({ "result": { "action": "decline" } });
        client.respond(&nodes[1], &question, &said);
        let stream = run.0.stream().try_clone().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        if run.0.event(&run.1).is_some() {
            return true;
        }
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        client.respond(&nodes[0], &question, &said);
        run.next();
        false
    });
}
