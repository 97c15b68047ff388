//! Event loops, tasks and exits, as scripts use them that are written for a process of their own.

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

/// Sends a script of a session.
fn step(server: &mut Server, session: &str, code: &str) -> String {
    let arguments = json!({ "code": code, "session_id": session });
    let answer = server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
    text_of(&answer["result"])
}

fn session_of(text: &str) -> &str {
    text.split("[session_id: ").nth(1).unwrap().trim_end().strip_suffix(']').unwrap()
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_script_may_run_a_loop_of_its_own() {
    let mut server = server(&[]);
    let start = "import asyncio\nasync def main():\n    return await mcp__counter__text(text='ok')\n";
    for rest in [
        "loop = asyncio.get_event_loop()\nprint(loop.run_until_complete(main()))",
        "loop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\ntry:\n    print(loop.run_until_complete(main()))\nfinally:\n    loop.close()",
        "print(asyncio.run(main()))",
        "print(asyncio.run(mcp__counter__text(text='ok')))",
        "print(asyncio.get_event_loop().run_until_complete(asyncio.gather(main(), main()))[1])",
        "if hasattr(asyncio, 'Runner'):\n    with asyncio.Runner() as runner:\n        print(runner.run(main()))\nelse:\n    print('ok')",
        "async def outer():\n    return asyncio.run(main())\nprint(asyncio.run(outer()))",
    ] {
        is(&mut server, &format!("{start}{rest}"), "ok\n");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_task_can_be_printed_and_one_that_is_left_is_reported() {
    let mut server = server(&[]);
    is(
        &mut server,
        "import asyncio\nt = asyncio.create_task(mcp__counter__text(text='1'))\nprint('mcp__counter__text' in repr(t), await t)",
        "True 1\n",
    );
    let left = |name: &str| {
        format!("RuntimeWarning: a task of {name}(…) was cancelled before it was done: await the task")
    };
    is(
        &mut server,
        "import asyncio\nasyncio.create_task(mcp__counter__hang())\nawait asyncio.sleep(0)\nprint('end')",
        &format!("end\n{}", left("mcp__counter__hang")),
    );
    // As `asyncio.run` ends them, with what they clean up.
    let start = "import asyncio\nasync def work():\n    try:\n        await mcp__counter__hang()\n    finally:\n        print('cleaned')\n";
    is(
        &mut server,
        &format!("{start}t = asyncio.create_task(work())\nawait asyncio.sleep(0)"),
        &format!("cleaned\n{}", left("work")),
    );
    is(
        &mut server,
        &format!(
            "{start}async def main():\n    t = asyncio.create_task(work())\n    await asyncio.sleep(0)\nasyncio.run(main())\nprint('end')"
        ),
        &format!("cleaned\nend\n{}", left("work")),
    );
    let text = run(&mut server, "r = mcp__counter__text(text='a')\nprint(r.upper())");
    assert!(text.contains("was not awaited, so this is no result yet"), "{text}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn exits_and_streams_are_those_of_an_interpreter() {
    let mut server = server(&[]);
    is(&mut server, "print(1)\nexit()\nprint(2)", "1\n");
    is(&mut server, "print(1)\nquit(0)", "1\n");
    let text = run(&mut server, "exit('no rows')");
    assert_eq!(text, "[Script execution failed]\nSystemExit: no rows");
    is(
        &mut server,
        "import sys\nsys.stdout.reconfigure(encoding='utf-8')\nsys.stdout.buffer.write('ä\\n'.encode())\nprint('b', file=sys.__stdout__)",
        "ä\nb\n",
    );
    is(
        &mut server,
        "import io, sys\nw = io.TextIOWrapper(sys.stdout.buffer)\nprint('one', file=w)\nw.flush()\n\
         v = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer))\nprint('two', file=v)",
        "one\ntwo\n",
    );
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_script_with_a_return_has_the_names_of_its_module() {
    let mut server = server(&["--sessions"]);
    is(
        &mut server,
        "from math import *\nn: int = 1\nlater: str\ndef add():\n    global n\n    n += 1\nadd()\n\
         for i in range(3):\n    if i == 1:\n        print(n, i, floor(pi), 'n' in globals())\n        return",
        "2 1 3 True\n",
    );
    let text = step(&mut server, "new", "x = 1\ndef double(): return 2 * x\nif x: return");
    let id = session_of(&text);
    let text = step(&mut server, id, "x += 1\nprint(x, double())");
    assert!(text.starts_with("[Script executed successfully]\n2 4\n"), "{text}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_script_finds_the_tasks_that_it_has_made() {
    let mut server = server(&["--python-timeout", "20s"]);
    let start = "import asyncio\nasync def work(n):\n    await asyncio.sleep(0.001)\n    return n\n";
    for rest in [
        "async def main():\n    for n in range(3): asyncio.create_task(work(n))\n    others = asyncio.all_tasks() - {asyncio.current_task()}\n    print(len(await asyncio.gather(*others)))\nasyncio.run(main())",
        "async def main():\n    made = [asyncio.create_task(work(n)) for n in range(3)]\n    await asyncio.sleep(0)\n    for task in asyncio.all_tasks():\n        if task is not asyncio.current_task(): task.cancel()\n    print(len(await asyncio.gather(*made, return_exceptions=True)))\nasyncio.run(main())",
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(work(1))\nfor n in range(3): loop.create_task(work(n))\npending = asyncio.all_tasks(loop)\nfor task in pending: task.cancel()\nloop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))\nprint(len(pending))",
        // In a script that is awaited, and in its own loop.
        "await work(0)\nloop = asyncio.get_event_loop()\nfor n in range(3): loop.create_task(work(n))\npending = asyncio.all_tasks(loop)\nloop.run_until_complete(asyncio.gather(*pending))\nprint(len(pending))",
        "await work(0)\nasync def main():\n    for n in range(3): asyncio.create_task(work(n))\n    others = asyncio.all_tasks() - {asyncio.current_task()}\n    print(len(await asyncio.gather(*others)))\nasyncio.get_event_loop().run_until_complete(main())",
    ] {
        is(&mut server, &format!("{start}{rest}"), "3\n");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_script_finds_itself_and_others_do_not() {
    let mut server = server(&["--python-timeout", "20s"]);
    let start = "import asyncio\nasync def work(n):\n    await asyncio.sleep(0.001)\n    return n\n\
        made = [asyncio.create_task(work(n)) for n in range(3)]\nawait asyncio.sleep(0)\n";
    for rest in [
        "tasks = asyncio.all_tasks()\ntasks.remove(asyncio.current_task())\nprint(len(await asyncio.gather(*tasks)))",
        "loop = asyncio.get_running_loop()\ntasks = asyncio.all_tasks(loop)\ntasks.remove(asyncio.current_task())\nprint(len(await asyncio.gather(*tasks)))",
        "assert asyncio.current_task() in asyncio.all_tasks()\nprint(len(await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))))",
        "for task in asyncio.all_tasks():\n    if task is not asyncio.current_task(): task.cancel()\nprint(len(await asyncio.gather(*made, return_exceptions=True)))",
        "async def end():\n    others = asyncio.all_tasks() - {asyncio.current_task()}\n    for task in others: task.cancel()\n    return len(others)\nprint(await asyncio.create_task(end()))",
        "try:\n    asyncio.get_event_loop().run_until_complete(asyncio.gather(*asyncio.all_tasks()))\nexcept RuntimeError as error:\n    assert 'cannot wait for itself' in str(error)\nprint(len(await asyncio.gather(*made)))",
    ] {
        let text = run(&mut server, &format!("{start}{rest}"));
        assert!(text.starts_with("[Script executed successfully]\n3\n"), "{rest}: {text}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_script_that_another_task_ends_cleans_up_and_does_not_go_on() {
    let mut server = server(&["--sessions", "--python-timeout", "20s"]);
    let start = "import asyncio, sys\nasync def end():\n    await asyncio.sleep(0.001)\n    END\n\
        async def late():\n    try:\n        await asyncio.sleep(9)\n    finally:\n        sys.exit(4)\n";
    let rest = "other = asyncio.create_task(late())\ntry:\n    await asyncio.gather(end(), asyncio.sleep(0.2))\n    print('went on')\n\
        finally:\n    print(await mcp__counter__text(text='released'))\nprint('woke', await mcp__counter__text(text='up'))";
    for (end, want) in [
        ("exit()", "[Script executed successfully]\nreleased\n"),
        (
            "sys.exit(3)",
            "[Script execution failed]\nSystemExit: 3\n\n[Output before the failure]\nreleased\n",
        ),
        ("raise KeyboardInterrupt", "[Script execution failed]\n"),
        ("asyncio.get_running_loop().stop()", "[Script execution failed]\n"),
    ] {
        let code = format!("{}{rest}", start.replace("END", end));
        let first = step(&mut server, "new", &code);
        assert!(first.starts_with(want) && first.contains("released\n"), "{end}: {first}");
        assert!(!first.contains("woke") && !first.contains("went on"), "{end}: {first}");
        let second = step(
            &mut server,
            session_of(&first),
            "print(len(asyncio.all_tasks(asyncio.get_event_loop())))\nawait asyncio.sleep(0.3)\nprint('second', other.done())",
        );
        assert!(second.starts_with("[Script executed successfully]\n0\nsecond True\n"), "{end}: {second}");
        assert!(!second.contains("woke") && !second.contains("released"), "{end}: {second}");
    }
    // A task that exits while the script ends does not leave the others.
    let code = "import asyncio\nasync def ends():\n    exit()\nasync def works():\n    await asyncio.sleep(0.01)\n    print('woke')\n\
        tasks = [asyncio.create_task(each()) for each in (works, ends)]";
    let first = step(&mut server, "new", &format!("{code}\nawait asyncio.sleep(0, print('first'))"));
    let second = step(&mut server, session_of(&first), "await asyncio.sleep(0.1)\nprint('second')");
    assert!(second.starts_with("[Script executed successfully]\nsecond\n"), "{first}{second}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn loops_run_within_the_tasks_of_loops() {
    let mut server = server(&["--python-timeout", "20s"]);
    let start = "import asyncio\ndef text(n): return mcp__counter__text(text=str(n))\nasync def job(n): return fetch(n)\n\
        async def main(): return await asyncio.gather(*[job(n) for n in range(4)])\n";
    for rest in [
        "def fetch(n): return asyncio.run(text(n))\nprint(await main())",
        "def fetch(n): return asyncio.get_event_loop().run_until_complete(text(n))\nprint(await main())",
        "def fetch(n): return asyncio.get_event_loop().run_until_complete(text(n))\nprint(asyncio.run(main()))",
        "def fetch(n):\n    loop = asyncio.new_event_loop()\n    try:\n        return loop.run_until_complete(text(n))\n    finally:\n        loop.close()\nprint(await main())",
    ] {
        is(&mut server, &format!("{start}{rest}"), "[0, 1, 2, 3]\n");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn loops_and_runners_live_as_long_as_in_python() {
    let mut server = server(&[]);
    let runner = "import asyncio, contextvars\nif not hasattr(asyncio, 'Runner'):\n    print('1 5 end')\n    return\n\
        var = contextvars.ContextVar('var')\nasync def first():\n    var.set(5)\n    return asyncio.create_task(asyncio.sleep(0.001, 1))\n\
        async def second(task): return await task, var.get()\nwith asyncio.Runner() as runner:\n    task = runner.run(first())\n    print(*runner.run(second(task)), 'end')";
    is(&mut server, runner, "1 5 end\n");
    is(
        &mut server,
        "import asyncio\nkept = []\nasync def rows():\n    try:\n        yield 1\n        yield 2\n    finally:\n        print('closed')\n\
         async def main():\n    kept.append(rows())\n    async for row in kept[0]:\n        break\nasyncio.run(main())\nprint('end')",
        "closed\nend\n",
    );
    is(
        &mut server,
        "import asyncio\nloop = asyncio.SelectorEventLoop()\nasync def main():\n    print(await mcp__counter__text(text='in'))\n    loop.stop()\n\
         loop.create_task(main())\nloop.run_forever()\nloop.close()\nprint(loop.is_closed())",
        "in\nTrue\n",
    );
    is(
        &mut server,
        "try:\n    import asyncio\n    asyncio.get_running_loop()\nexcept RuntimeError:\n    print(asyncio.run(mcp__counter__text(text='none ran')))",
        "none ran\n",
    );
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn calls_that_were_not_awaited_are_counted_one_by_one() {
    let mut server = server(&[]);
    let note = "RuntimeWarning: mcp__counter__text(…) was never awaited, so it was not called: write `await mcp__counter__text(…)`";
    is(
        &mut server,
        "for n in range(3):\n    mcp__counter__text(text='a')\nprint(await mcp__counter__text(text='last'))",
        &format!("last\n{note}"),
    );
    is(
        &mut server,
        "import asyncio, inspect\nf = mcp__counter__text\nc = f(text='a')\n\
         print(inspect.iscoroutinefunction(f), asyncio.iscoroutinefunction(f), inspect.iscoroutine(c), await c)",
        "True True True a\n",
    );
}
