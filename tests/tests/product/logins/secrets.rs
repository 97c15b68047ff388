//! Tokens, codes, verifiers and client secrets leave the process only for the servers that they are meant for.

use super::User;

use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use serde_json::json;

/// A server that shows every secret it knows wherever a server can show a text.
fn leaky() -> OAuthServer {
    OAuthServer::answering(Habits::default(), |server, asked: &Asked| {
        let secrets = || server.secrets().join(" | ");
        let message = asked.json();
        let answer =
            |result| Some(Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })));
        let is_known = asked.header("authorization").is_some();
        match (asked.path.as_str(), message["method"].as_str()) {
            ("/mcp", Some("tools/list")) if is_known => {
                let named = |name: &str| json!({ "name": name, "description": secrets(), "inputSchema": {} });
                answer(json!({ "tools": [named("echo"), named("fail"), named("refuse")] }))
            }
            ("/mcp", Some("tools/call")) if is_known => match message["params"]["name"].as_str() {
                Some("refuse") => {
                    let error = json!({ "code": -32000, "message": secrets(), "data": secrets() });
                    Some(Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })))
                }
                name => {
                    let text = json!([{ "type": "text", "text": secrets() }]);
                    answer(json!({ "content": text, "isError": name == Some("fail") }))
                }
            },
            ("/revoke", _) => {
                Some(Reply::error(400, &json!({ "error": "server_error", "error_description": secrets() })))
            }
            _ => None,
        }
    })
}

/// Everything in the user's folder but the logins themselves, and recordings, which hold the answers of servers as they came.
fn files(user: &User) -> String {
    let mut text = String::new();
    let mut open = vec![user.folder.path().to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == "tokens" || entry.file_name() == "records" => {}
                true => open.push(entry.path()),
                false => text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()),
            }
        }
    }
    text
}

#[test]
fn no_sink_shows_a_secret_of_a_login() {
    let metadata = json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] });
    let server = leaky();
    server.set(|habits| habits.metadata = metadata);
    let user = User::of(&server);
    // A login that fails shows its code and verifier to the server, and the server shows them back.
    server.set(|habits| habits.refuses_codes = true);
    let failed = user.login(&["--log-level", "debug"]);
    assert_clean(&(failed.stdout + &failed.stderr), &server.secrets());
    server.set(|habits| habits.refuses_codes = false);
    let logged = user.login(&["--log-level", "debug"]);
    assert_eq!(logged.code, Some(0), "{logged:?}");
    server.end_access();
    let mut said = logged.stdout + &logged.stderr;
    assert_clean(&said, &server.secrets());
    let traces = user.path("traces");
    let traces = traces.to_str().unwrap();
    let call = |tool: &str| format!("(tool/call {{:server \"hosted\" :tool \"{tool}\" :args {{}}}})");
    let all = format!(
        "[{} {} {} (doc \"hosted/echo\") (dir 'hosted) (tool/servers)]",
        call("echo"),
        call("fail"),
        call("refuse")
    );
    let printed = format!("(do (println {all}) (fail (pr-str {all})))");
    for command in [
        &["eval", all.as_str(), "--output", "json", "--log-level", "debug"][..],
        &["eval", printed.as_str(), "--log-level", "debug"],
        &["call", "hosted/echo", "--output", "json"],
        &["call", "hosted/refuse", "--log-level", "debug"],
        &["tools", "--output", "json"],
        &["doctor", "--output", "json"],
        &["auth", "--json"],
        &["logout", "hosted", "--revoke", "--log-level", "debug"],
    ] {
        let ended = user.run(command);
        said += &(ended.stdout + &ended.stderr);
    }
    let [turns, records] = ["turns", "records"].map(|name| user.path(name).to_str().unwrap().to_owned());
    let flags = ["serve", "--trace-dir", traces, "--trace-payloads", "full", "--log-level", "debug"];
    let more = ["--turn-log-dir", &turns, "--record", &records, "--debug-tool"];
    let mut serve = ptc_tests::serve::Server::from_command(user.command(&[&flags[..], &more].concat()));
    said += &serve.run(&all).to_string();
    let debug = json!({ "name": "lisp_debug", "arguments": { "op": "recent" } });
    let debug = serve.request("tools/call", debug).to_string();
    assert!(debug.contains("hosted"), "{debug}");
    said += &debug;
    said += &serve.request("tools/list", json!({})).to_string();
    assert_eq!(serve.end(), Some(0));
    let refused = user
        .begin_login(&[])
        .paste("http://127.0.0.1:1/callback?code=wrong-code-Zq7Xw9Kd&state=wrong-state-Zq7Xw9Kd");
    said += &(refused.stdout + &refused.stderr);
    let recorded = std::fs::read_dir(&records).unwrap().map(|entry| entry.unwrap().path());
    for recording in recorded.filter(|path| path.is_file()) {
        let replayed = user.run(&["replay", recording.to_str().unwrap()]);
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        assert_clean(&(replayed.stdout + &replayed.stderr), &server.live_secrets());
    }
    let kept = files(&user);
    assert!(kept.contains("lisp_eval") && user.path("turns").is_dir());
    said += &kept;
    assert!(said.contains("[REDACTED]"));
    assert!(!said.contains("wrong-code-Zq7Xw9Kd"));
    assert_clean(&said, &server.live_secrets());
}

#[track_caller]
fn assert_clean(said: &str, secrets: &[String]) {
    assert!(secrets.len() >= 3, "{secrets:?}");
    let found: Vec<&String> = secrets.iter().filter(|secret| said.contains(secret.as_str())).collect();
    assert!(found.is_empty(), "{} of {}: {found:?}\n{said}", found.len(), secrets.len());
}
