//! `ptc serve --http` for clients of every protocol revision.

use ptc_tests::binary::{ptc, run};
use ptc_tests::web::{Answer, SessionClient, WebServer, program, stateless_body, stateless_headers};
use serde_json::{Value, json};

fn eval(server: &WebServer, text: &str) -> Value {
    let body = stateless_body(1, "tools/call", program(text));
    let answer = server.ask("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn both_eras_at_one_path() {
    let server = WebServer::start(&[]);
    let answer = eval(&server, "(reduce + (range 101))");
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(1), &json!("5050")),
        "{answer}"
    );
    assert_eq!(answer["result"]["resultType"], "complete");
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = SessionClient::begin(&server, version, &[]);
        let answer = client.ask(&server, "tools/call", program("(str \"a\" 1)")).json();
        assert_eq!(answer["result"]["content"][0]["text"], "\"a1\"", "{answer}");
        assert_eq!(
            client.ask(&server, "tools/list", json!({})).json()["result"]["tools"][0]["name"],
            "lisp_eval"
        );
        assert_eq!(server.ask("DELETE", &client.headers(), "").status, 204);
        assert_eq!(client.ask(&server, "ping", json!({})).status, 404, "{version}");
    }
}

#[test]
fn sessions_are_named_and_each_has_its_own_ids() {
    let server = WebServer::start(&[]);
    let mut client = SessionClient::begin(&server, "2025-11-25", &[]);
    let body = client.body("ping", json!({}));
    let nameless = server.ask("POST", &[], &body);
    assert_eq!((nameless.status, &*nameless.body), (400, "missing MCP-Session-Id"));
    assert_eq!(server.ask("POST", &[("Mcp-Session-Id", "mcp_unknown")], &body).status, 404);
    assert_eq!(server.ask("DELETE", &[], "").status, 400);
    let mut other = client.headers();
    other.retain(|(name, _)| *name != "MCP-Protocol-Version");
    assert_eq!(server.ask("POST", &other, &body).status, 200);
    other.push(("MCP-Protocol-Version", "2025-06-18"));
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(server.ask(method, &other, &body).status, 400, "{method}");
    }
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }).to_string();
    assert_eq!(server.ask("POST", &client.headers(), &initialize).status, 400);
    // A cancelled call is answered; its id stays in use until then.
    let long = client.body("tools/call", program("(loop [] (recur))"));
    let id = serde_json::from_str::<Value>(&long).unwrap()["id"].clone();
    let mut waiting = server.connect();
    waiting.send("POST", &client.headers(), &long);
    ptc_tests::processes::eventually("the id is taken", || {
        let again = server.ask(
            "POST",
            &client.headers(),
            &json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string(),
        );
        again.json()["error"]["code"] == -32600
    });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(server.ask("POST", &client.headers(), &cancel.to_string()).status, 202);
    let answer = waiting.answer().json();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("cancelled"), "{answer}");
}

#[test]
fn statuses_say_what_is_wrong() {
    let server = WebServer::start(&["--http-max-body-bytes", "1000"]);
    let post = |headers: &[(&str, &str)], body: &str| server.ask("POST", headers, body);
    assert_eq!(server.get("/health").json(), json!({ "status": "ok" }));
    assert_eq!(server.get("/ready").json()["status"], "ready");
    assert_eq!((server.get("/other").status, &*server.get("/other").body), (404, "not found"));
    assert_eq!(post(&[("Host", "evil.example")], "{}").status, 403);
    assert_eq!(post(&[("Origin", "http://evil.example")], "{}").status, 403);
    assert_eq!(post(&[("Origin", "null")], "{}").status, 403);
    assert_eq!(post(&[("Content-Type", "text/plain")], "{}").status, 415);
    assert_eq!(post(&[("Accept", "text/html")], "{}").status, 406);
    assert_eq!(post(&[("Content-Length", "0")], "").body, "empty body");
    let large = post(&[], &format!("\"{}\"", "x".repeat(1_000)));
    assert_eq!((large.status, &*large.body), (413, "payload too large"));
    let broken = post(&[], "{");
    assert_eq!((broken.status, &broken.json()["error"]["code"]), (400, &json!(-32700)));
    assert_eq!(post(&[], "[]").json()["error"]["code"], -32600);
    let put = server.ask("PUT", &[], "{}");
    assert_eq!((put.status, put.header("allow")), (405, Some("POST, GET, DELETE")));
    let from_here = post(&[("Origin", "http://localhost:3000"), ("Host", "localhost")], "{");
    assert_eq!(from_here.status, 400);
}

