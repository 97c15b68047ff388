//! The effect of the worst servers on `ptc serve`: its memory, the calls of other clients, and the time to replace
//! them.
//!
//! `PTC_DEFAULT_FLAGS=1` leaves every limit at its default, which takes minutes:
//! `cargo test -p ptc-tests --test load upstream_matrix -- --nocapture` prints the figures.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::processes::peak_resident;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, hostile_server, probe_server};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// Most resident memory at any time.
const MOST_MEMORY: u64 = 100 << 20;

/// Most delay of other calls.
const MOST_LATE: Duration = Duration::from_millis(100);

/// Most time until an unresponsive server is replaced, with default flags.
const MOST_GONE: Duration = Duration::from_secs(45);

/// Number of other calls that are measured while nothing else is awaited.
const LOOKS: usize = 30;

struct Run {
    server: Server,
    late: Vec<Duration>,
    _config: ConfigFile,
    _alone: MutexGuard<'static, ()>,
}

fn default_flags() -> bool {
    std::env::var_os("PTC_DEFAULT_FLAGS").is_some()
}

impl Run {
    /// Starts a server in front of the hostile one, called `bad`, and a good one, called `good`.
    fn start(arguments: &[&str]) -> Run {
        let alone = crate::alone();
        let mut bad = hostile_server(arguments);
        let mut flags: Vec<&str> = Vec::new();
        if default_flags() {
            bad.as_object_mut().unwrap().remove("handshake_timeout_ms");
        } else {
            bad["unresponsive_timeout_ms"] = json!(1_000);
            flags.extend(["--timeout", "4s"]);
        }
        let config = Upstreams::default().add("bad", bad).add("good", probe_server(&[])).write();
        let server = Server::start(&config.flags(&flags));
        let mut run = Run { server, late: Vec::new(), _config: config, _alone: alone };
        // Both servers start in the background.
        while run.text("(:value (tool/call {:server \"good\" :tool \"echo\" :args {:v 1}}))") != "1" {}
        run
    }

    /// The text of a program's answer; other messages before it are skipped.
    fn text(&mut self, program: &str) -> String {
        let id = self.server.begin_program(program);
        self.wait(&[id]).remove(0)
    }

    /// The texts of the answers to these requests, in their order.
    fn wait(&mut self, ids: &[u64]) -> Vec<String> {
        let mut texts = vec![None; ids.len()];
        while texts.iter().any(Option::is_none) {
            let answer = self.server.receive();
            if let Some(at) = ids.iter().position(|id| answer["id"] == *id) {
                texts[at] = Some(text_of(&answer["result"]));
            }
        }
        texts.into_iter().map(Option::unwrap).collect()
    }

    /// Measures one call to the good server.
    fn look(&mut self) {
        let begun = Instant::now();
        let seen = self.text("(:value (tool/call 'good/echo {:v 7}))");
        self.late.push(begun.elapsed());
        assert_eq!(seen, "7");
    }

