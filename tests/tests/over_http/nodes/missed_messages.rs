//! A node whose connection to the database is lost for a moment learns what other nodes have said meanwhile.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use super::session_tools::SessionNodes;
use crate::any_node::{client_body, eval};
use ptc_tests::processes::eventually;
use ptc_tests::web::SessionClient;

#[test]
fn a_session_that_was_closed_meanwhile_ends() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    let [one, other] = &world.servers[..] else { panic!() };
    let mut client = SessionClient::begin(one, "2025-11-25", &[]);
    assert_eq!(eval(other, &mut client, "(+ 1 2)"), "3");
    world.ways[0].set_closed(true);
    assert_eq!(other.ask("DELETE", &client.headers(), "").status, 204);
    world.ways[0].set_closed(false);
    eventually("the session ends", || one.ask("POST", &client.headers(), &client_body("ping")).status == 404);
}

/// A close that other nodes cannot learn of is refused: the session would go on there.
#[test]
fn a_close_that_cannot_be_stored_is_refused() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    let [one, other] = &world.servers[..] else { panic!() };
    let mut client = SessionClient::begin(one, "2025-11-25", &[]);
    assert_eq!(eval(other, &mut client, "(+ 1 2)"), "3");
    world.ways[0].set_closed(true);
    let refused = one.ask("DELETE", &client.headers(), "");
    assert!(refused.status == 503 && refused.body.contains("close it again"), "{refused:?}");
    assert_eq!(eval(one, &mut client, "(+ 1 2)"), "3");
    world.ways[0].set_closed(false);
    eventually("it is closed", || one.ask("DELETE", &client.headers(), "").status == 204);
    eventually("the session ends", || {
        other.ask("POST", &client.headers(), &client_body("ping")).status == 404
    });
}
