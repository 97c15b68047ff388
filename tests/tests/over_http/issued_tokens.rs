//! Access tokens of issuers: what a client is told, what a token allows, and for how long.

use super::issuer::{GRANTS, Guarded, Issuer, RESOURCE, now, written};
use ptc_tests::binary::run_ptc;
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use ptc_tests::processes::eventually;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{SessionClient, WebServer, sha256, stateless_body, stateless_headers};
use serde_json::json;

const METADATA: &str = "/.well-known/oauth-protected-resource";

pub(super) fn servers() -> ConfigFile {
    Upstreams::default().add("open", probe_server(&[])).add("shut", probe_server(&[])).write()
}

#[test]
fn a_client_without_a_token_learns_where_to_get_one() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let server = &guarded.server;
    let answer =
        server.ask("POST", &stateless_headers("tools/list", ""), &stateless_body(1, "tools/list", json!({})));
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate").unwrap();
    let address = format!("https://ptc.example{METADATA}/mcp");
    assert_eq!(challenge, format!("Bearer resource_metadata=\"{address}\", scope=\"mcp:open mcp:shut\""));
    for path in [METADATA.to_owned(), format!("{METADATA}/mcp")] {
        let answer = server.connect().at(&path).ask("GET", &[("Origin", "https://page.example")], "");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
        let document = answer.json();
        assert_eq!(document["resource"], RESOURCE);
        assert_eq!(document["authorization_servers"], json!([issuer.url]));
        assert_eq!(document["scopes_supported"], json!(["mcp:open", "mcp:shut"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        let asks = [
            ("Origin", "https://page.example"),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "mcp-protocol-version"),
        ];
        let may = server.connect().at(&path).ask("OPTIONS", &asks, "");
        assert_eq!((may.status, may.header("access-control-allow-origin")), (204, Some("*")));
        assert!(may.header("access-control-allow-headers").unwrap().contains("mcp-protocol-version"));
    }
    assert_eq!(server.get(&format!("{METADATA}/other")).status, 404);
    // A server without issuers has no such document.
    let plain = WebServer::start(&[]);
    assert_eq!(plain.get(METADATA).status, 404);
}

#[test]
fn grants_that_fit_count_together() {
    let issuer = Issuer::start();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.toml");
    let own = "an-own-token-of-this-server-0123456789";
    std::fs::write(&tokens, format!("[own]\nsha256 = \"{}\"\nservers = [\"shut\"]\n", sha256(own))).unwrap();
    let guarded = Guarded::start(&issuer, servers(), &["--http-tokens", tokens.to_str().unwrap()]);
    let scoped = |scope: &str| issuer.token(&issuer.claims("ann", scope));
    assert_eq!(guarded.servers(&scoped("mcp:open")), "[\"open\"]");
    assert_eq!(guarded.servers(&scoped("other mcp:shut")), "[\"shut\"]");
    assert_eq!(guarded.servers(&scoped("mcp:open mcp:shut")), "[\"open\" \"shut\"]");
    let mut admin = issuer.claims("root", "mcp:open");
    admin["realm"] = json!({ "roles": ["user", "admin"] });
    assert_eq!(guarded.servers(&issuer.token(&admin)), "[\"open\" \"shut\"]");
    admin["aud"] = json!(["https://elsewhere", RESOURCE]);
    admin["scp"] = json!(["mcp:open"]);
    let rsa = issuer.signed_by_rsa(&json!({ "alg": "RS256", "kid": "r1" }), &admin);
    assert_eq!(guarded.servers(&rsa), "[\"open\" \"shut\"]");
    // Tokens of this server are accepted next to those of issuers.
    assert_eq!(guarded.servers(own), "[\"shut\"]");
    let denied =
        guarded.text(&scoped("mcp:open"), "(:reason (tool/call {:server \"shut\" :tool \"stats\"}))");
    assert!(!denied.contains("most_in_flight"), "{denied}");
}

#[test]
fn a_token_without_a_grant_is_told_all_scopes_that_are_missing() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let refused = |scope: &str| guarded.answer(&issuer.token(&issuer.claims("bob", scope)), "1");
    let answer = refused("mcp:none");
    assert_eq!(answer.status, 403, "{answer:?}");
    let challenge = answer.header("www-authenticate").unwrap().to_owned();
    assert!(challenge.starts_with("Bearer error=\"insufficient_scope\""), "{challenge}");
    assert!(
        challenge.contains(METADATA) && challenge.ends_with("scope=\"mcp:open mcp:shut\""),
        "{challenge}"
    );
    // Scopes that each token needs are named together with the others.
    let head = format!("required_scopes = [\"mcp\", \"openid\"]\n{}", written(&issuer.url, GRANTS));
    std::fs::write(&guarded.file, head).unwrap();
    eventually("the edit is read", || {
        let challenge = refused("openid mcp:open");
        challenge.status == 403
            && challenge.header("www-authenticate").is_some_and(|text| text.ends_with("scope=\"mcp\""))
    });
    let challenge = refused("openid").header("www-authenticate").unwrap().to_owned();
    assert!(challenge.ends_with("scope=\"mcp mcp:open mcp:shut\""), "{challenge}");
    assert_eq!(guarded.servers(&issuer.token(&issuer.claims("bob", "mcp openid mcp:shut"))), "[\"shut\"]");
}

