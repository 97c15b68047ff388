//! No upstream process outlives `ptc`.

use ptc_tests::binary::{ptc, run};
use ptc_tests::processes::{command_line, descendants, descriptors, eventually, is_alive, is_zombie, signal};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, hostile_server, probe_server, stdio};

/// The probe twice, and a server that ignores the end of its input, SIGTERM and everything else.
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

/// Waits until the probe holds this many calls.
fn are_held(server: &mut Server, calls: usize) {
    let program = format!(
        "(> (get (:value (tool/call {{:server \"probe\" :tool \"stats\"}})) \"most_in_flight\") {calls})"
    );
    // The call that counts is included.
    eventually("the calls are in flight", || server.text(&program) == "true");
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
    are_held(&mut server, 10);
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
    are_held(&mut server, 10);
    signal(server.id(), "KILL");
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

/// Ways in which a server leaves a process behind with a session of its own: as a child; as an orphan; as an orphan
/// without the server's environment.
const FORKS: [&str; 3] = ["setsid", "daemon", "nameless"];

fn hostile() -> ConfigFile {
    Upstreams::probe().add("bad", hostile_server(&[])).write()
}

fn fork(server: &mut Server, how: &str) -> u32 {
    let program = format!("(:value (tool/call {{:server \"bad\" :tool \"fork\" :args {{:how \"{how}\"}}}}))");
    let text = server.text(&program);
    let id = text.parse().unwrap_or_else(|_| panic!("{how}: {text}"));
    assert!(is_alive(id), "{how}");
    id
}

#[test]
fn a_session_of_its_own_saves_no_process_at_an_end_in_order() {
    for signalled in [false, true] {
        let config = hostile();
        let mut server = Server::start(&config.flags(&[]));
        let left: Vec<u32> = FORKS.iter().map(|how| fork(&mut server, how)).collect();
        match signalled {
            true => server.terminate(),
            false => assert_eq!(server.end(), Some(0)),
        }
        for (id, how) in left.iter().zip(FORKS) {
            assert!(!is_alive(*id), "{how} outlives ptc");
        }
    }
}

#[test]
fn a_session_of_its_own_saves_no_process_when_ptc_is_killed() {
    let config = hostile();
    let mut server = Server::start(&config.flags(&[]));
    let left = ["setsid", "daemon"].map(|how| fork(&mut server, how));
    signal(server.id(), "KILL");
    all_end(&left);
}

#[test]
fn a_crash_leaves_neither_processes_nor_descriptors() {
    let config = hostile();
    let mut server = Server::start(&config.flags(&["--timeout", "60s"]));
    let mut before = None;
    for round in 0..6 {
        let left: Vec<u32> = FORKS.iter().map(|how| fork(&mut server, how)).collect();
        let crashed = server.text("(:reason (tool/call {:server \"bad\" :tool \"crash\"}))");
        assert_eq!(crashed, ":upstream_unavailable");
        all_end(&left);
        let id = server.id();
        eventually("ended processes are reaped", || !descendants(id).into_iter().any(is_zombie));
        let again = "(:ok (tool/call {:server \"bad\" :tool \"pid\"}))";
        while server.text(again) != "true" {}
        let now = descriptors(id);
        let before = *before.get_or_insert(now);
        assert!(now <= before + 1, "{now} descriptors after round {round}, {before} at first");
    }
}

#[test]
fn a_killed_guardian_is_replaced_and_does_its_work() {
    let config = upstreams();
    let (server, _) = started(&config);
    let id = server.id();
    let guardian = || {
        let is_guardian =
            |process: &u32| command_line(*process).contains("ptc-guardian") && is_alive(*process);
        descendants(id).into_iter().find(is_guardian)
    };
    let first = guardian().unwrap();
    signal(first, "KILL");
    eventually("another guardian takes its place", || guardian().is_some_and(|now| now != first));
    eventually("it leaves no zombie", || !is_zombie(first));
    let upstreams = descendants(id);
    signal(id, "KILL");
    all_end(&upstreams);
}

const HANG_UP: u32 = 1;
const INTERRUPT: u32 = 2;

/// Whether this process was started with a signal ignored, which children inherit.
fn ignores(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(ignored.trim(), 16).is_ok_and(|ignored| ignored >> (signal - 1) & 1 == 1)
}

#[test]
fn a_hang_up_is_an_end_in_order_and_a_second_signal_one_at_once() {
    let config = upstreams();
    let (server, upstreams) = started(&config);
    signal(server.id(), "HUP");
    if ignores(HANG_UP) {
        // Our parent (nohup) ignores SIGHUP on purpose, and so does the server.
        let mut server = server;
        assert_eq!(server.run("(+ 1 2)")["isError"], false);
        assert_eq!(server.end(), Some(0));
    } else {
        assert_eq!(server.ended(), Some(0));
    }
    assert!(!upstreams.iter().any(|id| is_alive(*id)));

    let (mut server, upstreams) = started(&config);
    server.begin_program("(tool/call {:server \"probe\" :tool \"hold\"})");
    are_held(&mut server, 1);
    signal(server.id(), "TERM");
    // Background jobs of a script ignore interrupts, and so does the server then.
    let second = if ignores(INTERRUPT) { "-TERM" } else { "-INT" };
    // Two signals that arrive together may count as one.
    eventually("the second one ends it", || {
        let sent = std::process::Command::new("kill").args([second, &server.id().to_string()]).output();
        assert!(sent.is_ok());
        !is_alive(server.id())
    });
    assert!(matches!(server.ended(), Some(130 | 143)));
    all_end(&upstreams);
}

#[test]
fn a_start_ends_with_its_input() {
    // It never answers; its timeout is ten minutes.
    let mut silent = stdio("sleep", &["600"]);
    silent["handshake_timeout_ms"] = 600_000.into();
    let config = Upstreams::default().add("silent", silent).write();
    for input in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"] {
        let finished = run(ptc(&[&["serve"][..], &config.flags(&[])].concat()), input);
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}
