//! Everything that a program makes the host store is bounded. Each host form runs, in each way in which it may fail,
//! in a loop, in branches, and in loops of branches, with the profiles and records that copy what is stored.
//!
//! `PTC_HOSTILE=all` runs each for ten seconds, with every set of flags.

use ptc_tests::processes::peak_resident;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, probe_server, stdio};
use serde_json::json;

/// The memory limit of the programs.
const LIMIT: u64 = 10 << 20;

/// Most memory that such a program may add to the process on top of its limit.
const BESIDE: u64 = 30 << 20;

/// Host forms, with the ways in which they fail. `i` counts.
const FORMS: [(&str, &str); 22] = [
    ("call", "(tool/call {:server \"probe\" :tool \"echo\" :args {:v i}})"),
    ("call that the tool refuses", "(tool/call {:server \"probe\" :tool \"refuse\" :args {}})"),
    ("call of a large answer", "(tool/call {:server \"probe\" :tool \"flood\" :args {:bytes 3000000}})"),
    (
        "call of empty blocks",
        "(tool/call {:server \"probe\" :tool \"flood\" :args {:blocks 480000 :block {}}})",
    ),
    (
        "call of odd blocks",
        "(tool/call {:server \"probe\" :tool \"flood\" :args {:blocks 130000 :block {:type \"zz\"}}})",
    ),
    (
        "call of empty texts",
        "(tool/call {:server \"probe\" :tool \"flood\" :args {:blocks 70000 :block {:type \"text\" :text \"\"}}})",
    ),
    ("call of a server that is down", "(tool/call {:server \"gone\" :tool \"echo\" :args {:v i}})"),
    ("call with many names", "(tool/call {:server \"gone\" :tool (str \"t\" i) :args {}})"),
    ("resources", "(resource/list {:server \"probe\"})"),
    ("resources of a server that is down", "(resource/list {:server \"gone\"})"),
    ("templates", "(resource/templates {:server \"probe\"})"),
    ("resource that is not there", "(resource/read {:server \"probe\" :uri (str \"no://\" i)})"),
    ("prompts", "(prompt/list {:server \"probe\"})"),
    ("prompt that is not there", "(prompt/get {:server \"probe\" :name (str \"p\" i) :args {}})"),
    ("servers", "(tool/servers)"),
    ("search", "(apropos (str \"echo\" i))"),
    ("list", "(dir 'probe)"),
    ("list of a server that is down", "(dir 'gone)"),
    ("documentation", "(doc 'probe/echo)"),
    ("facts", "(meta 'probe/echo)"),
    ("line", "(println (str \"line \" i))"),
    ("wide line", "(println (range 1000))"),
];

/// How often a form runs.
const SHAPES: [(&str, &str); 3] = [
    ("loop", "(loop [i 0] FORM (recur (inc i)))"),
    ("branches", "(loop [j 0] (doall (pmap (fn [i] FORM) (range 200))) (recur (inc j)))"),
    ("loops", "(doall (pmap (fn [_] (loop [i 0] FORM (recur (inc i)))) (range 20)))"),
];

/// Flags that make the server copy what it stores.
const FLAGS: [&[&str]; 3] = [
    &["--response-profile", "slim"],
    &["--response-profile", "debug", "--tools", "lisp_eval,lisp_debug"],
    &["--response-profile", "structured", "--tools", "lisp_eval,lisp_debug"],
];

#[test]
fn what_programs_make_the_host_keep_is_bounded() {
    let _alone = crate::alone();
    let all = std::env::var("PTC_HOSTILE").is_ok_and(|extent| extent == "all");
    let (timeout, sets) = if all { ("10s", &FLAGS[..]) } else { ("300ms", &FLAGS[1..2]) };
    let config = Upstreams::default()
        .add("probe", probe_server(&[]))
        .add("gone", stdio("/no/such/command", &[]))
        .write();
    let mut worst = (0, String::new());
    for flags in sets {
        let limits = ["--timeout", timeout, "--memory", "10M", "--startup", "lenient"];
        for (form, text) in FORMS {
            for (shape, program) in SHAPES {
                // A new server for each attack: what the allocator and the records of runs retain is not counted for
                // the next one.
                let mut server = start(&config.flags(&[flags, &limits[..]].concat()));
                let base = peak_resident(server.id());
                let id = server.begin(
                    "tools/call",
                    json!({ "name": "lisp_eval", "arguments": { "program": program.replace("FORM", text) },
                        "_meta": { "progressToken": "p" } }),
                );
                // Progress and list-changed notifications may come before the answer.
                let answer = loop {
                    let message = server.receive();
                    if message["id"] == id {
                        break message;
                    }
                };
                assert!(answer["result"]["isError"] == true, "{form} in {shape}: {answer}");
                let peak = peak_resident(server.id());
                let grown = peak - base;
                if grown > worst.0 {
                    worst = (grown, format!("{form} in {shape}"));
                }
                assert!(grown <= LIMIT + BESIDE, "{form} in {shape}: {} MB", grown >> 20);
                assert!(server.text("(+ 1 2)").contains('3'));
            }
        }
    }
    println!(
        "{} programs, the worst {} MB: {}",
        sets.len() * FORMS.len() * SHAPES.len(),
        worst.0 >> 20,
        worst.1
    );
}

fn start(flags: &[&str]) -> Server {
    let mut server = Server::start(flags);
    while !server.text("(:value (tool/call {:server \"probe\" :tool \"echo\" :args {:v 1}}))").contains('1') {
    }
    server
}