#[test]
fn what_a_subject_began_goes_on_with_a_renewed_token() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &["--sessions"]);
    let authorization = |subject: &str, number: u64| {
        let mut claims = issuer.claims(subject, "mcp:open");
        claims["jti"] = json!(number);
        format!("Bearer {}", issuer.token(&claims))
    };
    let first = authorization("ann", 1);
    let mut client = SessionClient::begin(&guarded.server, "2025-11-25", &[("Authorization", &first)]);
    let mut ask = |token: &str| {
        client.headers[0].1 = token.to_owned();
        client.ask(&guarded.server, "tools/list", json!({})).status
    };
    assert_eq!(ask(&authorization("ann", 2)), 200);
    assert_eq!(ask(&authorization("bob", 3)), 404);
    assert_eq!(ask(&first), 200);
}

#[test]
fn a_stream_ends_with_its_token() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let mut claims = issuer.claims("ann", "mcp:open");
    claims["exp"] = json!(now() + 3);
    let authorization = format!("Bearer {}", issuer.token(&claims));
    let client = SessionClient::begin(&guarded.server, "2025-11-25", &[("Authorization", &authorization)]);
    let mut browser = guarded.server.connect();
    browser.send("GET", &client.headers(), "");
    let head = browser.head().unwrap();
    assert_eq!(head.status, 200, "{head:?}");
    while browser.piece(&head).is_some() {}
    assert!(now() >= claims["exp"].as_u64().unwrap());
}

#[test]
fn an_edit_of_the_grants_applies_to_tokens_that_are_in_use() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let token = issuer.token(&issuer.claims("ann", "mcp:open"));
    assert_eq!(guarded.servers(&token), "[\"open\"]");
    let authorization = format!("Bearer {token}");
    let client = SessionClient::begin(&guarded.server, "2025-11-25", &[("Authorization", &authorization)]);
    let mut browser = guarded.server.connect();
    browser.send("GET", &client.headers(), "");
    let head = browser.head().unwrap();
    assert_eq!(head.status, 200);
    // A faulty edit changes nothing.
    std::fs::write(&guarded.file, "resource = 1").unwrap();
    assert_eq!(guarded.servers(&token), "[\"open\"]");
    std::fs::write(&guarded.file, written(&issuer.url, &GRANTS.replace("[\"open\"]", "[\"shut\"]"))).unwrap();
    // The stream was begun under the old grant.
    while browser.piece(&head).is_some() {}
    eventually("the edit is read", || guarded.servers(&token) == "[\"shut\"]");
}

#[test]
fn work_ends_with_what_it_was_allowed_by_however_the_file_was_edited_before() {
    type Edit = fn(&str) -> String;
    let edits: [(&str, Edit); 4] = [
        ("another grant", |file| file.replace("[\"open\"]", "[\"shut\"]")),
        ("another resource", |file| file.replace(RESOURCE, "https://ptc.example/other")),
        ("fewer algorithms", |file| file.replace("\"ES256\", ", "")),
        ("another issuer", |file| file.replace("issuer = \"http://", "issuer = \"https://")),
    ];
    for ((name, edit), is_shown_again) in edits.into_iter().zip([true, false].into_iter().cycle()) {
        let issuer = Issuer::start();
        let guarded = Guarded::start(&issuer, servers(), &[]);
        let token = issuer.token(&issuer.claims("ann", "mcp:open"));
        let authorization = format!("Bearer {token}");
        let shown = [("Authorization", authorization.as_str())];
        let client = SessionClient::begin(&guarded.server, "2025-11-25", &shown);
        let mut browser = guarded.server.connect();
        browser.send("GET", &client.headers(), "");
        let head = browser.head().unwrap();
        assert_eq!(head.status, 200, "{name}");
        // A harmless edit, whose effect shows when it has been read.
        let harmless = written(&issuer.url, GRANTS) + "[[grant]]\nscope = \"more\"\nservers = [\"shut\"]\n";
        std::fs::write(&guarded.file, &harmless).unwrap();
        let more = issuer.token(&issuer.claims("bob", "more"));
        eventually("the harmless edit is read", || guarded.answer(&more, "1").status == 200);
        if is_shown_again {
            assert_eq!(guarded.servers(&token), "[\"open\"]", "{name}");
        }
        std::fs::write(&guarded.file, edit(&harmless)).unwrap();
        while browser.piece(&head).is_some() {}
    }
}

