//! How scripts end, with both engines: their output, their limits, their errors.

use ptc_tests::scripts::{ONLY_SCRIPTS, counter, engines, finance, result, run, without_marks};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};

fn server(engine: &str, more: &[&str]) -> Server {
    let config = counter().write();
    let flags = [&ONLY_SCRIPTS[..], &["--python-engine", engine], more].concat();
    let mut server = Server::start(&config.flags(&flags));
    // After this request the configuration has been read.
    server.request("tools/list", json!({}));
    server
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn only_standard_output_comes_back() {
    let code = "import sys, warnings\nprint('to stderr', file=sys.stderr)\nwarnings.warn('careful')\n\
                try:\n    1 / 0\nexcept ZeroDivisionError:\n    import traceback\n    traceback.print_exc()";
    let dir = tempfile::tempdir().unwrap();
    let traces = ["--trace-dir", dir.path().to_str().unwrap()];
    let mut slim = server("cpython", &traces);
    assert_eq!(run(&mut slim, code), "[Script executed successfully]\n(no output)");
    let failing = format!("{code}\nprint('out')\nboom()");
    let text = run(&mut slim, &failing);
    assert!(text.ends_with("\n\n[Output before the failure]\nout") && !text.contains("to stderr"), "{text}");
    assert_eq!(slim.end(), Some(0));
    let files = std::fs::read_dir(dir.path())
        .unwrap()
        .flat_map(|entry| std::fs::read_to_string(entry.unwrap().path()));
    assert_eq!(files.filter(|trace| trace.contains("\"stderr\"")).count(), 2);
    let mut debug = server("cpython", &["--response-profile", "debug"]);
    let data = result(&mut debug, code)["structuredContent"].clone();
    let lines = data["stderr"].as_array().unwrap();
    assert_eq!((&lines[0], &data["result"]), (&json!("to stderr"), &json!("(no output)")));
    assert!(lines.iter().any(|line| line.as_str().unwrap().contains("careful")), "{data}");
    assert!(lines.iter().any(|line| line == "ZeroDivisionError: division by zero"), "{data}");
    let data = result(&mut debug, &failing)["structuredContent"].clone();
    assert_eq!((&data["prints"], &data["stderr"][0]), (&json!(["out"]), &json!("to stderr")));
    let data = result(&mut debug, "print(1)")["structuredContent"].clone();
    assert!(data.get("stderr").is_none(), "{data}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_limit_that_is_reached_in_a_call_ends_the_script_whatever_it_catches() {
    let limit = "[Script execution failed]\nTimeoutError: Execution exceeded 1s limit";
    let scripts = [
        "await mcp__counter__hang()",
        "try:\n    await mcp__counter__hang()\nexcept ToolError:\n    pass\nprint('fine')",
        "try:\n    await mcp__counter__hang()\nexcept BaseException:\n    pass\nprint('fine')",
        "for n in range(100):\n    try:\n        await mcp__counter__hang()\n    except BaseException:\n        pass\nprint('fine')",
        "import asyncio\nawait asyncio.gather(mcp__counter__hang(), mcp__counter__hang(), return_exceptions=True)\nprint('fine')",
    ];
    for engine in engines() {
        let mut server = server(engine, &["--python-timeout", "1s"]);
        for script in &scripts[..if engine == "monty" { 4 } else { 5 }] {
            assert_eq!(run(&mut server, script), limit, "{engine}: {script}");
        }
        // A timeout of a single call is a fault of that call.
        let caught = "try:\n    await mcp__counter__hang()\nexcept ToolError as e:\n    print(e)";
        let told = |source: &str| {
            format!(
                "[Script executed successfully]\n'mcp__counter__hang' failed: no answer within 100 ms ({source})\n"
            )
        };
        let mut server = self::server(engine, &["--upstream-call-timeout", "100ms"]);
        assert_eq!(run(&mut server, caught), told("--upstream-call-timeout"), "{engine}");
        let mut entry = ptc_tests::upstreams::stdio("python3", &[&ptc_tests::scripts::data("counter.py")]);
        entry["request_timeout_ms"] = 100.into();
        let config = ptc_tests::upstreams::Upstreams::default().add("counter", entry).write();
        let mut server =
            Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &["--python-engine", engine]].concat()));
        assert_eq!(run(&mut server, caught), told("request_timeout_ms of the server"), "{engine}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn errors_that_a_script_catches_end_it_at_no_number() {
    let caught = "n = 0\nfor _ in range(20000):\n    try:\n        tools('x')\n    except Exception:\n        n += 1\nprint(n > 10000)";
    for engine in engines() {
        let mut server = server(engine, &[]);
        assert_eq!(run(&mut server, caught), "[Script executed successfully]\nTrue\n", "{engine}");
    }
    // It asks without reading the answers.
    let flood = "import os\nfor channel in range(3, 64):\n    try:\n        for _ in range(100):\n            \
                 os.write(channel, b'{\"call\":1,\"look\":{\"tools\":\"\"}}\\n' * 1000)\n    except OSError:\n        pass";
    let text = run(&mut server("cpython", &[]), flood);
    assert!(text.contains("used tools() and help() without reading what they said"), "{text}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn marks_stand_under_what_is_wrong() {
    let mut server = server("cpython", &[]);
    let frame = |line: u32, text: &str, marks: &str, error: &str| {
        let head = "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\"";
        format!("{head}, line {line}, in __main__\n    {text}\n    {marks}\n{error}")
    };
    let name = "NameError: name 'undefined_name' is not defined";
    for (code, line, text, marks) in [
        ("y = undefined_name", 1, "y = undefined_name", "    ^^^^^^^^^^^^^^"),
        ("y = undefined_name\n", 1, "y = undefined_name", "    ^^^^^^^^^^^^^^"),
        ("x = 1\r\ny = undefined_name", 2, "y = undefined_name", "    ^^^^^^^^^^^^^^"),
        ("for i in [1]:\n    y = undefined_name", 2, "y = undefined_name", "    ^^^^^^^^^^^^^^"),
        // One line to Python.
        ("s = 'a\u{2028}b'\ny = undefined_name", 2, "y = undefined_name", "    ^^^^^^^^^^^^^^"),
        ("y = 'ä', undefined_name", 1, "y = 'ä', undefined_name", "         ^^^^^^^^^^^^^^"),
    ] {
        let (got, want) = (run(&mut server, code), frame(line, text, marks, name));
        // Python prints no marks before 3.11.
        assert!(got == want || got == without_marks(&want), "{code}: {got}\n{want}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn what_was_printed_stands_behind_the_traceback() {
    for engine in engines() {
        let mut server = server(engine, &["--python-timeout", "2s", "--python-output", "1000"]);
        let text = run(&mut server, "print('one')\nprint('two', end='')\nboom");
        assert!(text.starts_with("[Script execution failed]\nTraceback"), "{text}");
        assert!(text.contains("NameError: name 'boom'"), "{text}");
        assert!(text.ends_with("\n\n[Output before the failure]\none\ntwo"), "{engine}: {text}");
        for forever in ["while True: pass", "await mcp__counter__hang()"] {
            let text = run(&mut server, &format!("print('one')\nprint('two')\n{forever}"));
            let want = "[Script execution failed]\nTimeoutError: Execution exceeded 2s limit\n\n\
                        [Output before the failure]\none\ntwo";
            assert_eq!(text, want, "{engine}");
        }
        if engine == "cpython" {
            for (code, last) in [
                ("print('no end', end='')", "no end"),
                ("print('a' * 2000)", "aaa\n... (truncated)"),
                ("for n in range(250): print(n)", "248\n249"),
                ("import sys\nsys.stdout.buffer.write(b'bytes')\nsys.stdout.flush()", "bytes"),
            ] {
                let text = run(&mut server, &format!("{code}\nwhile True: pass"));
                assert!(text.contains("TimeoutError") && text.ends_with(last), "{code}: {text}");
            }
        }
        let text = run(&mut server, "for n in range(1000): print('line', n)\nboom");
        assert!(text.ends_with("\n... (truncated)") && text.len() < 2_000, "{engine}: {text}");
        let text = run(&mut server, "boom");
        assert!(!text.contains("[Output"), "{text}");
        // Ten times the lines that fit into one notification.
        let code = "for n in range(2000): print(n % 10, end='\\n' if n % 2 else '')\n";
        let whole = run(&mut self::server(engine, &[]), code);
        assert_eq!(whole.lines().count(), 1_001, "{engine}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn errors_of_calls_are_in_the_notation_of_scripts() {
    for engine in engines() {
        let mut server = server(engine, &["--max-upstream-calls", "3"]);
        for (tool, call, parts) in [
            ("strict", "limit=1", vec!["missing 1 required argument: ticker", "; Signature: "]),
            ("strict", "bogus=1", vec!["got an unexpected keyword argument 'bogus'", "; Signature: "]),
            (
                "strict",
                "ticker='A', bogus=1",
                vec!["got an unexpected keyword argument 'bogus'", "; Signature: "],
            ),
            (
                "lax",
                "bogus=1",
                vec!["missing 1 required argument: ticker; unexpected keyword arguments: bogus; Signature: "],
            ),
            ("lax", "ticker=None", vec!["ticker must be str, got None"]),
            ("lax", "ticker=True", vec!["ticker must be str, got True"]),
        ] {
            let text = run(&mut server, &format!("await mcp__counter__{tool}({call})"));
            let last = text.lines().last().unwrap();
            let beginning = format!("ToolError: 'mcp__counter__{tool}' failed: ");
            assert!(last.starts_with(&beginning), "{engine}: {text}");
            assert!(parts.iter().all(|part| last.contains(part)), "{engine}, {call}: {text}");
            let signature = format!("Signature: mcp__counter__{tool}(ticker: str, limit: int = None)");
            assert!(!last.contains("Signature") || last.ends_with(&signature), "{engine}: {text}");
        }
        // Names that are right are not among the unexpected ones.
        let text = run(&mut server, "await mcp__counter__between(from_='a', way='up', bogus=1)");
        assert!(text.contains("failed: got an unexpected keyword argument 'bogus'; Signature: "), "{text}");
        let text = run(&mut server, "for n in range(4):\n    await mcp__counter__look(n=n)");
        let why = "'mcp__counter__look' failed: cap_exhausted: a script may make 3 tool calls (--max-upstream-calls)";
        assert!(text.ends_with(why), "{engine}: {text}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn help_shows_types_and_a_keyword_has_an_underscore() {
    for engine in engines() {
        let mut server = server(engine, &[]);
        assert_eq!(
            run(&mut server, "help(mcp__counter__between)"),
            "[Script executed successfully]\nawait mcp__counter__between(from_: str, way: Literal[\"up\", \"down\"] = \"up\", \
             filter: {\"tags\"?: list[str]} = None) -> str, or data where the text is JSON\n    \n    \
             from_: The first day\n",
            "{engine}"
        );
        for (arguments, text) in [
            ("from_='a'", "{'from': 'a'}"),
            ("'a', way='down'", "{'from': 'a', 'way': 'down'}"),
            ("**{'from': 'a'}", "{'from': 'a'}"),
        ] {
            let text = format!("[Script executed successfully]\n{text}\n");
            let code = format!("print(await mcp__counter__between({arguments}))");
            assert_eq!(run(&mut server, &code), text, "{engine}, {arguments}");
        }
        for (arguments, part) in [
            ("", "missing 1 required argument: from_; Signature: mcp__counter__between(from_: str, "),
            ("from_=1", "failed: from_ must be str, got 1"),
            ("'a', from_='b'", "got multiple values for argument 'from_'"),
            ("'a', way='left'", "way must be one of \"up\", \"down\", got \"left\""),
        ] {
            let text = run(&mut server, &format!("await mcp__counter__between({arguments})"));
            assert!(text.contains(part), "{engine}, {arguments}: {text}");
        }
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_function_of_a_server_that_is_down_says_so() {
    let mut gone = ptc_tests::upstreams::stdio("/nonexistent/server", &[]);
    gone["required"] = false.into();
    let config = finance().add("gone", gone).write();
    for engine in engines() {
        let flags = [&ONLY_SCRIPTS[..], &["--python-engine", engine]].concat();
        let mut server = Server::start(&config.flags(&flags));
        let text = run(&mut server, "await mcp__gone__x()");
        // No tool of another server is suggested.
        let why = "NameError: name 'mcp__gone__x' is not defined. The server 'gone' is configured, but cannot be used: \
                   command not found";
        assert!(text.contains(why), "{engine}: {text}");
        let text = run(&mut server, "await mcp__other__x()");
        assert!(!text.contains("is configured"), "{engine}: {text}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn what_the_system_refuses_is_an_error() {
    let mut server = server("cpython", &[]);
    for (call, error) in [
        (
            "import os\nos.system('id')",
            "PermissionError: [Errno 1] os.system is not permitted in execute_program",
        ),
        ("import os\nos.sync()", "PermissionError"),
        ("import os\nos.umask(0)", "PermissionError"),
        ("import posix\nposix.system('id')", "PermissionError"),
        ("import signal\nsignal.pause()", "PermissionError"),
        ("import signal\nsignal.alarm(1)", "PermissionError"),
        ("import os\nos.popen('id').read()", "PermissionError"),
        ("import os\nos.fork()", "PermissionError"),
        ("import os\nos.kill(1, 9)", "PermissionError"),
        ("import os\nos.posix_spawn('/bin/id', ['id'], {})", "PermissionError"),
        ("import subprocess\nsubprocess.run(['id'])", "Error"),
        ("import socket\nsocket.socket()", "PermissionError"),
        ("import threading\nthreading.Thread(target=print).start()", "RuntimeError: can't start new thread"),
    ] {
        let text = run(&mut server, call);
        assert!(text.starts_with("[Script execution failed]"), "{call}: {text}");
        assert!(text.lines().last().unwrap().contains(error), "{call}: {text}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn equal_calls_of_scripts_make_one_call() {
    for engine in engines() {
        let more = ["--tool-cache-ttl", "10m", "--max-upstream-calls", "5000", "--response-profile", "debug"];
        let mut server = server(engine, &more);
        let code =
            "n = 0\nfor i in range(1000):\n    n += (await mcp__counter__look(a=1, b=2))['call']\nprint(n)";
        let data = result(&mut server, code)["structuredContent"].clone();
        assert_eq!(data["result"], "1000\n", "{engine}: {data}");
        let calls = data["upstream_calls"].as_array().unwrap();
        assert!(calls[0].get("cached").is_none() && calls[1]["cached"] == true, "{engine}: {data}");
        let text: Value =
            serde_json::from_str(&text_of(&result(&mut server, "print(await mcp__counter__counts())")))
                .unwrap();
        assert_eq!(text["result"], "{'look': 1, 'counts': 1}\n", "{engine}");
    }
}
