//! Misbehaving HTTP clients: each mistake or attack gets its answer, and other clients notice nothing.

use ptc_tests::web::{Browser, WebServer, program, stateless_body, stateless_headers};

fn start() -> WebServer {
    WebServer::start(&["--http-request-timeout", "300ms", "--http-max-body-bytes", "1M"])
}

fn is_well(server: &WebServer) {
    assert_eq!(server.eval("(+ 1 2)"), "3");
}

/// Sends pieces that the server may refuse to read. Gives the status.
fn status(browser: &mut Browser, pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<u16> {
    for piece in pieces {
        if browser.send_raw(&piece).is_err() {
            break;
        }
    }
    browser.head().map(|answer| answer.status)
}

fn head(more: &str) -> Vec<u8> {
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}").into_bytes()
}

#[test]
fn a_head_that_is_never_ended_ends_the_connection() {
    let server = start();
    let mut slow: Vec<Browser> = (0..20).map(|_| server.connect()).collect();
    for browser in &mut slow {
        browser.send_raw(b"POST /mcp HTTP/1.1\r\nHost: local").unwrap();
    }
    is_well(&server);
    for browser in &mut slow {
        assert!(browser.head().is_none(), "it is closed");
    }
    is_well(&server);
}

#[test]
fn a_body_that_does_not_come_is_a_timeout() {
    let server = start();
    let mut slow = server.connect();
    assert_eq!(status(&mut slow, [head("Content-Length: 100\r\n\r\n{\"a\"")]), Some(408));
    is_well(&server);
}

#[test]
fn a_connection_that_says_nothing_ends() {
    let server = start();
    let mut silent: Vec<Browser> = (0..20).map(|_| server.connect()).collect();
    for browser in &mut silent {
        assert!(browser.head().is_none(), "it is closed");
    }
    is_well(&server);
}

#[test]
fn all_bodies_together_are_bounded() {
    let server = WebServer::start(&["--http-max-body-bytes", "1M", "--http-max-bodies-bytes", "64k"]);
    let mut large = server.connect();
    let body = [head("Content-Length: 100000\r\n\r\n"), vec![b' '; 100_000]].concat();
    assert_eq!(status(&mut large, [body]), Some(503));
    drop(large);
    is_well(&server);
}

#[test]
fn a_body_without_end_is_too_large() {
    let server = start();
    // An honest length: the server refuses without reading the body.
    let mut honest = server.connect();
    assert_eq!(status(&mut honest, [head("Content-Length: 1073741824\r\n\r\n")]), Some(413));
    // No length: the server reads up to the limit.
    let mut chunked = server.connect();
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    let pieces =
        std::iter::once(head("Transfer-Encoding: chunked\r\n\r\n")).chain(std::iter::repeat_n(chunk, 17));
    assert_eq!(status(&mut chunked, pieces), Some(413));
    is_well(&server);
}

#[test]
fn too_many_headers_or_too_long_ones_are_refused() {
    let server = start();
    let mut many = server.connect();
    let headers: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert_eq!(status(&mut many, [head(&headers), b"\r\n".to_vec()]), Some(431));
    let mut long = server.connect();
    assert_eq!(status(&mut long, [head(&format!("x: {}\r\n\r\n", "y".repeat(100_000)))]), Some(431));
    // A head of hardly more than 32 KiB is refused however its pieces arrive, and a shorter one is not.
    for (length, piece, expected) in
        [(33_000, 1_000, 431), (33_000, 33_000, 431), (40_000, 40_000, 431), (30_000, 30_000, 200)]
    {
        let mut client = server.connect();
        let long = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nx: {}\r\n\r\n", "y".repeat(length));
        let pieces = long.as_bytes().chunks(piece).map(<[u8]>::to_vec);
        assert_eq!(status(&mut client, pieces), Some(expected), "{length} in pieces of {piece}");
    }
    // The server stops reading long before a hundred thousand of them.
    let mut endless = server.connect();
    let piece = "x-header: value\r\n".repeat(1_000).into_bytes();
    let pieces = std::iter::once(head("")).chain(std::iter::repeat_n(piece, 100));
    assert!(matches!(status(&mut endless, pieces), Some(431) | None));
    is_well(&server);
}