#[test]
fn pages_of_named_origins_may_ask_and_read() {
    let server = WebServer::start(&["--http-allowed-origin", "https://app.example"]);
    let preflight = |origin: &str| {
        let asks = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "authorization,content-type,mcp-protocol-version,mcp-session-id",
            ),
        ];
        server.ask("OPTIONS", &asks, "")
    };
    let allowed = preflight("https://app.example");
    assert_eq!(allowed.status, 204, "{allowed:?}");
    let origin = |answer: &Answer| answer.header("access-control-allow-origin").map(str::to_owned);
    assert_eq!(origin(&allowed).as_deref(), Some("https://app.example"));
    assert_eq!(allowed.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
    let headers = allowed.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id"] {
        assert!(headers.contains(name), "{name}: {headers}");
    }
    assert_eq!(allowed.header("vary"), Some("origin"));
    for other in ["https://evil.example", "http://localhost:3000", "null"] {
        let refused = preflight(other);
        assert_eq!((refused.status, origin(&refused)), (403, None), "{other}");
    }
    let list = stateless_body(1, "tools/list", json!({}));
    let mut asks = stateless_headers("tools/list", "");
    asks.push(("Origin", "https://app.example"));
    let answer = server.ask("POST", &asks, &list);
    assert_eq!((answer.status, origin(&answer).as_deref()), (200, Some("https://app.example")));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    assert_eq!(origin(&server.ask("POST", &stateless_headers("tools/list", ""), &list)), None);
    // Pages of this machine may ask where no origin is named, and read nothing.
    let local = WebServer::start(&[]);
    let from_here = local.ask("POST", &[("Origin", "http://localhost:3000"), ("Host", "localhost")], "{");
    assert_eq!((from_here.status, origin(&from_here)), (400, None));
}

