//! `execute_program` with the built-in engine, which supports a subset of Python.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::processes::{command_line, descendants, eventually, signal};
use ptc_tests::scripts::{
    BEFORE, ONLY_SCRIPTS, REVENUE, answers, attack, begin, finance, reference, run, sections,
};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use serde_json::json;

const MONTY: [&str; 4] = [ONLY_SCRIPTS[0], ONLY_SCRIPTS[1], "--python-engine", "monty"];

/// The error text for an unsupported part of Python.
const WORKAROUND: &str = "`--python-engine cpython` runs scripts with the machine's python3.";

/// The worker processes of scripts.
fn workers(server: &Server) -> Vec<u32> {
    descendants(server.id()).into_iter().filter(|&id| command_line(id).contains("python-worker")).collect()
}

#[test]
fn scripts_print_what_python_prints_or_name_the_workaround() {
    let (wanted, scripts) = (reference(), sections("scripts.py"));
    assert!(scripts.len() >= 100);
    let mut server = Server::start(&MONTY);
    let began: Vec<u64> = scripts.iter().map(|(_, code)| begin(&mut server, code)).collect();
    let texts = answers(&mut server, began.len());
    let mut same = 0;
    for ((id, (name, _)), (_, printed)) in began.iter().zip(&scripts).zip(&wanted) {
        if texts[id] == format!("[Script executed successfully]\n{printed}") {
            same += 1;
            continue;
        }
        let why = texts[id].split(BEFORE).next().unwrap();
        let failed = why.starts_with("[Script execution failed]\n") && why.ends_with(WORKAROUND);
        assert!(failed, "{name}: {}", texts[id]);
        println!("gap: {name}: {}", why.lines().rev().nth(1).unwrap());
    }
    println!(
        "{same} of {} scripts print what CPython prints; each other names the workaround",
        scripts.len()
    );
    assert!(same >= 36, "{same}");
}

#[test]
fn attacks_end_in_nothing() {
    let flags = ["--python-timeout", "2s", "--python-memory", "64M"];
    let mut server = Server::start(&[&MONTY[..], &flags].concat());
    attack(&mut server);
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(run(&mut server, &deep).starts_with("[Script execution failed]\n"));
    assert_eq!(run(&mut server, "print(2)"), "[Script executed successfully]\n2\n");
    // The remaining processes are idle workers.
    let most = std::thread::available_parallelism().unwrap().get().max(2);
    eventually("every script has ended", || workers(&server).len() <= most);
    assert_eq!(descendants(server.id()).len(), workers(&server).len());
}

#[test]
fn texts_are_those_of_the_document() {
    let config = finance().write();
    let flags = ["--python-timeout", "3s", "--python-output", "200"];
    let mut server = Server::start(&config.flags(&[&MONTY[..], &flags].concat()));
    for (code, want) in [
        REVENUE,
        ("x = 1", "[Script executed successfully]\n(no output)"),
        (
            "1/0",
            "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 1, in __main__\n    1/0\nZeroDivisionError: division by zero",
        ),
        (
            "t = 'NONE'\ndata = await mcp__financial_data__query_financials(ticker=t)",
            "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 2, in __main__\n    \
             data = await mcp__financial_data__query_financials(ticker=t)\n\
             ToolError: 'mcp__financial_data__query_financials' failed: no such ticker",
        ),
        ("while True: pass", "[Script execution failed]\nTimeoutError: Execution exceeded 3s limit"),
        (
            "print('äö' * 100)",
            &format!("[Script executed successfully]\n{}\n... (truncated)", "äö".repeat(50)),
        ),
        ("print(2)", "[Script executed successfully]\n2\n"),
        (
            "import asyncio\nf = mcp__financial_data__query_financials\nr = await asyncio.gather(f('AMZN', limit=1), f('GOOG', limit=1))\nprint(r)",
            "[Script executed successfully]\n[[{'revenue': 170000000000.0}], [{'revenue': 96500000000.0}]]\n",
        ),
        (
            "try:\n    await mcp__financial_data__query_financials(ticker='NONE')\nexcept ToolError as e:\n    print(e)",
            "[Script executed successfully]\n'mcp__financial_data__query_financials' failed: no such ticker\n",
        ),
        (
            "mcp__financial_data__query_financials('AMZN')\nprint(1)",
            "[Script executed successfully]\n1\nRuntimeWarning: mcp__financial_data__query_financials(…) was never awaited, so it was not called: \
             write `await mcp__financial_data__query_financials(…)`",
        ),
        (
            "print(tools('price SHARE'))",
            "[Script executed successfully]\n['mcp__financial_data__stock_quote']\n",
        ),
        (
            "help(mcp__financial_data__stock_quote)",
            "[Script executed successfully]\nawait mcp__financial_data__stock_quote(ticker: str = None)\n    \n    The price of a share\n",
        ),
        ("print('x' in globals()) if False else print(1)", "[Script executed successfully]\n1\n"),
    ] {
        let got = run(&mut server, code);
        // Marks below source lines differ between engines.
        let is_marks = |line: &&str| line.contains(['~', '^']) && line.chars().all(|c| " ~^".contains(c));
        let got: Vec<&str> = got.split('\n').filter(|line| !is_marks(line)).collect();
        assert_eq!(got.join("\n"), want, "{code}");
    }
    for (code, part) in [
        (
            "await mcp__financial_data__query_financial('AMZN')",
            "Did you mean: 'mcp__financial_data__query_financials'?",
        ),
        ("await mcp__nothing__here()", "There is no such tool"),
        ("await mcp__financial_data__query_financials(ticker=5)", "ticker must be str, got 5"),
        (
            "await mcp__financial_data__query_financials(1, 2, 3, 4, 5)",
            "takes 4 positional arguments (ticker, statement, period, limit)",
        ),
        (
            "await mcp__financial_data__query_financials('A', ticker='B')",
            "multiple values for argument 'ticker'",
        ),
        ("for _ in range(26): tools()", "the discovery budget of 25 operations is used up"),
    ] {
        let got = run(&mut server, code);
        assert!(got.starts_with("[Script execution failed]\n") && got.contains(part), "{code}: {got}");
    }
}

