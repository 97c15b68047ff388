//! Scripts read results that are too large to be carried, with either engine.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::processes::{eventually, kept_results};
use ptc_tests::scripts::{ONLY_SCRIPTS, engines, run};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::json;

/// Rows of a result of 20 MB.
const ROWS: u64 = 450_000;

/// Spills a result that is just too large.
const CALL: &str = "r = await mcp__probe__flood(rows=60000, on_large='spill')\n";

fn server(engine: &str, upstreams: Upstreams, flags: &[&str]) -> Server {
    let own = ["--python-engine", engine];
    Server::start(&upstreams.write().flags(&[&ONLY_SCRIPTS[..], &own, flags].concat()))
}

fn printed(server: &mut Server, code: &str) -> String {
    let text = run(server, code);
    text.strip_prefix("[Script executed successfully]\n")
        .unwrap_or_else(|| panic!("{code}: {text}"))
        .to_owned()
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn rows_that_are_too_large_are_looked_at_in_parts_and_added_up_by_slices() {
    for engine in engines() {
        let mut server = server(engine, Upstreams::probe(), &[]);
        let looks = format!(
            "import asyncio\nimport json\nr = await mcp__probe__flood(rows={ROWS}, on_large='spill')\n{}",
            r#"
print(r.spill, r.value_kind, r.bytes > 20_000_000, r.lines, repr(r.preview[:9]))
print(repr(r)[:27])
size = await r.stat()
print(size['bytes'] == r.bytes, size['lines'])
for part in [await r.head(1), await r.tail(1), await r.slice(3, 3)]:
    print(part['lines'], part['from_line'], part['truncated'])
print((await r.slice(to_line=2, from_line=1))['lines'][0])
print((await r.grep('"n":44999\\d'))['matches'], (await r.grep('"N":777,', context=1))['text'])
print(repr((await r.read(2))['text']), (await r.read(max_bytes=10))['truncated'])
print(await r.json_path('$[449999].n'), await r.json_path('$[0:3].n'), await r.json_path('$[450000]'))
async def part(first):
    lines = (await r.slice(first, min(first + 19999, r.lines - 1)))['lines']
    return sum([json.loads(line.rstrip(','))['n'] for line in lines])
print(sum(await asyncio.gather(*[part(first) for first in range(2, r.lines, 20000)])))
"#
        );
        let pad = "x".repeat(24);
        let all: u64 = (0..ROWS).sum();
        let row = |n: u64| format!("{{\"n\":{n},\"pad\":\"{pad}\"}},");
        let want = format!(
            "r1 spilled True 450002 '[\\n {{\"n\":0'\nSpilled(spill='r1', bytes=2\n\
             True 450002\n['['] 1 False\n[']'] 450002 False\n[' {}'] 3 False\n[\n\
             10 778- {}\n779: {}\n780- {}\n\n'[\\n' True\n449999 [0, 1, 2] None\n{all}\n",
            row(1),
            row(776),
            row(777),
            row(778)
        );
        assert_eq!(printed(&mut server, &looks), want, "{engine}");
        eventually("the result is gone", || kept_results(server.id()) == 0);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn it_is_kept_only_where_somebody_says_so() {
    let call = "try:\n    r = await mcp__probe__flood(rows=60000)\n    print(r.spill)\nexcept ToolError as e:\n    print(e)";
    for engine in engines() {
        let mut plain = server(engine, Upstreams::probe(), &[]);
        let refused = printed(&mut plain, call);
        assert!(
            refused.contains("exceeds max_upstream_response_bytes") && refused.contains("on_large=\"spill\""),
            "{refused}"
        );
        // A small result is not spilled, and `on_large=None` means the default.
        let small = "print(len(await mcp__probe__flood(rows=3, on_large='spill')), await mcp__probe__echo(v=1, on_large=None))";
        assert_eq!(printed(&mut plain, small), "3 1\n");
        let wrong = run(&mut plain, "await mcp__probe__flood(rows=3, on_large='keep')");
        assert!(wrong.contains("mcp__probe__flood() takes on_large=\"spill\" or nothing, not"), "{wrong}");
        let mut entry = probe_server(&[]);
        entry["on_large"] = "spill".into();
        let mut configured = server(engine, Upstreams::default().add("probe", entry), &[]);
        assert_eq!(printed(&mut configured, call), "r1\n");
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_hostile_look_is_an_error_of_the_script() {
    for engine in engines() {
        let mut server = server(engine, Upstreams::probe(), &[]);
        assert_eq!(printed(&mut server, &format!("{CALL}print(r.spill)")), "r1\n");
        let mut looks = vec![
            ("r.head(-1)", "lines is a whole number from 0, got -1"),
            ("r.head(1.5)", "lines is a whole number from 0, got 1.5"),
            ("r.head(True)", "lines is a whole number from 0, got true"),
            ("r.slice(-5, -1)", "from_line is a whole number from 0, got -5"),
            ("r.slice(1, 2, 3)", "it takes 2 arguments (from_line, to_line), got 3"),
            ("r.head(count=1)", "it has no parameter count; it takes (lines)"),
            ("r.grep()", "pattern is a text of at most 4096 bytes, got null"),
            ("r.grep('(')", "the pattern is wrong"),
            ("r.grep('x' * 5000)", "pattern is a text of at most 4096 bytes, got \"xxx"),
            ("r.grep('((x{1,300}){1,300}){1,300}')", "the pattern is wrong"),
            ("r.json_path('rows')", "it is written like $.items[0].name"),
            ("r.json_path('$[*]')", "it finds more than 2097152 bytes: ask for less"),
        ];
        if engine == "cpython" {
            looks.push((
                "type(r)({'spill': 'r2', 'bytes': 1, 'lines': 1, 'preview': ''}).stat()",
                "there is no kept result r2",
            ));
            looks.push((
                "type(r)({'spill': '../r1', 'bytes': 1, 'lines': 1, 'preview': ''}).read()",
                "there is no kept result ../r1",
            ));
            looks.push((
                "Script(r).ask('r1', 'path', [[], {}])",
                "there is no such method; there are stat, head",
            ));
        }
        let forge = "class Script:\n    def __init__(self, r):\n        self.r = r\n    def ask(self, kept, method, arguments):\n        \
            return type(self.r).head.__globals__['Script'].channel.ask({'kept': kept, 'method': method, 'arguments': arguments})\n";
        let mut code = format!("{}{CALL}", if engine == "cpython" { forge } else { "" });
        for (look, _) in &looks {
            code += &format!(
                "try:\n    print(await {look})\nexcept ToolError as e:\n    print('told:', e)\nprint('----')\n"
            );
        }
        let text = printed(&mut server, &code);
        for ((look, said), text) in looks.iter().zip(text.split("----\n")) {
            assert!(text.starts_with("told:") && text.contains(said), "{engine}: {look}: {text}");
        }
        // Offsets beyond the result, and patterns that make backtracking engines slow.
        let fine = "print((await r.slice(10, 5))['lines'], (await r.slice(10**18, 10**19))['lines'], (await r.head(0))['lines'])\n\
            print((await r.grep('(x+x+)+y'))['matches'], (await r.grep('^(([a-z])+.)+[A-Z]([a-z])+$'))['matches'])\n\
            print(len((await r.slice(0, 10**15))['lines']) > 10000, (await r.tail(10**15))['truncated'])";
        assert_eq!(printed(&mut server, &format!("{CALL}{fine}")), "[] [] []\n0 0\nTrue True\n", "{engine}");
        // A handle that is used as a value or not awaited says so.
        for (wrong, said) in [
            ("r[0]", "TypeError"),
            ("len(r)", "TypeError"),
            ("r.nothing", "AttributeError"),
            ("list(r)", "TypeError"),
        ] {
            let text = run(&mut server, &format!("{CALL}{wrong}"));
            assert!(
                text.starts_with("[Script execution failed]\n") && text.contains(said),
                "{engine}: {wrong}: {text}"
            );
        }
        let text = printed(&mut server, &format!("{CALL}r.head(1)\nprint(1)"));
        assert!(text.contains("r1.head(…) was never awaited"), "{engine}: {text}");
        let text = run(&mut server, &format!("{CALL}await mcp__probe__echo(v=r)"));
        assert!(text.contains("cannot be an argument of a tool"), "{engine}: {text}");
        eventually("every result is gone", || kept_results(server.id()) == 0);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn what_looks_read_is_paid_for() {
    let most = "for _ in range(100):\n    await r.grep('nothing')\nprint('BROKEN')";
    for engine in engines() {
        let mut paid = server(engine, Upstreams::probe(), &["--fuel", "100000"]);
        let text = run(&mut paid, &format!("{CALL}{most}"));
        assert!(text.contains("looks of this script have used up its fuel of 100000"), "{engine}: {text}");
        // Reads of a script that has ended are cancelled.
        let mut slow = server(engine, Upstreams::probe(), &["--python-timeout", "4s"]);
        let many = "import asyncio\nawait asyncio.gather(*[r.grep('n.*y.*z') for _ in range(1000)])\nprint('BROKEN')";
        let text = run(&mut slow, &format!("{CALL}{many}"));
        assert!(text.starts_with("[Script execution failed]\n"), "{engine}: {text}");
        assert_eq!(printed(&mut slow, "print(2)"), "2\n", "{engine}");
        eventually("the result is gone", || kept_results(slow.id()) == 0);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn it_goes_with_its_session() {
    for engine in engines() {
        let mut server = server(engine, Upstreams::probe(), &["--sessions"]);
        let mut run = |session: &str, code: &str, end: bool| {
            let arguments = json!({ "code": code, "session_id": session, "end_session": end });
            let answer =
                server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
            text_of(&answer["result"])
        };
        let begun = run("new", CALL, false);
        let id = begun.rsplit_once("[session_id: ").unwrap().1.trim_end_matches(']').to_owned();
        let other = run("new", &format!("{CALL}print(r.spill)"), false);
        let other = other.rsplit_once("[session_id: ").unwrap().1.trim_end_matches(']').to_owned();
        let stat = "print(r.spill, (await r.stat())['lines'])";
        assert!(run(&id, stat, false).contains("\nr1 60002\n"), "{engine}");
        // Handle names are not reused, so that no handle comes to mean another result.
        let next = "s = await mcp__probe__flood(rows=70000, on_large='spill')\nprint(s.spill, (await r.stat())['lines'], (await s.stat())['lines'])";
        assert!(run(&id, next, false).contains("\nr2 60002 70002\n"), "{engine}");
        // Another session has its own.
        assert!(run(&other, stat, true).contains("\nr1 60002\n"), "{engine}");
        assert_eq!(kept_results(server.id()), 2, "{engine}");
        let arguments = json!({ "code": stat, "session_id": id, "end_session": true });
        server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
        eventually("the results are gone", || kept_results(server.id()) == 0);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_small_limit_holds_over_standard_input_too() {
    let call = |bytes: usize| {
        format!("r = await mcp__probe__echo(v='x' * {bytes}, on_large='spill')\nprint(type(r).__name__)")
    };
    for engine in engines() {
        let mut server = server(engine, Upstreams::probe(), &["--max-upstream-response-bytes", "2000"]);
        assert_eq!(printed(&mut server, &call(100)), "str\n", "{engine}");
        assert_eq!(printed(&mut server, &call(5000)), "Spilled\n", "{engine}");
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_large_result_of_several_blocks_is_stored_with_all_of_them() {
    for engine in engines() {
        let mut server = server(engine, Upstreams::probe(), &[]);
        let start = "text = {'type': 'text', 'text': 'caption'}\nlong = {'type': 'text', 'text': 'y' * 3000000}\n\
                     image = {'type': 'image', 'data': 'aGkh' * 700000, 'mimeType': 'image/png'}\nasync def call(*blocks):\n    \
                     return await mcp__probe__echo(result={'content': blocks}, on_large='spill')\n";
        for (code, want) in [
            (
                "r = await call(text, image)\nprint(await r.json_path('$[*].type'), await r.json_path('$[0].text'), r.bytes > 2800000)",
                "['text', 'image'] caption True\n",
            ),
            ("r = await call(image)\nprint(await r.json_path('$[*].mimeType'))", "['image/png']\n"),
            (
                "r = await call(text, long)\nprint(r.bytes > 3000000, await r.json_path('$[0].text'))",
                "True caption\n",
            ),
            // One text is itself.
            ("r = await call(long)\nprint(r.bytes, r.preview[:3])", "3000000 yyy\n"),
        ] {
            assert_eq!(printed(&mut server, &format!("{start}{code}")), want, "{engine}: {code}");
        }
    }
}
