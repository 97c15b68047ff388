//! Scripts get all content of a result, and read resources and prompts.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::scripts::{ONLY_SCRIPTS, engines, run};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;

fn server(engine: &str, flags: &[&str]) -> Server {
    let own = ["--python-engine", engine];
    Server::start(&Upstreams::probe().write().flags(&[&ONLY_SCRIPTS[..], &own, flags].concat()))
}

fn printed(server: &mut Server, code: &str) -> String {
    let text = run(server, code);
    text.strip_prefix("[Script executed successfully]\n")
        .unwrap_or_else(|| panic!("{code}: {text}"))
        .to_owned()
}

/// Blocks of every type, as a script writes them.
const BLOCKS: &str = "
image = {'type': 'image', 'data': 'AA==', 'mimeType': 'image/png'}
link = {'type': 'resource_link', 'uri': 'file:///x', 'name': 'x'}
text = {'type': 'text', 'text': '[1]'}
echo = mcp__probe__echo
";

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_value_carries_the_content_of_its_result() {
    let mut server = server("cpython", &[]);
    let mut is =
        |code: &str, want: &str| assert_eq!(printed(&mut server, &format!("{BLOCKS}{code}")), want, "{code}");
    is(
        "r = await echo(result={'content': [text, image, link]})\nprint(r, r.content == [text, image, link], type(r) == list, isinstance(r, list))",
        "[1] True True True\n",
    );
    is("r = await echo(result={'content': [image]})\nprint(r == [image], r.content == r)", "True True\n");
    is(
        "r = await echo(result={'content': [{'type': 'text', 'text': 'a'}, text]})\nprint(r, len(r.content))",
        "a 2\n",
    );
    is(
        "r = await echo(result={'content': [image], 'structuredContent': {'n': 1}})\nprint(r, r['n'], r.content == [image])",
        "{'n': 1} 1 True\n",
    );
    // What the value says completely is one text.
    is(
        "r = await echo(v='plain')\nprint(r.upper(), r.content)",
        "PLAIN [{'type': 'text', 'text': 'plain'}]\n",
    );
    is(
        "import copy, json\nr = await echo(v={'a': [1]})\nprint(json.dumps(r), r.content[0]['text'], type(copy.deepcopy(r)) is dict)",
        "{\"a\": [1]} {\"a\": [1]} True\n",
    );
    // None and booleans carry nothing, so a function takes the call.
    is(
        "yes = {'type': 'text', 'text': 'true'}\nr = await echo(result={'content': [yes, image]})\nb = await content_of(echo(result={'content': [yes, image]}))\nprint(r is True, b == [yes, image])",
        "True True\n",
    );
    is(
        "print(await content_of(echo(result={'content': []})), await content_of(await echo(v=1)))",
        "[] [{'type': 'text', 'text': '1'}]\n",
    );
    is(
        "try:\n    await echo(result={'isError': True, 'content': [{'type': 'text', 'text': 'no'}, image], 'structuredContent': {'code': 7}})\n\
         except ToolError as e:\n    print(e, len(e.content), e.structured_content)",
        "'mcp__probe__echo' failed: no 2 {'code': 7}\n",
    );
    is(
        "try:\n    await mcp__probe__refuse()\nexcept ToolError as e:\n    print(e, e.content, e.structured_content)",
        "'mcp__probe__refuse' failed: no () None\n",
    );
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn scripts_read_resources_and_prompts_as_calls() {
    for engine in engines() {
        let mut server = server(engine, &[]);
        let mut is =
            |code: &str, want: &str| assert_eq!(printed(&mut server, code), want, "{engine}: {code}");
        is(
            "print([r['uri'] for r in await list_resources('probe')], len(await list_resource_templates(server='probe')))",
            "['memo://notes', 'memo://dot'] 1\n",
        );
        is("print(await read_resource('probe', 'memo://notes'))", "Buy milk.\n");
        is("print((await read_resource('probe', uri='memo://dot'))[0]['blob'])", "iVBORw0KGgo=\n");
        is("print([p['name'] for p in await list_prompts('probe')])", "['greet']\n");
        is(
            "p = await get_prompt('probe', 'greet', {'who': 'Ada'})\nprint(p['messages'][0]['content']['text'])",
            "Greet Ada.\n",
        );
        for (call, why) in [
            (
                "read_resource('probe')",
                "'read_resource' failed: uri must be a str of 1 to 8192 bytes; Signature: read_resource(server, uri)",
            ),
            ("list_prompts('prob')", "'list_prompts' failed: no upstream 'prob' configured. "),
            ("read_resource('probe', 'memo://none')", "'read_resource' failed: "),
        ] {
            let code = format!("try:\n    await {call}\nexcept ToolError as e:\n    print(e)");
            let got = printed(&mut server, &code);
            assert!(got.starts_with(why), "{engine}: {got}");
        }
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn requests_are_counted_as_calls() {
    for engine in engines() {
        let mut server = server(engine, &["--max-upstream-calls", "2"]);
        let code = "await mcp__probe__echo(v=1)\nawait list_resources('probe')\ntry:\n    await list_prompts('probe')\nexcept ToolError as e:\n    print(e)";
        let want =
            "'list_prompts' failed: cap_exhausted: a script may make 2 tool calls (--max-upstream-calls)\n";
        assert_eq!(printed(&mut server, code), want, "{engine}");
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_failed_look_up_can_be_caught() {
    for engine in engines() {
        let mut server = server(engine, &["--max-catalog-ops", "1"]);
        let caught =
            |look_up: &str, kind: &str| format!("try:\n    {look_up}\nexcept {kind}:\n    print('caught')");
        for (look_up, kind) in [
            ("await mcp__probe__nothing()", "NameError"),
            ("await mcp__nowhere__echo()", "NameError"),
            ("tools()\n    tools()", "ToolError"),
            ("help('mcp__probe__echo')\n    help('mcp__probe__echo')", "ToolError"),
        ] {
            let got = printed(&mut server, &caught(look_up, kind));
            assert!(got.ends_with("caught\n"), "{engine} {look_up}: {got}");
        }
    }
}
