//! Renewals: one for all processes, and none that loses a login.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Habits, OAuthServer};
use serde_json::json;

#[test]
fn a_token_is_renewed_before_its_end_and_the_refresh_token_with_it() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    user.change(|login| login["expires_at"] = json!(login["obtained_at"].as_u64().unwrap() + 1));
    let before = user.stored().pop().unwrap().1;
    // Half of a life of one second is over at once.
    user.change(|login| login["obtained_at"] = json!(login["obtained_at"].as_u64().unwrap() - 100));
    user.change(|login| login["expires_at"] = json!(login["obtained_at"].as_u64().unwrap() + 1));
    assert_echoed(&user.echo());
    let after = user.stored().pop().unwrap().1;
    assert_eq!(server.grants("refresh_token"), 1);
    assert!(
        after["access_token"] != before["access_token"] && after["refresh_token"] != before["refresh_token"]
    );
    assert!(after["refreshed_at"].is_u64(), "{after:#}");
    assert_echoed(&user.echo());
    assert_eq!(server.grants("refresh_token"), 1);
}

#[test]
fn fifty_processes_renew_once_and_lose_nothing() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    // Every access token ends now: all processes find out with their first call.
    server.end_access();
    let call = "(tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})";
    let program = format!("(count (filter :ok (pmap (fn [_] {call}) (range 20))))");
    let running: Vec<_> =
        (0..50).map(|_| user.command(&["eval", &program, "--timeout", "120s"]).spawn().unwrap()).collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "20", "{output:?}");
    }
    assert_eq!((server.grants("refresh_token"), server.revoked()), (1, 0));
}