#[test]
fn killed_workers_lose_only_their_own_scripts() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&[&MONTY[..], &["--max-total-memory", "100G"]].concat()));
    // Each waits for a call that is answered when 21 of them are in flight.
    let waiting = "r = await mcp__probe__gather(n=21)\nprint(len(r) > 0)";
    let first: Vec<u64> = (0..20).map(|_| begin(&mut server, waiting)).collect();
    eventually("20 calls are in flight", || {
        let stats = run(&mut server, "s = await mcp__probe__stats()\nprint(s['most_in_flight'])");
        stats == "[Script executed successfully]\n21\n"
    });
    // The one that asked is idle.
    let all = workers(&server);
    assert!(all.len() > 20);
    all.iter().take(7).for_each(|&id| signal(id, "KILL"));
    let killed = answers(&mut server, 6);
    assert!(killed.keys().all(|id| first.contains(id)));
    for text in killed.values() {
        assert!(text.contains("the process of the script was killed"), "{text}");
    }
}

#[test]
fn it_is_taken_where_cpython_cannot_be_and_says_what_it_lacks() {
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &["--python", "/no/such/python"]].concat());
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("a subset of Python (Monty): no inheritance"), "{description}");
    assert_eq!(run(&mut server, "print(1)"), "[Script executed successfully]\n1\n");
    let doctor = ptc(&["doctor", "--python", "/no/such/python"]).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("Monty 0.0.23") && text.contains("/no/such/python"), "{text}");
    let refused =
        ptc(&["exec", "-", "--python", "/no/such/python", "--python-engine", "cpython"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// The kernel confines workers as well, so that a fault in the interpreter gives scripts nothing.
#[cfg(target_os = "linux")]
#[test]
fn workers_are_held_by_the_kernel_as_well() {
    let mut server = Server::start(&MONTY);
    assert_eq!(run(&mut server, "print(1)"), "[Script executed successfully]\n1\n");
    let workers = workers(&server);
    assert!(!workers.is_empty());
    for id in workers {
        for thread in std::fs::read_dir(format!("/proc/{id}/task")).unwrap().map_while(Result::ok) {
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
            assert!(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"), "{status}");
        }
    }
    // A worker that runs out of memory ends like one that was killed for it.
    let mut server = Server::start(&[&MONTY[..], &["--python-memory", "32M"]].concat());
    for code in
        ["x = 'a' * 500000000", "x = [0]\nwhile True:\n    x = x + x", "x = b'a' * 900000000\nprint(len(x))"]
    {
        let text = run(&mut server, code);
        assert!(text.contains("MemoryError"), "{code}: {text}");
    }
}
