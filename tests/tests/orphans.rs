//! When `ptc` has ended, none of its upstream processes lives on.

use ptc_tests::binary::{ptc, run};
use ptc_tests::processes::{descendants, eventually, is_alive};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server, stdio};

/// Our server twice, and a server that ignores the end of its input, SIGTERM and everything else.
fn upstreams() -> ConfigFile {
    Upstreams::probe()
        .add("second", probe_server(&[]))
        .add("stubborn", stdio("sh", &["-c", STUBBORN]))
        .write()
}

const STUBBORN: &str = r#"trap '' TERM INT HUP
answer() { echo '{"jsonrpc":"2.0","id":'"$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"','"$1"'}'; }
while read line; do
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stubborn","version":"1"}}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
  esac
done
while :; do sleep 600 & wait $!; done
"#;

fn started(config: &ConfigFile) -> (Server, Vec<u32>) {
    let mut server = Server::start(&config.flags(&[]));
    assert_eq!(server.text("(:ok (tool/call {:server \"probe\" :tool \"stats\"}))"), "true");
    let upstreams = descendants(server.id());
    assert!(upstreams.len() >= 3, "{upstreams:?}");
    (server, upstreams)
}

fn all_end(upstreams: &[u32]) {
    eventually("all upstream processes end", || !upstreams.iter().any(|id| is_alive(*id)));
}

#[test]
fn at_the_end_of_input() {
    let config = upstreams();
    let (server, upstreams) = started(&config);
    assert_eq!(server.end(), Some(0));
    assert!(!upstreams.iter().any(|id| is_alive(*id)), "an upstream outlives a clean end");
}

#[test]
fn at_sigterm() {
    let config = upstreams();
    let (server, upstreams) = started(&config);
    server.terminate();
    all_end(&upstreams);
}

#[test]
fn at_sigterm_with_calls_in_flight() {
    let config = upstreams();
    let (mut server, upstreams) = started(&config);
    server.begin_program(
        "(pmap (fn [n] (tool/call {:server \"probe\" :tool \"hold\" :args {:n n}})) (range 10))",
    );
    server.terminate();
    all_end(&upstreams);
}

#[test]
fn at_sigkill_with_calls_in_flight() {
    let config = upstreams();
    let (mut server, upstreams) = started(&config);
    server.begin_program(
        "(pmap (fn [n] (tool/call {:server \"probe\" :tool \"hold\" :args {:n n}})) (range 10))",
    );
    ptc_tests::processes::signal(server.id(), "KILL");
    all_end(&upstreams);
}

#[test]
fn after_eval() {
    let config = upstreams();
    let program = "[(:value (tool/call {:server \"probe\" :tool \"stats\"}))
                    (:ok (tool/call {:server \"stubborn\" :tool \"absent\"}))]";
    let finished = run(ptc(&[&["eval", program][..], &config.flags(&[])].concat()), "");
    // The second call names a tool that the server does not have.
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("no tool 'absent' in upstream 'stubborn'"), "{finished:?}");
    let finished = run(ptc(&[&["eval", PID][..], &config.flags(&[])].concat()), "");
    let id: u32 = finished.stdout.trim().parse().unwrap_or_else(|_| panic!("{finished:?}"));
    assert!(!is_alive(id), "the upstream outlives eval");
}

const PID: &str = "(get (:value (tool/call {:server \"probe\" :tool \"stats\"})) \"pid\")";