    /// Sends all programs at once; measures other calls until all are answered.
    fn attack(&mut self, programs: &[String]) -> Vec<String> {
        let ids: Vec<u64> = programs.iter().map(|program| self.server.begin_program(program)).collect();
        let mut texts = vec![None; ids.len()];
        while texts.iter().any(Option::is_none) {
            let begun = Instant::now();
            let look = self.server.begin_program("(:value (tool/call 'good/echo {:v 7}))");
            loop {
                let answer = self.server.receive();
                if answer["id"] == look {
                    break;
                }
                if let Some(at) = ids.iter().position(|id| answer["id"] == *id) {
                    texts[at] = Some(text_of(&answer["result"]));
                }
            }
            self.late.push(begun.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        texts.into_iter().map(Option::unwrap).collect()
    }

    /// Calls until another process answers. Gives the time.
    fn replaced(&mut self, before: &str) -> Duration {
        let begun = Instant::now();
        loop {
            let now = self
                .attack(&["(let [r (tool/call 'bad/pid)] (if (:ok r) (:value r) :not-yet))".into()])
                .remove(0);
            if now != ":not-yet" && now != before {
                return begun.elapsed();
            }
        }
    }

    /// Judges memory and the delay of other calls.
    fn judge(mut self, case: &str) {
        self.late.sort();
        let (median, worst) = (self.late[self.late.len() / 2], self.late[self.late.len() - 1]);
        let memory = peak_resident(self.server.id());
        println!(
            "{case}: peak {} MB, others {median:?}, worst {worst:?}, {} looks",
            memory >> 20,
            self.late.len()
        );
        assert!(memory <= MOST_MEMORY, "{case}: {} MB", memory >> 20);
        // The maximum is a figure of the machine when it is busy.
        assert!(median <= MOST_LATE, "{case}: others are late by {median:?}");
    }
}

const PID: &str = "(:value (tool/call 'bad/pid))";

/// Calls with large arguments, many calls, and one call.
fn loads() -> [(&'static str, Vec<String>); 3] {
    // 5 MB.
    let large = "(let [s (reduce (fn [s _] (str s s)) \"0123456789\" (range 19))] \
                 (frequencies (pmap (fn [_] (:reason (tool/call 'bad/echo {:v s}) :fine)) (range 50))))";
    let many = "(frequencies (pmap (fn [n] (:reason (tool/call 'bad/echo {:v n}) :fine)) (range 50)))";
    let one = "(:reason (tool/call 'bad/echo {:v 1}))";
    [
        ("large arguments", vec![large.to_owned(); 4]),
        ("many calls", vec![many.to_owned(); 40]),
        ("one call", vec![one.to_owned()]),
    ]
}

/// Tests a server that stops reading at some point.
fn hangs(class: &str, how: &str) {
    for (load, programs) in loads() {
        let mut run = Run::start(&[]);
        let before = run.text(PID);
        run.text(&format!("(tool/call 'bad/{how})"));
        let begun = Instant::now();
        let all = run.attack(&programs);
        for seen in &all {
            // Calls end shortly before their program, which on a busy machine cannot always say so any more.
            let is_over = programs.len() > 1 && seen.starts_with("timeout: execution exceeded");
            assert!(is_over || seen == "{:timeout 50}" || seen == ":timeout", "{class}, {load}: {seen}");
        }
        assert!(all.iter().any(|seen| seen.contains(":timeout")), "{class}, {load}");
        run.replaced(&before);
        let gone = begun.elapsed();
        println!("{class}, {load}: replaced after {gone:?}");
        assert!(!default_flags() || gone <= MOST_GONE, "{class}, {load}: {gone:?}");
        run.judge(&format!("{class}, {load}"));
    }
}

#[test]
fn a_stopped_server() {
    hangs("stopped", "stop");
}

#[test]
fn a_deaf_server() {
    hangs("deaf", "deaf");
}

#[test]
fn a_deaf_server_that_talks() {
    for kind in ["ping", "note", "late", "noise", "junk"] {
        let mut run = Run::start(&[]);
        let before = run.text(PID);
        run.text(&format!("(tool/call 'bad/chatter {{:kind \"{kind}\"}})"));
        let begun = Instant::now();
        assert_eq!(
            run.attack(&["(:reason (tool/call 'bad/echo {:v 1}))".to_owned()]),
            [":timeout"],
            "{kind}"
        );
        run.replaced(&before);
        let gone = begun.elapsed();
        println!("deaf but chatty, {kind}: replaced after {gone:?}");
        assert!(!default_flags() || gone <= MOST_GONE, "{kind}: {gone:?}");
        run.judge(&format!("deaf but chatty, {kind}"));
    }
}

#[test]
fn a_bomb_of_messages() {
    for (kind, n) in [
        ("ping", 40_000),
        ("roots", 40_000),
        ("long-ping", 40_000),
        ("note", 40_000),
        ("changed", 40_000),
        ("late", 40_000),
        ("noise", 40_000),
        ("junk", 2_000),
    ] {
        let mut run = Run::start(&[]);
        let program = format!("(:value (tool/call 'bad/bomb {{:kind \"{kind}\" :n {n}}}))");
        assert_eq!(run.attack(&[program]), ["\"after the bomb\""], "{kind}");
        assert_eq!(run.text("(:value (tool/call 'bad/echo {:v 5}))"), "5", "{kind}: it goes on");
        run.judge(&format!("bomb, {kind}"));
    }
}

/// A list beyond its limits loses only the excess; a server fails only if nothing of its list can be read.
#[test]
fn fat_pages() {
    let known = [
        ("0", "1000000", "bytes"),
        ("1", "50000000", ""),
        ("20", "4000000", "bytes"),
        ("0", "100", "more than 1000 pages"),
    ];
    for (pages, bytes, why) in known {
        let mut run = Run::start(&["--pages", pages, bytes]);
        for _ in 0..LOOKS {
            run.look();
        }
        let case = format!("fat pages, {pages} of {bytes}");
        let state = "(let [s (first (filter #(= \"bad\" (:name %)) (tool/servers)))] (str (:state s) \" \" (:error s) (:catalog_cut s)))";
        let seen = loop {
            let seen = run.text(state);
            if !seen.contains("starting") {
                break seen;
            }
            run.look();
        };
        if why.is_empty() {
            let known = ["exceeds max_upstream_response_bytes", "handshake timed out"];
            assert!(known.iter().any(|known| seen.contains(known)), "{case}: {seen}");
        } else if !seen.contains("handshake timed out") {
            assert!(seen.contains("ready") && seen.contains(why), "{case}: {seen}");
            assert_eq!(run.text("(:value (tool/call 'bad/echo {:v 5}))"), "5", "{case}");
            let beyond = run.text("(def t \"beyond\") (tool/call {:server \"bad\" :tool t})");
            assert!(
                beyond.contains("whose list was cut because") && beyond.contains(why),
                "{case}: {beyond}"
            );
        }
        run.judge(&case);
    }
}

/// What is sent, and what the program sees: `:ok` or the reason, and a part of the message.
#[rustfmt::skip]
const ANSWERS: &[(&str, &str, &str)] = &[
    (r#"{"jsonrpc":"2.0","id":@,"result":{"content":[{"type":"text","text":NaN}]}}"#, ":upstream_error", "not JSON"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"structuredContent":{"n":1e999}}}"#, ":upstream_error", "decoded"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"structuredContent":"\ud800"}}"#, ":upstream_error", "decoded"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"content":[{"type":"text","text":"\ud800"}]}}"#, ":upstream_error", "content"),
    (r#"{"jsonrpc":"2.0","id":@,"id":@,"result":{}}"#, ":upstream_error", "more than one id"),
    (r#"{"jsonrpc":"2.0","id":@,"id":9999,"result":{}}"#, ":upstream_error", "more than one id"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{},"result":{}}"#, ":upstream_error", "more than one result"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{},"error":{"code":1,"message":"both"}}"#, ":upstream_error", "both"),
    (r#"{"jsonrpc":"2.0","id":@}"#, ":upstream_error", "neither result nor error"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"content":[{"ty"#, ":upstream_error", "cut short"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"content":[]},,}"#, ":upstream_error", "cannot be read"),
    (r#"{"jsonrpc":"2.0","result":{"content":[]}}"#, ":upstream_error", "no id"),
    (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#, ":upstream_error", "parse error"),
    (r#"{"jsonrpc":"2.0","id":@,"error":"in words"}"#, ":upstream_error", "in words"),
    (r#"{"jsonrpc":"2.0","id":@,"error":{"code":-32601,"message":"who is that?"}}"#, ":upstream_error", "who is that?"),
    (r#"{"jsonrpc":"2.0","id":@,"error":{"code":12345678901234567890,"message":"far"}}"#, ":upstream_error", "far"),
    (r#"{"jsonrpc":"2.0","id":@,"error":{"code":12345678901234567890}}"#, ":upstream_error", "12345678901234567890"),
    (r#"{"jsonrpc":"2.0","id":@,"result":"text"}"#, ":upstream_error", "not an object"),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"isError":true,"content":[{"type":"image","data":"QUJDREVG"}]}}"#, ":tool_error", "without a text"),
    (r#"{"jsonrpc":"2.0","id":@.0,"result":{"content":[]}}"#, ":ok", ""),
    (r#"{"jsonrpc":"2.0","id":"@","result":{"content":[]}}"#, ":ok", ""),
    ("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": @,\n  \"result\": {\n    \"content\": []\n  }\n}", ":ok", ""),
    (r#"[{"jsonrpc":"2.0","id":@,"result":{"content":[]}}]"#, ":ok", ""),
    (r#"{"jsonrpc":"2.0","id":@,"result":{"content":[]}} and more"#, ":upstream_error", "cannot be read"),
    (r#"{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","id":@,"result":{"content":[]}}"#, ":ok", ""),
];

#[test]
fn broken_answers() {
    let mut run = Run::start(&[]);
    let program = |tool: &str, key: &str, value: &Value| {
        let value = value.to_string();
        format!(
            "(let [r (tool/call 'bad/{tool} {{:{key} {value}}})] (if (:ok r) \":ok\" (str (:reason r) \" \" (:message r))))"
        )
    };
    for (answer, reason, message) in ANSWERS {
        let seen = run.attack(&[program("raw", "text", &json!(answer))]).remove(0);
        assert!(seen.contains(reason) && seen.contains(message), "{answer}: {seen}");
        assert!(seen.len() < 200 && !seen.contains("QUJD"), "{answer}: {seen}");
    }
    // Not UTF-8, inside and outside of a string.
    for place in [
        "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"#\"}]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"#\":1}}",
    ] {
        let bytes: Vec<u8> = place.bytes().map(|byte| if byte == b'#' { 0xff } else { byte }).collect();
        let seen = run.attack(&[program("bytes", "list", &json!(bytes))]).remove(0);
        assert!(seen.contains(":upstream_error") && seen.contains("not UTF-8"), "{place}: {seen}");
    }
    assert_eq!(run.text("(:value (tool/call 'bad/echo {:v 5}))"), "5");
    run.judge("broken answers");
}

#[test]
fn broken_tools() {
    let deep = format!("{}1{}", "{\"a\":".repeat(1000), "}".repeat(1000));
    let huge = "x".repeat(3_000_000);
    let pages = [
        r#"{"tools":[{"name":"echo"},{"name":"s","description":"\ud800"},{"name":"n","inputSchema":{"maximum":1e999}}],"nextCursor":1}"#.to_owned(),
        format!(
            r#"{{"tools":[{{"name":"pid"}},{{"name":"d","inputSchema":{deep}}},{{"name":"h","description":"{huge}"}},{{}},5,{{"name":""}}],"nextCursor":""}}"#
        ),
    ];
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pages.join("\n").as_bytes()).unwrap();
    let mut run = Run::start(&["--list", file.path().to_str().unwrap()]);
    assert_eq!(run.text("(:value (tool/call 'bad/echo {:v 5}))"), "5");
    assert_eq!(run.text("(pos? (:value (tool/call 'bad/pid)))"), "true");
    for broken in ["s", "n", "d", "h"] {
        let seen = run.text(&format!("(def t \"{broken}\") (tool/call {{:server \"bad\" :tool t}})"));
        assert!(seen.contains("in a way that cannot be read"), "{seen}");
    }
    for _ in 0..LOOKS {
        run.look();
    }
    run.judge("broken tools");
}

#[test]
fn doctor_names_what_is_wrong_with_a_list() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let page = r#"{"tools":[{"name":"echo"},{"name":"s","description":"\ud800"},{"description":"no name"}],"nextCursor":""}"#;
    file.write_all(page.as_bytes()).unwrap();
    let config =
        Upstreams::default().add("bad", hostile_server(&["--list", file.path().to_str().unwrap()])).write();
    let report = ptc_tests::binary::run_ptc(&[&["doctor"][..], &config.flags(&[])].concat(), "");
    assert_eq!(report.code, Some(0), "{report:?}");
    for note in ["tool s is left out", "tool 3 of page 1 is left out", "empty cursor", "1 of 1 servers work"]
    {
        assert!(report.stdout.contains(note), "{note}: {}", report.stdout);
    }
}

#[test]
fn doctor_names_what_is_missing_of_a_list() {
    let config = Upstreams::default().add("bad", hostile_server(&["--pages", "0", "2000000"])).write();
    let report = ptc_tests::binary::run_ptc(&[&["doctor"][..], &config.flags(&[])].concat(), "");
    assert_eq!(report.code, Some(0), "{report:?}");
    for note in ["the list is cut after", "1 of 1 servers work"] {
        assert!(report.stdout.contains(note), "{note}: {}", report.stdout);
    }
}
