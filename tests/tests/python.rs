//! `execute_program` through `ptc serve`: the texts of its document, and what a script cannot do.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::processes::{descendants, eventually};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use serde_json::json;
use std::path::Path;

const ONLY_SCRIPTS: [&str; 2] = ["--tools", "execute_program"];

fn begin(server: &mut Server, code: &str) -> u64 {
    server.begin("tools/call", json!({ "name": "execute_program", "arguments": { "code": code } }))
}

fn run(server: &mut Server, code: &str) -> String {
    let id = begin(server, code);
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return text_of(&answer["result"]);
        }
    }
}

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name).to_str().unwrap().to_owned()
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn texts_are_those_of_the_document() {
    let finance = json!({ "command": "python3", "args": [data("finance.py")] });
    let config = Upstreams::default().add("financial-data", finance).write();
    let mut server = Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &["--python-timeout", "3s"]].concat()));
    let revenue = r#"
tickers = ["AMZN", "MSFT", "GOOG"]
for t in tickers:
    data = await mcp__financial_data__query_financials(
        ticker=t, statement="income", period="quarter", limit=4
    )
    revenues = [q["revenue"] for q in data]
    trend = " → ".join(f"${r/1e9:.1f}B" for r in revenues)
    print(f"{t}: {trend}")
"#;
    let table = [
        (
            revenue,
            "[Script executed successfully]\nAMZN: $170.0B → $165.3B → $158.9B → $149.2B\n\
             MSFT: $65.6B → $62.0B → $59.1B → $56.5B\nGOOG: $96.5B → $88.3B → $85.0B → $80.5B\n",
        ),
        ("x = 1", "[Script executed successfully]\n(no output)"),
        (
            "print(x)",
            "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 1, in __main__\n    print(x)\n          ^\nNameError: name 'x' is not defined",
        ),
        (
            "t = 'NONE'\ndata = await mcp__financial_data__query_financials(ticker=t)",
            "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 2, in __main__\n    \
             data = await mcp__financial_data__query_financials(ticker=t)\n           \
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n\
             ToolError: 'mcp__financial_data__query_financials' failed: no such ticker",
        ),
        ("while True: pass", "[Script execution failed]\nTimeoutError: Execution exceeded 3s limit"),
        ("print(x := 5)\nreturn", "[Script executed successfully]\n5\n"),
        ("print('x' in globals())", "[Script executed successfully]\nFalse\n"),
        (
            "import asyncio\nf = mcp__financial_data__query_financials\nr = await asyncio.gather(f('AMZN', limit=1), f('GOOG', limit=1))\nprint(r)",
            "[Script executed successfully]\n[[{'revenue': 170000000000.0}], [{'revenue': 96500000000.0}]]\n",
        ),
    ];
    for (code, want) in table {
        let got = run(&mut server, code);
        // Marks below a line are Python's, from 3.11 on.
        let without_marks = |text: &str| -> String {
            text.lines()
                .filter(|line| !line.trim_start().starts_with('^'))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        assert_eq!(without_marks(&got), without_marks(want), "{code}");
    }
    for (code, part) in [
        (
            "d = mcp__financial_data__query_financials('AMZN')\nprint(d[0])",
            "write `await mcp__financial_data__query_financials(…)`",
        ),
        (
            "await mcp__financial_data__query_financial('AMZN')",
            "Did you mean: 'mcp__financial_data__query_financials'?",
        ),
        (
            "await mcp__financial_data__query_financials(ticker=5)",
            "ToolError: 'mcp__financial_data__query_financials' failed: tool 'financial-data.query_financials' rejected args: ticker must be string, got 5",
        ),
        (
            "await mcp__financial_data__query_financials(1, 2, 3, 4, 5)",
            "takes 4 positional arguments (ticker, statement, period, limit)",
        ),
    ] {
        let got = run(&mut server, code);
        assert!(got.starts_with("[Script execution failed]\n") && got.contains(part), "{code}: {got}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn output_is_cut_at_a_character() {
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &["--python-output", "9"]].concat());
    assert_eq!(run(&mut server, "print('äöüäöü')"), "[Script executed successfully]\näöüä\n... (truncated)");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_tool_that_is_not_asked_for_is_not_offered() {
    let mut server = Server::start(&ONLY_SCRIPTS);
    let list = server.request("tools/list", json!({}));
    let names: Vec<&str> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["execute_program"]);
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn attacks_end_in_nothing() {
    let text = std::fs::read_to_string(data("attacks.py")).unwrap();
    let attacks: Vec<(&str, &str)> =
        text.split("\n# ---- ").skip(1).map(|section| section.split_once('\n').unwrap()).collect();
    assert!(attacks.len() >= 60);
    let flags = ["--python-timeout", "2s", "--python-memory", "64M"];
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &flags].concat());
    let began: Vec<(u64, &str)> =
        attacks.iter().map(|(name, code)| (begin(&mut server, code), *name)).collect();
    for _ in &began {
        let answer = server.receive();
        let (_, name) = began.iter().find(|(id, _)| answer["id"] == *id).unwrap();
        // A traceback shows lines of the script; what it printed is only in the answer of one that ended well.
        let text = text_of(&answer["result"]);
        assert!(!text.starts_with("[Script executed") || !text.contains("BROKEN"), "{name}: {text}");
    }
    assert_eq!(
        run(&mut server, "import math, json\nprint(json.loads('1'), math.pi > 3)"),
        "[Script executed successfully]\n1 True\n"
    );
    // What is left is the process of all scripts, and the one that holds its namespaces.
    let id = server.id();
    eventually("every script has ended", || descendants(id).len() <= 2);
}
