//! A running server follows its store: logouts, logins of other accounts, and renewals that do not come.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use ptc_tests::processes::eventually;
use ptc_tests::serve::Server;
use serde_json::json;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

const CALL: &str =
    "(let [r (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})] [(:ok r) (:reason r)])";

fn serve(user: &User) -> Server {
    Server::offering(user.command(&["serve", "--timeout", "20s"]), json!({}))
}

/// Makes the token of the only login one that is due and still good.
fn make_due(user: &User) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    user.change(|login| {
        login["obtained_at"] = json!(now - 3_500);
        login["expires_at"] = json!(now + 55);
    });
}

/// A server with sessions: each belongs to the token with which it began. Counts the requests that name a session with
/// the token of another one.
fn with_sessions() -> (OAuthServer, Arc<AtomicUsize>) {
    let foreign = Arc::new(AtomicUsize::new(0));
    let count = foreign.clone();
    let server = OAuthServer::answering(Habits::default(), move |server, asked: &Asked| {
        let reply = server.usual(asked);
        let token = asked.header("authorization").unwrap_or_default().replace("Bearer ", "");
        match (asked.json()["method"].as_str(), asked.header("mcp-session-id")) {
            (Some("initialize"), _) => Some(reply.header("mcp-session-id", &format!("session-{token}"))),
            (_, Some(session)) if !token.is_empty() && session != format!("session-{token}") => {
                count.fetch_add(1, Ordering::Relaxed);
                Some(Reply::status(403))
            }
            _ => Some(reply),
        }
    });
    (server, foreign)
}

#[test]
fn a_token_that_ends_after_another_login_starts_another_session() {
    let (server, foreign) = with_sessions();
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user);
    for _ in 0..3 {
        assert_eq!(serve.text(CALL), "[true nil]");
        // The server may still use the first login when it learns that its token has ended.
        server.end_access();
        assert_eq!(user.login(&[]).code, Some(0));
        assert_eq!(serve.text(CALL), "[true nil]");
    }
    assert_eq!((serve.end(), foreign.load(Ordering::Relaxed)), (Some(0), 0));
}

#[test]
fn a_logout_and_another_login_reach_a_running_server() {
    let (server, foreign) = with_sessions();
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user);
    assert_eq!(serve.text(CALL), "[true nil]");
    // Another account, while the server runs.
    assert_eq!(user.login(&[]).code, Some(0));
    let token = user.stored()[0].1["access_token"].as_str().unwrap().to_owned();
    eventually("the new login is used", || {
        assert_eq!(serve.text(CALL), "[true nil]");
        let last = server.asked("/mcp").pop().unwrap();
        last.header("authorization").is_some_and(|header| header.contains(&token))
    });
    let said = user.run(&["logout", "hosted"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "logged out of hosted\n"));
    eventually("the logout is known", || serve.text(CALL) == "[false :login_required]");
    assert_eq!(user.login(&[]).code, Some(0));
    assert_eq!(serve.text(CALL), "[true nil]");
    assert_eq!((serve.end(), foreign.load(Ordering::Relaxed)), (Some(0), 0));
}

/// What a server asks while it answers `initialize` belongs to the session that begins with that answer.
#[test]
fn a_reply_during_initialize_names_the_session() {
    let server = OAuthServer::answering(Habits::default(), |server, asked: &Asked| {
        let reply = server.usual(asked);
        let ping = json!({ "jsonrpc": "2.0", "id": "during", "method": "ping" });
        Some(match asked.json()["method"] == "initialize" && reply.is_success() {
            true => reply.behind(&ping).header("mcp-session-id", "the-session"),
            false => reply,
        })
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user);
    assert_eq!(serve.text(CALL), "[true nil]");
    let replies = || -> Vec<Asked> {
        server.asked("/mcp").into_iter().filter(|asked| asked.json()["id"] == "during").collect()
    };
    eventually("the ping is answered", || !replies().is_empty());
    let replies = replies();
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0].header("mcp-session-id"), Some("the-session"));
    assert!(replies[0].header("authorization").is_some() && replies[0].json()["result"].is_object());
    assert_eq!(serve.end(), Some(0));
}