/// An MCP server that asks for no token.
fn open(asked: &Asked) -> Reply {
    let message = asked.json();
    if asked.method != "POST" {
        return Reply::status(405);
    }
    if message["id"].is_null() {
        return Reply::status(202);
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "open", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": {} }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "called" }] }),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
    };
    Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

#[test]
fn a_token_is_never_passed_on() {
    let issuer = Issuer::start();
    let upstream =
        OAuthServer::answering(Habits::default(), |_, asked| (asked.path == "/mcp").then(|| open(asked)));
    let entry = json!({ "transport": "mcp_http", "url": upstream.url("/mcp") });
    let config = Upstreams::default().add("open", entry).write();
    let guarded = Guarded::start(&issuer, config, &["--log-level", "debug"]);
    let token = issuer.token(&issuer.claims("ann", "mcp:open"));
    let called =
        guarded.text(&token, "(:ok (tool/call {:server \"open\" :tool \"echo\" :args {:text \"x\"}}))");
    assert_eq!(called, "true");
    let asked = upstream.asked("/mcp");
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.header("authorization").is_none()));
    let (mut log, name) = (String::new(), format!("{}#ann", issuer.url));
    eventually("the request is logged", || {
        log += &guarded.server.log().join("\n");
        log.contains(&name)
    });
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn a_file_that_cannot_be_used_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("oauth.toml");
    let path = file.to_str().unwrap();
    let start = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let finished = run_ptc(&["serve", "--http", "127.0.0.1:0", "--http-oauth", path], "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        finished.stderr
    };
    let said = start(&written("https://i", GRANTS).replace("ES256", "HS256"));
    assert!(said.contains("--http-oauth: ") && said.contains("\"HS256\" is no algorithm"), "{said}");
    assert!(start(&written("https://i", "")).contains("no [[grant]]"));
    assert!(start("x").contains("oauth.toml"));
}

#[test]
fn keys_stay_usable_while_their_issuer_is_away() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    assert_eq!(guarded.servers(&issuer.token(&issuer.claims("ann", "mcp:open"))), "[\"open\"]");
    issuer.fail();
    assert_eq!(guarded.servers(&issuer.token(&issuer.claims("bob", "mcp:open"))), "[\"open\"]");
    // Without any keys, the client may try again later.
    let away = Issuer::start();
    away.fail();
    let guarded = Guarded::start(&away, servers(), &[]);
    let answer = guarded.answer(&away.token(&away.claims("ann", "mcp:open")), "1");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")), "{answer:?}");
}

#[test]
fn keys_of_a_file_and_of_an_address_need_no_metadata() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let token = issuer.token(&issuer.claims("ann", "mcp:open"));
    let keys = guarded.file.with_file_name("keys.json");
    std::fs::write(&keys, json!({ "keys": [issuer.elliptic_key("e1")] }).to_string()).unwrap();
    let uri = format!("jwks_uri = \"{}/keys\"\n[[grant]]\nservers = [\"shut\"]\n", issuer.url);
    for grants in ["jwks_file = \"keys.json\"\n[[grant]]\nservers = [\"shut\", \"open\"]\n".to_owned(), uri] {
        std::fs::write(&guarded.file, written(&issuer.url, &grants)).unwrap();
        let want = if grants.contains("open") { "[\"open\" \"shut\"]" } else { "[\"shut\"]" };
        eventually("the edit is read", || {
            guarded.answer(&token, "1").status == 200 && guarded.servers(&token) == want
        });
    }
}
