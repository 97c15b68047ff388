//! A running server follows its store: logouts, logins of other accounts, and renewals that do not come.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use ptc_tests::processes::eventually;
use ptc_tests::serve::Server;
use serde_json::json;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
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
