//! Replies that a script cannot have: each is the exception of its own call, and the script goes on.

use ptc_tests::scripts::{ONLY_SCRIPTS, counter, run};
use ptc_tests::serve::Server;

fn server(more: &[&str]) -> Server {
    let flags =
        [&ONLY_SCRIPTS[..], &["--python-engine", "cpython", "--python-timeout", "30s"], more].concat();
    Server::start(&counter().write().flags(&flags))
}

fn is(server: &mut Server, code: &str, want: &str) {
    assert_eq!(run(server, code), format!("[Script executed successfully]\n{want}"), "{code}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_result_that_python_cannot_decode_fails_its_own_call() {
    let mut server = server(&[]);
    let start = "'mcp__counter__text' failed: Python cannot decode its result: ";
    for text in ["'[' * 2000 + ']' * 2000", "'1' * 5000", "'[' + '1' * 5000 + ']'"] {
        let code = format!(
            "try:\n    await mcp__counter__text(text={text})\nexcept ToolError as e:\n    print(str(e)[:{}])",
            start.len()
        );
        is(&mut server, &code, &format!("{start}\n"));
    }
    is(
        &mut server,
        "import asyncio\nf = mcp__counter__text\nr = await asyncio.gather(f(text='1'), f(text='1' * 5000), f(text='2'), return_exceptions=True)\n\
         print(r[0], type(r[1]).__name__, r[2], await f(text='3'))",
        "1 ToolError 2 3\n",
    );
    // Where the recursion limit is nearly reached.
    is(
        &mut server,
        "import asyncio\nasync def call():\n    return await mcp__counter__text(text='[' * 400 + ']' * 400)\n\
         def deep(n):\n    return deep(n - 1) if n else asyncio.run(call())\n\
         try:\n    deep(800)\nexcept ToolError as e:\n    print('caught')",
        "caught\n",
    );
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_result_that_does_not_fit_into_the_memory_is_a_memory_error_of_its_call() {
    let mut server = server(&["--python-memory", "40M", "--max-upstream-response-bytes", "20M"]);
    let why = "the result of 'mcp__counter__text' does not fit into the memory of the script";
    // With less memory the line itself does not fit, otherwise only its value.
    for held in [38, 30, 20] {
        let code = format!(
            "held = bytearray({held} << 20)\nimport asyncio\nt = mcp__counter__text\n\
             r = await asyncio.gather(t(text='1'), t(text='x', times=7000000), t(text='2'), return_exceptions=True)\n\
             print(r[0], repr(r[1]), r[2], await t(text='3'))"
        );
        is(&mut server, &code, &format!("1 MemoryError(\"{why}\") 2 3\n"));
    }
}
