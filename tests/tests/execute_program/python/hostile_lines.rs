//! Lines that a hostile script writes into the channel of its tool calls: what they cost this process, and that
//! large calls of a proper script still work.

use ptc_tests::processes::peak_resident;
use ptc_tests::scripts::{ONLY_SCRIPTS, begin, counter, run};
use ptc_tests::serve::{Server, text_of};

/// Defines `W`, which writes bytes into the channel.
const CHANNEL: &str = "
import gc, os, time
channel = [o for o in gc.get_objects() if type(o).__name__ == 'Channel' and hasattr(o, 'descriptor')][0]
def W(data):
    while data: data = data[os.write(channel.descriptor, data):]
";

/// Replies stay unread, then calls of 15 MB follow.
const UNREAD: &str = "
for i in range(5): W(b'{\"call\":%d,\"kept\":\"r1\",\"method\":\"' % i + b'm' * 1500000 + b'\",\"arguments\":[[],{}]}\\n')
for i in range(3): W(b'{\"call\":%d,\"tool\":\"mcp__counter__text\",\"arguments\":{\"text\":\"' % i + b'x' * 1900000 + b'\"}}\\n')
call = b'{\"call\":9,\"tool\":\"mcp__counter__hang\",\"arguments\":{\"text\":\"' + b'x' * 15000000 + b'\"}}\\n'
while True: W(call)
";

/// Arguments whose tree is many times as large as their text, for a tool that never answers.
const DENSE: &str = "
call = b'{\"call\":%d,\"tool\":\"mcp__counter__TOOL\",\"arguments\":{\"v\":[' + b'[],' * 5000000 + b'0]},\"keep\":false}\\n'
for i in range(30): W(call % i)
time.sleep(60)
";

/// More than the process has before the first hostile line.
const MOST_MORE: u64 = 160 << 20;

fn server(more: &[&str]) -> Server {
    let config = counter().write();
    let mut server = Server::start(&config.flags(&[&ONLY_SCRIPTS[..], more].concat()));
    run(&mut server, "print(await mcp__counter__counts())");
    server
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn hostile_lines_take_bounded_memory() {
    let dense = |tool: &str| DENSE.replace("TOOL", tool);
    for code in [UNREAD.to_owned(), dense("hang"), dense("strict")] {
        let mut server = server(&["--python-timeout", "8s"]);
        let before = peak_resident(server.id());
        let scripts = 3;
        (0..scripts).for_each(|_| {
            begin(&mut server, &format!("{CHANNEL}{code}"));
        });
        for _ in 0..scripts {
            let text = text_of(&server.receive()["result"]);
            assert!(text.starts_with("[Script execution failed]"), "{text}");
        }
        let more = peak_resident(server.id()) - before;
        println!("{} MB more", more >> 20);
        assert!(more < MOST_MORE, "{more} bytes more: {code}");
        assert_eq!(run(&mut server, "print(1)"), "[Script executed successfully]\n1\n");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn forged_notes_and_errors_are_bounded() {
    let mut server = server(&[]);
    for end in [
        "W(b'{\"output\":\"x\",\"cut\":false,\"notes\":[\"' + b'N' * 15000000 + b'\"]}\\n')",
        "W(b'{\"output\":\"x\",\"cut\":false,\"notes\":[' + b'\"\",' * 5000000 + b'\"\"]}\\n')",
        "W(b'{\"error\":\"' + b'E' * 15000000 + b'\",\"cut\":false}\\n')\nos._exit(1)",
    ] {
        let text = run(&mut server, &format!("{CHANNEL}{end}"));
        assert!(text.len() < 300_000, "{} bytes", text.len());
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn words_of_a_search_are_bounded() {
    let mut server = server(&[]);
    // `help()` of a name that is no tool is answered in the process of the script.
    for call in ["tools('e' * 1000000)", "channel.look({'help': 'e' * 1000000})"] {
        let text = run(&mut server, &format!("{CHANNEL}{call}"));
        assert!(
            text.ends_with("take at most 1000 bytes of text, got 1000000"),
            "{call}: {} bytes",
            text.len()
        );
    }
}

/// The server reads no more calls until these are answered, and the script reads replies while it writes calls.
#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn many_large_calls_at_once_are_all_answered() {
    let mut server = server(&["--max-upstream-calls", "500", "--memory", "100M"]);
    let code = "import asyncio\nsizes = [300000 + n for n in range(100)]\n\
                texts = await asyncio.gather(*[mcp__counter__text(text='x' * size) for size in sizes])\n\
                print([len(text) for text in texts] == sizes)\n\
                print(len((await mcp__counter__text(text='[' + '0,' * 900000 + '0]'))))";
    assert_eq!(run(&mut server, code), "[Script executed successfully]\nTrue\n900001\n");
}