/// A server whose streams of events belong each to the token that has opened it. Counts the messages that are posted to
/// a stream with the token of another one.
fn with_streams() -> (OAuthServer, Arc<AtomicUsize>) {
    let foreign = Arc::new(AtomicUsize::new(0));
    let (count, streams) = (foreign.clone(), Mutex::new(Vec::<(String, mpsc::Sender<String>)>::new()));
    let server = OAuthServer::answering(Habits::default(), move |server, asked: &Asked| {
        let reply = server.usual(asked);
        if !asked.path.starts_with("/mcp") || reply.is_unauthorized() {
            return Some(reply);
        }
        let token = asked.header("authorization").unwrap_or_default();
        let mut streams = streams.lock().unwrap();
        if asked.method == "GET" {
            let (events, stream) = mpsc::channel();
            events.send(format!("event: endpoint\ndata: /mcp?stream={}\n\n", streams.len())).unwrap();
            streams.push((token.to_owned(), events));
            return Some(Reply::events(stream));
        }
        let stream: usize = asked.query.strip_prefix("stream=")?.parse().ok()?;
        let (owner, events) = &streams[stream];
        if owner != token {
            count.fetch_add(1, Ordering::Relaxed);
            return Some(Reply::status(403));
        }
        if !reply.body().is_empty() {
            // Without a receiver the client has left.
            let _ = events.send(format!("event: message\ndata: {}\n\n", reply.body()));
        }
        Some(Reply::status(202))
    });
    (server, foreign)
}

#[test]
fn a_stream_of_events_gets_no_token_of_another_login() {
    let (server, foreign) = with_streams();
    let hosted = json!({ "transport": "sse", "url": server.url("/mcp") });
    let user = User::with(json!({ "hosted": hosted }), json!({}));
    assert_eq!(user.login(&[]).code, Some(0));
    let mut serve = serve(&user);
    for _ in 0..3 {
        assert_eq!(serve.text(CALL), "[true nil]");
        server.end_access();
        assert_eq!(user.login(&[]).code, Some(0));
        // The call that learns of the other login ends the stream of the first one.
        eventually("a stream of the new login", || serve.text(CALL) == "[true nil]");
    }
    assert_eq!((serve.end(), foreign.load(Ordering::Relaxed)), (Some(0), 0));
}

#[test]
fn a_renewal_that_hangs_stops_no_call_while_the_token_is_good() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let closed = gate.clone();
    let server = OAuthServer::answering(Habits::default(), move |_, asked: &Asked| {
        if asked.field("grant_type").as_deref() == Some("refresh_token") {
            let (open, opened) = &*closed;
            drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        }
        None
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    make_due(&user);
    let mut serve = serve(&user);
    for _ in 0..3 {
        assert_eq!(serve.text(CALL), "[true nil]");
    }
    assert_eq!(server.grants("refresh_token"), 1, "one renewal is under way for all calls");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    eventually("the renewal is stored", || user.stored()[0].1["refreshed_at"].is_u64());
    assert_eq!(serve.text(CALL), "[true nil]");
    assert_eq!((serve.end(), server.grants("refresh_token"), server.revoked()), (Some(0), 1, 0));
}

#[test]
fn a_lock_that_is_stuck_stops_no_call_while_the_token_is_good() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    make_due(&user);
    let lock = File::open(user.stored()[0].0.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    assert_echoed(&user.echo());
    assert_eq!(server.grants("refresh_token"), 0);
    lock.unlock().unwrap();
    assert_echoed(&user.echo());
    assert_eq!(server.grants("refresh_token"), 1);
}

#[test]
fn a_login_that_cannot_be_read_can_be_forgotten() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let (path, _) = user.stored().pop().unwrap();
    std::fs::write(&path, "{\"version\": 1, \"acc").unwrap();
    let said = user.run(&["logout", "hosted", "--revoke"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("could not be read, so no token was revoked"), "{said:?}");
    assert!(!path.exists() && user.run(&["logout", "hosted"]).stdout.contains("there was no login"));
}

#[test]
fn tokens_that_are_too_long_to_be_stored_replace_no_good_login() {
    let server = OAuthServer::answering(Habits::default(), |_, asked: &Asked| {
        if asked.field("grant_type").as_deref() != Some("refresh_token") {
            return None;
        }
        // Each is short enough for an answer, and the login is not.
        let long = "x1".repeat(64 << 10);
        let scope = "y".repeat(130_700);
        Some(Reply::json(
            &json!({ "access_token": long, "token_type": "Bearer", "scope": scope, "refresh_token": "r" }),
        ))
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let before = user.stored();
    server.end_access();
    let said = user.run(&["call", "hosted/echo", "a=1"]);
    assert!(said.code != Some(0) && said.stderr.contains("more than the"), "{}", said.stderr);
    assert!(user.stored() == before, "the good login is still there");
}
