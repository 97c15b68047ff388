//! `execute_program` through `ptc serve`: the texts of its document, and the confinement of scripts.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

mod endings;
mod held;
mod hostile_lines;
mod loops;
mod memory;
mod module;
mod replies;

use ptc_tests::processes::{command_line, descendants, eventually, signal};
use ptc_tests::scripts::{
    ONLY_SCRIPTS, REVENUE, answers, attack, begin, finance, reference, result, run, sections, without_marks,
};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn texts_are_those_of_the_document() {
    let config = finance().write();
    let mut server = Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &["--python-timeout", "3s"]].concat()));
    let table = [
        REVENUE,
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
        assert_eq!(without_marks(&run(&mut server, code)), without_marks(want), "{code}");
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
            "ToolError: 'mcp__financial_data__query_financials' failed: ticker must be str, got 5",
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
    let flags = ["--python-timeout", "2s", "--python-memory", "64M"];
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &flags].concat());
    attack(&mut server);
    // The remaining processes are the warm one from which all scripts fork, and the one that holds its namespaces.
    let id = server.id();
    eventually("every script has ended", || descendants(id).len() <= 2);
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn scripts_as_models_write_them_print_what_python_prints() {
    let (wanted, scripts) = (reference(), sections("scripts.py"));
    assert!(wanted.len() >= 100);
    let mut server = Server::start(&ONLY_SCRIPTS);
    let began: Vec<u64> = scripts.iter().map(|(_, code)| begin(&mut server, code)).collect();
    let texts = answers(&mut server, began.len());
    for ((id, (name, _)), (its_name, printed)) in began.iter().zip(&scripts).zip(&wanted) {
        assert_eq!(name, its_name);
        assert_eq!(texts[id], format!("[Script executed successfully]\n{printed}"), "{name}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn profiles_decide_what_stands_beside_the_text() {
    let config = finance().write();
    let code = "d = await mcp__financial_data__query_financials('AMZN', limit=1)\nprint(d[0]['revenue'])";
    let failing = "await mcp__financial_data__stock_quote(ticker='X')\nawait mcp__financial_data__query_financials('NONE')";
    let error = "ToolError: 'mcp__financial_data__query_financials' failed: no such ticker";
    for profile in ["slim", "structured", "debug"] {
        let mut server =
            Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &["--response-profile", profile]].concat()));
        let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!(tools[0].get("outputSchema").is_some(), profile != "slim");
        let (ok, failed) = (result(&mut server, code), result(&mut server, failing));
        if profile != "debug" {
            assert_eq!(text_of(&ok), "[Script executed successfully]\n170000000000.0\n");
            let text = text_of(&failed);
            assert!(
                text.starts_with("[Script execution failed]\nTraceback") && text.ends_with(error),
                "{text}"
            );
        }
        let (data, why) = (&ok["structuredContent"], &failed["structuredContent"]);
        if profile == "slim" {
            assert!(data.is_null() && why.is_null());
            continue;
        }
        assert_eq!((&data["status"], &data["result"]), (&json!("ok"), &json!("170000000000.0\n")));
        assert_eq!(
            (&why["status"], &why["reason"], &why["message"]),
            (&json!("error"), &json!("runtime_error"), &json!(error))
        );
        let called: Vec<&str> =
            why["calls_made"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
        assert_eq!(called, ["stock_quote", "query_financials"]);
        if profile == "debug" {
            assert_eq!(serde_json::from_str::<Value>(&text_of(&ok)).unwrap(), *data);
            let call = &data["upstream_calls"][0];
            assert_eq!(
                (&call["server"], &call["tool"]),
                (&json!("financial-data"), &json!("query_financials"))
            );
            assert!(data["ptc_metrics"].is_object() && data["usage"].is_object(), "{data}");
            assert_eq!(why["upstream_calls"].as_array().unwrap().len(), 2);
        }
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn tools_are_listed_searched_and_explained() {
    let config = finance().write();
    for (mode, listed) in [("auto", true), ("inline", true), ("lazy", false)] {
        let mut server =
            Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &["--catalog-mode", mode]].concat()));
        let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
        let description = tools[0]["description"].as_str().unwrap();
        assert!(description.starts_with("Execute a Python program"), "{description}");
        let row = "\n  - mcp__financial_data__query_financials(ticker, statement?, period?, limit?) - Rows of a company";
        assert_eq!(description.contains(row), listed, "{description}");
        assert_eq!(description.contains("help(mcp__server__tool)"), !listed, "{description}");
    }
    let mut server = Server::start(&config.flags(&ONLY_SCRIPTS));
    for (code, want) in [
        ("print(tools('price SHARE'))", "['mcp__financial_data__stock_quote']\n"),
        (
            "help(mcp__financial_data__query_financials)",
            "await mcp__financial_data__query_financials(ticker: str, statement: str = None, period: str = None, \
             limit: int = None)\n    \n    Rows of a company's statements\n",
        ),
        (
            "for name in tools('quote'): help(name)",
            "await mcp__financial_data__stock_quote(ticker: str = None)\n    \n    The price of a share\n",
        ),
        (
            "f = globals()['mcp__' + 'financial_data__stock_quote']\nprint(await f(ticker='A'))",
            "{'ticker': 'A', 'price': 12.5}\n",
        ),
    ] {
        assert_eq!(run(&mut server, code), format!("[Script executed successfully]\n{want}"), "{code}");
    }
    assert!(run(&mut server, "help(len)").contains("Return the number of items in a container"));
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn scripts_end_at_their_deadline_though_nobody_takes_orders() {
    // More than the buffer of the control socket holds.
    const SCRIPTS: usize = 400;
    let flags = ["--python-timeout", "2s", "--python-memory", "16M", "--max-total-memory", "100G"];
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &flags].concat());
    assert_eq!(run(&mut server, "print(1)"), "[Script executed successfully]\n1\n");
    let process = server.id();
    eventually("the first script has ended", || descendants(process).len() == 2);
    let warm = descendants(process);
    warm.iter().for_each(|&id| signal(id, "STOP"));
    for _ in 0..SCRIPTS {
        begin(&mut server, "import time\ntime.sleep(600)");
    }
    for text in answers(&mut server, SCRIPTS).values() {
        assert_eq!(text, "[Script execution failed]\nTimeoutError: Execution exceeded 2s limit");
    }
    warm.iter().for_each(|&id| signal(id, "CONT"));
    eventually("every script has ended", || descendants(process).len() == 2);
    eventually("scripts run again", || run(&mut server, "print(2)") == "[Script executed successfully]\n2\n");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn killed_workers_lose_only_their_own_scripts() {
    let config = Upstreams::probe().write();
    let flags = ["--python-memory", "16M", "--max-total-memory", "100G"];
    let mut server = Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &flags].concat()));
    // Each waits for a call that is answered when 21 of them are in flight.
    let waiting = "print(len(await mcp__probe__gather(n=21)) > 0)";
    let process = server.id();
    assert_eq!(run(&mut server, "print(len(tools()))"), "[Script executed successfully]\n6\n");
    let mut before = Vec::new();
    eventually("the first script has ended", || {
        let now = descendants(process);
        std::mem::replace(&mut before, now.clone()) == now
    });
    let first: Vec<u64> = (0..20).map(|_| begin(&mut server, waiting)).collect();
    eventually("20 calls are in flight", || {
        let stats = run(&mut server, "print((await mcp__probe__stats())['most_in_flight'])");
        // The call that counts is included.
        stats == "[Script executed successfully]\n21\n"
    });
    let workers: Vec<u32> = descendants(process).into_iter().filter(|id| !before.contains(id)).collect();
    workers.iter().take(7).for_each(|&id| signal(id, "KILL"));
    let killed = answers(&mut server, 7);
    for (id, text) in &killed {
        assert!(
            first.contains(id)
                && text.starts_with(
                    "[Script execution failed]\nMemoryError: the process of the script was killed"
                ),
            "{text}"
        );
    }
    for _ in 0..8 {
        begin(&mut server, waiting);
    }
    for (id, text) in answers(&mut server, 21) {
        assert_eq!(
            (text.as_str(), killed.contains_key(&id)),
            ("[Script executed successfully]\nTrue\n", false)
        );
    }
    // The warm process itself; the next script gets a new one.
    let warm = before.into_iter().find(|&id| command_line(id).contains("json.loads(_line)")).unwrap();
    signal(warm, "KILL");
    eventually("scripts run again", || run(&mut server, "print(2)") == "[Script executed successfully]\n2\n");
}
