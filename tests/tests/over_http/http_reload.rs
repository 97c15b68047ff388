//! A server over HTTP rereads its certificate when the file changes, and its configuration on SIGHUP.

use ptc_tests::binary::{ptc, run};
use ptc_tests::processes::eventually;
use ptc_tests::upstreams::probes;
use ptc_tests::web::{WebServer, program, stateless_body, stateless_headers};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// A client that trusts only this certificate, and prints the one it was shown.
const CLIENT: &str = "import hashlib, socket, ssl, sys
host, port = sys.argv[1].rsplit(':', 1)
context = ssl.create_default_context(cafile=sys.argv[2])
with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname='localhost') as stream:
    stream.sendall(b'GET /health HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
    body = b''
    while piece := stream.recv(4096):
        body += piece
    print(body.split(b'\\r\\n\\r\\n')[1].decode(), hashlib.sha256(stream.getpeercert(True)).hexdigest())
";

/// Writes a new certificate for this machine, and its key.
fn certify(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("written");
}

/// What the client sees; `None` if it does not trust the certificate.
fn shown(address: &str, folder: &Path) -> Option<String> {
    let mut command = Command::new("python3");
    command.args(["-c", CLIENT, address]).arg(folder.join("cert.pem"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = run(command, "");
    (finished.code == Some(0)).then_some(finished.stdout)
}

#[test]
fn a_certificate_is_shown_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let server = WebServer::start(&["--tls-cert", &certificate, "--tls-key", &key]);
    let address = server.address().to_string();
    let first = shown(&address, folder.path()).expect("it is trusted");
    assert!(first.starts_with("{\"status\":\"ok\"}"), "{first}");
    certify(folder.path());
    eventually("the new one is shown", || {
        shown(&address, folder.path()).is_some_and(|second| second != first)
    });
    // A file that is no certificate is ignored.
    std::fs::write(folder.path().join("other.pem"), "nothing").unwrap();
    let other = path("other.pem");
    let refused = run(ptc(&["serve", "--http", "127.0.0.1:0", "--tls-cert", &other, "--tls-key", &key]), "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("other.pem"), "{refused:?}");
    let alone = run(ptc(&["serve", "--http", "127.0.0.1:0", "--tls-cert", &certificate]), "");
    assert_eq!(alone.code, Some(2), "{alone:?}");
}

#[test]
fn configuration_is_read_again_on_sighup_and_no_run_notices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("upstreams.json");
    let write = |names: &[&str]| std::fs::write(&path, probes(names)).unwrap();
    write(&["a"]);
    let server = WebServer::start(&[
        "--upstreams-config",
        path.to_str().unwrap(),
        "--config-reload",
        "sighup",
        "--timeout",
        "120s",
        "--fuel",
        "1000000000000000",
    ]);
    let names = || server.eval("(map :name (tool/servers))");
    assert_eq!(names(), "[\"a\"]");
    let mut running = server.connect();
    let call = r#"(:value (tool/call {:server "a" :tool "echo" :args {:v 1}}))"#;
    let text = format!("(do {call} (loop [n 0 s 0] (if (< n 3000000) (recur (inc n) (+ s (mod n 7))) s)))");
    let mut params = program(&text);
    params["_meta"] = json!({ "progressToken": 1 });
    running.send(
        "POST",
        &stateless_headers("tools/call", "lisp_eval"),
        &stateless_body(1, "tools/call", params),
    );
    let head = running.head().expect("an answer");
    running.until(&head, "notifications/progress");
    write(&["a", "b"]);
    server.signal("HUP");
    eventually("the new server is there", || names().contains("\"b\""));
    running.until(&head, "8999994");
}