#[test]
fn half_a_connection_is_none() {
    let server = WebServer::one_at_a_time();
    let mut half = server.connect();
    let body = stateless_body(1, "tools/call", program("(loop [] (recur))"));
    half.send("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    half.stream().shutdown(std::net::Shutdown::Write).unwrap();
    // Its program is stopped; otherwise this one, which needs a worker, would never begin.
    assert_eq!(server.eval("(count (range 100000))"), "100000");
}

#[test]
fn one_byte_too_many_does_not_hide_that_a_client_has_gone() {
    let server = WebServer::one_at_a_time();
    let mut gone = server.connect();
    let body = stateless_body(1, "tools/call", program("(loop [] (recur))"));
    gone.send("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
    gone.send_raw(b"P").unwrap();
    drop(gone);
    assert_eq!(server.eval("(count (range 100000))"), "100000");
}

#[test]
fn a_head_in_pieces_with_the_request_before_it_is_read_on() {
    let server = WebServer::start(&["--http-request-timeout", "60s"]);
    let mut browser = server.connect();
    let health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea";
    browser.send_raw(health).unwrap();
    assert_eq!(browser.answer().status, 200);
    // Longer than the idle time after which a connection's buffers are freed.
    std::thread::sleep(std::time::Duration::from_millis(700));
    browser.send_raw(b"lth HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(browser.answer().status, 200);
    std::thread::sleep(std::time::Duration::from_millis(700));
    browser.send_raw(&health[..health.len() - 7]).unwrap();
    assert_eq!(browser.answer().status, 200);
}

#[test]
fn nonsense_is_answered_or_ends_the_connection() {
    let server = start();
    for nonsense in ["GARBAGE\r\n\r\n", "GET\r\n\r\n", "\0\0\0\0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut browser = server.connect();
        let said = status(&mut browser, [nonsense.as_bytes().to_vec()]);
        assert!(said.is_none_or(|status| status >= 400), "{nonsense:?}: {said:?}");
    }
    let twice = head("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}");
    assert_eq!(status(&mut server.connect(), [twice]), Some(400));
    is_well(&server);
}

/// Requests that a browser sends cross-origin without a preflight, and targets that differ from `Host`.
#[test]
fn a_page_of_another_port_calls_nothing_without_asking_first() {
    let server = start();
    let body = program("(+ 1 2)").to_string();
    let post = |target: &str, host: &str, headers: &str| {
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        status(&mut server.connect(), [head.into_bytes()])
    };
    let origin = "Origin: http://localhost:9\r\n";
    for kind in [
        "",
        "Content-Type:\r\n",
        "Content-Type: text/plain\r\n",
        "Content-Type: text/plain; application/json\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
    ] {
        for origin in ["", origin] {
            assert_eq!(post("/mcp", "localhost", &format!("{origin}{kind}")), Some(415), "{kind:?}");
        }
    }
    // A preflight request is refused.
    let ask = format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n{origin}Access-Control-Request-Method: POST\r\n\r\n"
    );
    assert_eq!(status(&mut server.connect(), [ask.into_bytes()]), Some(405));
    let json = "Content-Type: application/json\r\n";
    let well = post("/mcp", "localhost", json);
    for (target, host, wanted) in [
        ("http://localhost/mcp", "localhost", well),
        ("http://LOCALHOST/mcp", "localhost", well),
        ("http://evil.example/mcp", "localhost", Some(400)),
        ("http://localhost:81/mcp", "localhost", Some(400)),
        ("http://user@localhost/mcp", "localhost", Some(400)),
        ("http://127.0.0.1/mcp", "localhost", Some(400)),
        ("http://evil.example/mcp", "evil.example", Some(403)),
    ] {
        assert_eq!(post(target, host, json), wanted, "{target} {host}");
    }
    is_well(&server);
}

#[test]
fn only_who_may_call_is_told_the_name_of_the_machine() {
    let server = start();
    let ready = |host: &str| {
        let mut browser = server.connect();
        let line = format!("GET /ready HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        browser.send_raw(line.as_bytes()).unwrap();
        browser.answer().json()
    };
    assert!(ready("localhost")["instance"].is_string());
    assert_eq!(ready("evil.example").to_string(), r#"{"status":"ready"}"#);
}
