//! What script processes may hold: page tables count, and so does what sessions retain.

use ptc_tests::processes::{descendants, eventually};
use ptc_tests::scripts::{ONLY_SCRIPTS, run};
use ptc_tests::serve::Server;
use serde_json::json;

/// Maps single pages so far apart that each needs tables of its own: 8 KiB for 4 KiB.
const FAR_APART: &str = "
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
address = 1 << 40
while address < 0x7e0000000000:
    place = libc.mmap(address, 4096, 3, 0x100022, -1, 0)
    if place != ctypes.c_void_p(-1).value: ctypes.memset(place, 1, 1)
    address += 1 << 30
import time
time.sleep(600)
";

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn page_tables_count_as_memory_of_a_script() {
    let mut server =
        Server::start(&[&ONLY_SCRIPTS[..], &["--python-memory", "64M", "--python-timeout", "60s"]].concat());
    let text = run(&mut server, FAR_APART);
    assert!(text.contains("MemoryError: the process of the script was killed"), "{text}");
    assert_eq!(
        run(&mut server, "print(len(bytearray(32 << 20)))"),
        "[Script executed successfully]\n33554432\n"
    );
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn retained_processes_share_the_total() {
    const SESSIONS: usize = 8;
    let flags =
        ["--sessions", "--python-engine", "cpython", "--python-memory", "32M", "--max-total-memory", "64M"];
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &flags].concat());
    for _ in 0..SESSIONS {
        let arguments = json!({ "code": "held = b'x' * (16 << 20)", "session_id": "new" });
        server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
    }
    let process = server.id();
    // The two of the warm process, and the sessions that fit into 64 MiB with 16 MiB each.
    eventually("the total is kept", || descendants(process).len() <= 2 + 4);
    assert!(descendants(process).len() > 2, "some sessions are left");
    // A running script is larger than each of them, and is not ended for them.
    let text = run(&mut server, "import time\nheld = b'x' * (24 << 20)\ntime.sleep(0.5)\nprint(len(held))");
    assert_eq!(text, "[Script executed successfully]\n25165824\n");
}
