//! Many HTTP clients at once, and the fate of their requests when the server ends, in order or not.

use ptc_tests::binary::ptc;
use ptc_tests::processes::eventually;
use ptc_tests::web::{Browser, Door, SessionClient, WebServer, program, stateless_body, stateless_headers};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

const CONNECTIONS: usize = 10_000;
const SESSIONS: usize = 1_000;

/// Memory that an idle connection may take.
const BYTES: usize = 20 << 10;

fn tiny(browser: &mut Browser) -> u16 {
    let body = stateless_body(1, "tools/call", program("(+ 1 2)"));
    let answer = browser.ask("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    if answer.status == 200 {
        assert_eq!(answer.json()["result"]["content"][0]["text"], "3", "{answer:?}");
    }
    answer.status
}

/// Raises the limit on descriptors for all connections; false if the system does not allow it.
fn raise_descriptors() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both functions get a valid `rlimit` and change only the limit of this process.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
            && limit.rlim_cur > CONNECTIONS as libc::rlim_t + 1_000
    }
}

fn resident(server: &WebServer) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("/proc");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.split_whitespace().next().and_then(|word| word.parse::<usize>().ok()).expect("a number") << 10
}

#[test]
fn ten_thousand_idle_connections_and_a_thousand_sessions() {
    let _alone = crate::alone();
    assert!(raise_descriptors(), "the limit of open files is too low for this test");
    let most = SESSIONS.to_string();
    let server = WebServer::start(&[
        "--http-metrics",
        "--http-keep-alive",
        "600s",
        "--http-max-sessions",
        &most,
        "--http-max-sessions-per-owner",
        &most,
    ]);
    for _ in 0..100 {
        assert_eq!(tiny(&mut server.connect()), 200);
    }
    let before = resident(&server);
    let mut idle: Vec<Browser> = (0..CONNECTIONS)
        .map(|_| {
            let mut browser = server.connect();
            assert_eq!(tiny(&mut browser), 200);
            browser
        })
        .collect();
    eventually("idle connections are small", || {
        resident(&server).saturating_sub(before) <= CONNECTIONS * BYTES
    });
    let mut sessions: Vec<SessionClient> =
        (0..SESSIONS).map(|_| SessionClient::begin(&server, "2025-11-25", &[])).collect();
    let numbers = server.get("/metrics").body;
    assert!(numbers.contains(&format!("ptc_http_sessions {SESSIONS}\n")), "{numbers}");
    let open = numbers.lines().find_map(|line| line.strip_prefix("ptc_http_connections "));
    assert!(
        open.and_then(|open| open.parse::<usize>().ok()).is_some_and(|open| open >= CONNECTIONS),
        "{open:?}"
    );
    // One more would take the place of an idle one, and all go on.
    assert_eq!(server.get("/ready").json()["status"], "ready");
    assert_eq!(tiny(&mut server.connect()), 200);
    for browser in idle.iter_mut().step_by(500) {
        assert_eq!(tiny(browser), 200);
    }
    for client in sessions.iter_mut().step_by(100) {
        let answer = client.ask(&server, "tools/call", program("(+ 1 2)")).json();
        assert_eq!(answer["result"]["content"][0]["text"], "3");
    }
}

/// Sends requests until the server is gone. A request over a connection that the server has answered before, without
/// announcing a close, must be answered with a result or 503.
fn ask_until_the_end(server: &Door, answered: &AtomicUsize, told: &AtomicUsize) {
    let body = stateless_body(1, "tools/call", program("(reduce + (range 2000))"));
    let headers = stateless_headers("tools/call", "lisp_eval");
    'connections: loop {
        let Some(mut browser) = server.try_connect() else { return };
        let mut is_fresh = true;
        loop {
            if browser.try_send("POST", &headers, &body).is_err() {
                assert!(is_fresh, "a connection was closed between two requests");
                return;
            }
            let Some(answer) = browser.try_answer() else {
                // The connection was never accepted.
                assert!(is_fresh, "a request was lost");
                return;
            };
            match answer.status {
                200 => {
                    assert_eq!(answer.json()["result"]["content"][0]["text"], "1999000");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                503 => {
                    told.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other}: {answer:?}"),
            }
            if answer.header("connection") == Some("close") {
                continue 'connections;
            }
            is_fresh = false;
        }
    }
}

#[test]
fn a_server_that_ends_under_load_loses_no_request() {
    let _alone = crate::alone();
    let server = WebServer::start(&["--timeout", "60s", "--http-shutdown-grace", "60s"]);
    let (answered, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let door = server.door();
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..32).map(|_| scope.spawn(|| ask_until_the_end(&door, &answered, &told))).collect();
        eventually("there is load", || answered.load(Ordering::Relaxed) > 200);
        server.terminate();
        for client in clients {
            client.join().expect("no request was lost");
        }
    });
    assert!(told.load(Ordering::Relaxed) > 0, "who came late was told");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn after_a_crash_clients_without_sessions_go_on() {
    let _alone = crate::alone();
    let server = WebServer::start(&[]);
    let address = server.address().to_string();
    let mut session = SessionClient::begin(&server, "2025-11-25", &[]);
    assert_eq!(tiny(&mut server.connect()), 200);
    server.signal("KILL");
    assert_eq!(server.ended(), None);
    let server = WebServer::from_command(ptc(&["serve", "--http", &address]));
    assert_eq!(tiny(&mut server.connect()), 200);
    // Clients with a session learn that it is gone, and begin anew.
    assert_eq!(session.ask(&server, "ping", json!({})).status, 404);
    SessionClient::begin(&server, "2025-11-25", &[]);
}
