//! A script as the module `__main__`, and what it writes to its streams and to its tools.

use ptc_tests::scripts::{ONLY_SCRIPTS, counter, run};
use ptc_tests::serve::{Server, text_of};
use serde_json::json;

fn server(more: &[&str]) -> Server {
    let flags = [&ONLY_SCRIPTS[..], &["--python-engine", "cpython"], more].concat();
    Server::start(&counter().write().flags(&flags))
}

fn is(server: &mut Server, code: &str, want: &str) {
    assert_eq!(run(server, code), format!("[Script executed successfully]\n{want}"), "{code}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn others_find_a_script_by_the_name_of_its_module() {
    let mut server = server(&["--sessions"]);
    for (code, want) in [
        (
            "from __future__ import annotations\nfrom dataclasses import dataclass, fields\nfrom typing import ClassVar, get_type_hints\n\
             @dataclass\nclass Node:\n    value: int\n    next: Node | None = None\n    count: ClassVar[int] = 1\n\
             print([field.name for field in fields(Node)], get_type_hints(Node)['value'])",
            "['value', 'next'] <class 'int'>\n",
        ),
        (
            "import unittest\nclass Sum(unittest.TestCase):\n    def test_sum(self): self.assertEqual(sum([1, 2]), 3)\n\
             print(unittest.main(argv=['x'], exit=False).result.testsRun)",
            "1\n",
        ),
        ("\"\"\"\n>>> 1 + 1\n2\n\"\"\"\nimport doctest\nprint(doctest.testmod().attempted)", "1\n"),
        ("import pickle\nclass P: pass\nprint(type(pickle.loads(pickle.dumps(P()))) is P)", "True\n"),
        ("import __main__, sys\nn = 5\nprint(__main__.n, sys.modules[__name__].n)", "5 5\n"),
        (
            "x = 1\nprint('x' in locals(), 'x' in vars(), 'x' in dir(), 'x' in dir(x))\nif x: return",
            "True True True False\n",
        ),
        (
            "from __future__ import annotations\nif not await mcp__counter__text(text=''):\n    print('empty')\n    return\nprint('full')",
            "empty\n",
        ),
    ] {
        is(&mut server, code, want);
    }
    let mut step = |session: &str, code: &str| {
        let arguments = json!({ "code": code, "session_id": session });
        let answer =
            server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
        text_of(&answer["result"])
    };
    let text = step("new", "class Row: pass\nx = 1");
    let id = text.split("[session_id: ").nth(1).unwrap().trim_end().strip_suffix(']').unwrap();
    let text = step(
        id,
        "import pickle, sys\nx += 1\nprint(sys.modules['__main__'].x, type(pickle.loads(pickle.dumps(Row()))).__name__)",
    );
    assert!(text.starts_with("[Script executed successfully]\n2 Row\n"), "{text}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn streams_can_be_wrapped_and_take_characters_in_parts() {
    let mut server = server(&[]);
    for (code, want) in [
        (
            "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('ä')",
            "ä\n",
        ),
        (
            "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\nprint('ä')",
            "ä\n",
        ),
        (
            "import sys\nfor each in 'ä\\n'.encode(): sys.stdout.buffer.write(bytes([each]))\nsys.stdout.buffer.write('ö'.encode()[:1])",
            "ä\n\u{fffd}",
        ),
        (
            "import io, sys\nprint(isinstance(sys.stdout, io.TextIOBase), sys.stdout.closed, sys.stdout.line_buffering)",
            "True False True\n",
        ),
        ("import codecs, sys\nsys.stdout = codecs.getwriter('utf-8')(sys.stdout.buffer)\nprint('ä')", "ä\n"),
    ] {
        is(&mut server, code, want);
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn what_cannot_be_sent_is_an_exception_of_the_script() {
    let mut server = server(&[]);
    let text = run(&mut server, "raise ValueError('half \\ud800 of it')");
    assert!(text.ends_with("ValueError: half \u{fffd} of it"), "{text}");
    is(&mut server, "print(type(tools('\\ud800')).__name__)", "list\n");
    for argument in ["'a' * 17_000_000", "'\\ud800'"] {
        is(
            &mut server,
            &format!(
                "try:\n    await mcp__counter__text(text={argument})\nexcept ValueError:\n    print(await mcp__counter__text(text='next'))"
            ),
            "next\n",
        );
    }
    is(&mut server, "print(await mcp__counter__text(text='\\ud83d\\ude00'))", "\u{1f600}\n");
    is(
        &mut server,
        "import functools, json\njson.dumps = functools.partial(json.dumps, indent=2)\njson.loads = None\nprint(await mcp__counter__text(text='ok'))",
        "ok\n",
    );
}
