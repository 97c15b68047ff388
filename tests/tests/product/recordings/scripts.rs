//! Scripts that are recorded: they run again without their servers, or what they do otherwise is reported.

use super::{lines, recorded_by, recordings, replay};
use ptc_tests::binary::{Finished, run_ptc};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;

/// Scripts that must be replayed without any difference.
const SCRIPTS: &[&str] = &[
    "print(1 + 1)",
    "print(await mcp__probe__echo(v={'n': 1, 'text': 'é\\n'}))",
    "import asyncio\nprint(await asyncio.gather(*[mcp__probe__gather(n=8, i=i) for i in range(8)]))",
    // The second call is answered first.
    "import asyncio\ncalls = [mcp__probe__gather(n=2, i=0), mcp__probe__echo(v='second'), mcp__probe__gather(n=2, i=1)]\n\
     for call in asyncio.as_completed(calls):\n    print(await call)",
    "for n in range(3):\n    print(await mcp__probe__echo(v=n), await mcp__probe__echo(v=1))",
    "try:\n    await mcp__probe__refuse()\nexcept ToolError as error:\n    print(error)",
    "await mcp__probe__refuse()",
    "print(await mcp__probe__echo(result={'content': [{'type': 'image', 'data': 'AAAA', 'mimeType': 'image/png'}]}))",
    "print(await read_resource('probe', 'memo://notes'), await list_resources('probe'))",
    "print(await get_prompt('probe', 'greet', {'who': 'you'}))",
    "try:\n    await read_resource('nowhere', 'memo://notes')\nexcept ToolError as error:\n    print(error)",
    "print(tools('echo'), help('mcp__probe__echo'))",
    "for n in range(60):\n    try:\n        await mcp__probe__echo(v=n)\n    except ToolError as error:\n        print(n, error)",
    "print(len(await mcp__probe__flood(bytes=3000)))",
    "print('before')\nraise ValueError('why')",
    "await mcp__probe__none()",
    "print('x' * 100000)",
    "1 +",
];

fn recorded(script: &str, more: &[&str]) -> (TempDir, PathBuf, Finished) {
    recorded_by(&["exec", "-"], script, more)
}

#[test]
fn a_replayed_script_is_the_recorded_one() {
    for script in SCRIPTS {
        let (_folder, recording, then) = recorded(script, &[]);
        let now = replay(&recording, &[]);
        assert_eq!(now.code, Some(0), "{script}\n{then:?}\n{now:?}");
        assert_eq!(now.stdout, then.stdout, "{script}");
        assert!(now.stderr.contains("same result and prints as recorded"), "{script}: {now:?}");
    }
}

#[test]
fn a_script_that_ran_out_of_time_waits_for_the_same_call() {
    let script = "print(await mcp__probe__echo(v=1))\nawait mcp__probe__hold()";
    let (_folder, recording, then) = recorded(script, &["--python-timeout", "2s"]);
    assert!(then.stdout.contains("TimeoutError"), "{then:?}");
    let now = replay(&recording, &[]);
    assert_eq!((now.code, now.stdout), (Some(0), then.stdout), "{}", now.stderr);
}

#[test]
fn an_edited_script_finds_recorded_answers_by_arguments() {
    let (_folder, recording, _) =
        recorded("for n in [1, 2, 3]:\n    print(await mcp__probe__echo(v=n))", &[]);
    let other = "print(await mcp__probe__echo(v=3) + await mcp__probe__echo(v=1))";
    let finished = replay(&recording, &["--program", other]);
    assert_eq!((finished.stdout.as_str(), finished.code), ("4\n", Some(0)), "{finished:?}");
    let said = &finished.stderr;
    assert!(
        said.contains("2 calls answered") && said.contains("recorded calls that were not made: 1"),
        "{said}"
    );
    assert!(said.contains("- probe/echo {\"v\":2}"), "{said}");
    let unknown = "try:\n    await mcp__probe__echo(v=9)\nexcept ToolError as error:\n    print(error)";
    let finished = replay(&recording, &["--program", unknown]);
    assert!(finished.stdout.contains("the recording has no call of probe/echo"), "{finished:?}");
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("+ probe/echo {\"v\":9}"), "{finished:?}");
}

#[test]
fn tests_and_servers_know_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let config = Upstreams::default().add("probe", probe_server(&[])).write();
    let runs = folder.path().to_str().unwrap();
    let mut server = Server::start(&config.flags(&[
        "--record",
        runs,
        "--tools",
        "lisp_eval,execute_program",
        "--python-output",
        "10",
    ]));
    let code = "print(await mcp__probe__echo(v='more than ten bytes'))";
    let answer =
        server.request("tools/call", json!({ "name": "execute_program", "arguments": { "code": code } }));
    assert!(answer.to_string().contains("truncated"), "{answer}");
    server.text("(tool/call! 'probe/echo {:v 1})");
    assert_eq!(server.end(), Some(0));
    let found = recordings(folder.path());
    let languages: Vec<String> =
        found.iter().map(|file| lines(file)[0]["run"]["language"].to_string()).collect();
    assert_eq!(languages.len(), 2);
    assert!(languages.contains(&"\"python\"".to_owned()), "{languages:?}");
    let finished = run_ptc(&["test", runs], "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("2 held, 0 differ, 0 cannot run"), "{finished:?}");
}