#[test]
fn headers_of_the_stateless_era_say_what_the_body_says() {
    let server = WebServer::start(&[]);
    let code = |headers: &[(&str, &str)], body: &str| {
        let answer = server.ask("POST", headers, body);
        (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or_default())
    };
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let list = stateless_body(1, "tools/list", json!({}));
    assert_eq!(code(&[version, ("mcp-method", "tools/list")], &list), (200, 0));
    assert_eq!(code(&[version], &list), (400, -32020));
    assert_eq!(code(&[version, ("Mcp-Method", "TOOLS/LIST")], &list), (400, -32020));
    assert_eq!(code(&[("Mcp-Method", "tools/list")], &list), (400, -32020));
    let call = stateless_body(1, "tools/call", program("1"));
    let called = |name| [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    assert_eq!(code(&called("  lisp_eval  "), &call), (200, 0));
    assert_eq!(code(&called("=?base64?bGlzcF9ldmFs?="), &call), (200, 0));
    assert_eq!(code(&called("other"), &call), (400, -32020));
    assert_eq!(code(&called("x")[..2], &call), (400, -32020));
    let ping = stateless_body(1, "ping", json!({}));
    assert_eq!(code(&[version, ("Mcp-Method", "ping")], &ping), (404, -32601));
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" }).to_string();
    assert_eq!(code(&[version, ("Mcp-Method", "server/discover")], &bare), (400, -32602));
    let old = bare.replace("server/discover", "tools/list");
    assert_eq!(code(&[("MCP-Protocol-Version", "1999-01-01")], &old), (400, -32022));
}

#[test]
fn tokens_let_in_and_own_sessions() {
    let token = "a-token-of-more-than-32-characters";
    let server = WebServer::start(&["--http-auth-token", token, "--sessions"]);
    let list = stateless_body(1, "tools/list", json!({}));
    let ask = |authorization: &str| {
        let mut headers = stateless_headers("tools/list", "");
        if !authorization.is_empty() {
            headers.push(("Authorization", authorization));
        }
        server.ask("POST", &headers, &list)
    };
    let none = ask("");
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")));
    for _ in 0..5 {
        let wrong = ask("Bearer wrong");
        assert_eq!(wrong.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{wrong:?}");
    }
    let refused = ask("Bearer wrong");
    assert_eq!((refused.status, refused.header("www-authenticate")), (429, None));
    assert_eq!(refused.header("retry-after"), Some("60"));
    // Failed attempts from an address do not lock out a client with a valid token there.
    assert_eq!(ask(&format!("bearer {token}")).status, 200);
    assert_eq!(ask("Bearer wrong").status, 429);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn nobody_listens_to_the_world_without_a_token() {
    let said = |flags: &[&str]| {
        let arguments: Vec<&str> =
            ["serve", "--http", "--http-port", "0"].into_iter().chain(flags.iter().copied()).collect();
        let finished = run(ptc(&arguments), "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        finished.stderr
    };
    let anywhere = ["--http-host", "0.0.0.0"];
    assert!(said(&anywhere).contains("HTTP auth token is required for non-loopback binds"));
    let disabled = [&anywhere[..], &["--http-disable-auth"]].concat();
    assert!(said(&disabled).contains("--http-disable-auth is only permitted on loopback binds"));
    let short = ["--http-auth-token", "short"];
    assert!(said(&short).contains("HTTP auth token must be at least 32 characters"));
    assert!(said(&["--http-path", "ready"]).contains("HTTP paths must be distinct"));
    assert!(said(&["--http-host", "example.com"]).contains("HTTP host must be an IP address or localhost"));
    let both = ["--http-disable-auth", "--http-allow-unsafe-network"];
    assert!(said(&both).contains("--http-disable-auth cannot be combined with --http-allow-unsafe-network"));
    let both = ["--http-disable-auth", "--http-oauth", "oauth.toml"];
    assert!(said(&both).contains("--http-disable-auth cannot be combined with --http-oauth"));
}

#[test]
fn a_client_that_goes_away_stops_its_program() {
    let server = WebServer::one_at_a_time();
    let mut gone = server.connect();
    let body = stateless_body(1, "tools/call", program("(loop [] (recur))"));
    gone.send("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    // Only one program runs at a time, so the next one is answered when the first has stopped.
    drop(gone);
    assert_eq!(server.eval("(count (range 100000))"), "100000");
}

/// Workers run at a lower priority than the threads that read requests; otherwise a request would wait for the
/// system's next scheduling tick.
#[cfg(target_os = "linux")]
#[test]
fn programs_give_way_to_requests() {
    let server = WebServer::start(&[]);
    let folder = format!("/proc/{}/task", server.id());
    let mut niceness = Vec::new();
    // Each worker lowers its own priority when it starts.
    ptc_tests::processes::eventually("workers give way", || {
        niceness.clear();
        for thread in std::fs::read_dir(&folder).unwrap() {
            let Ok(stat) = std::fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
            let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(") ").unwrap();
            // The nineteenth field; the first two precede the rest.
            let nice: i64 = rest.split(' ').nth(16).unwrap().parse().unwrap();
            niceness.push((name.starts_with("ptc-worker"), nice));
        }
        let of = |workers: bool| niceness.iter().filter(move |(worker, _)| *worker == workers);
        let (others, workers) =
            (of(false).map(|(_, nice)| *nice).max(), of(true).map(|(_, nice)| *nice).min());
        workers > others
    });
}
