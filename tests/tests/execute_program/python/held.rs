//! What a script can do to other scripts, to the warm process from which all scripts fork, and with inherited
//! descriptors.

use ptc_tests::binary::ptc;
use ptc_tests::processes::{descendants, eventually};
use ptc_tests::scripts::{ONLY_SCRIPTS, answers, begin, run};
use ptc_tests::serve::{Server, text_of};
use serde_json::json;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// System calls that end or block their caller regardless of arguments: on x86_64 rt_sigreturn, pause, exit,
/// exit_group; on aarch64 exit, exit_group, rt_sigreturn.
const ENDING: [u32; 7] = [15, 34, 60, 231, 93, 94, 139];

/// The highest system call number that is tried.
const MOST_CALLS: u32 = 470;

/// Each call with the numbers of a process and of a signal where calls take them.
const CALLS: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
for process in (CANARY, 1, os.getppid()):
    for signal in (2, 9, 19):
        libc.syscall(NUMBER, process, signal, 0, 0, 0, 0)
        libc.syscall(NUMBER, process, process, signal, 0, 0, 0)
        libc.syscall(NUMBER, 0, process, signal, 0, 0, 0)
";

/// Each command of `fcntl` on each descriptor; those that succeed affect only the script itself.
const COMMANDS: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
mine = {0, 1, 2, 3, 4, 1030}
for command in [*range(64), *range(1024, 1048)]:
    if command in mine: continue
    for descriptor in range(3, 12):
        for argument in (CANARY, 1, 9, ctypes.create_string_buffer(64)):
            if libc.fcntl(descriptor, command, argument) != -1 or ctypes.get_errno() != 1: print('BROKEN', command)
";

/// Signals through descriptors: the process, the signal, and an event that sends it.
const SIGNALS: &str = "
import fcntl, os
for descriptor in range(3, 12):
    for process in (CANARY, 1):
        for signal in (2, 9, 19):
            for step in (
                lambda: fcntl.fcntl(descriptor, 8, process),
                lambda: fcntl.fcntl(descriptor, 10, signal),
                lambda: fcntl.fcntl(descriptor, 4, 0o20000 | 0o4000),
            ):
                try: step()
                except PermissionError: continue
                except OSError: continue
                print('BROKEN')
            try: os.write(descriptor, b'\\n')
            except OSError: pass
";

/// Files that others use: leases, notifications, locks.
const FILES: &str = "
import fcntl, os, struct
files = [os.open(os.__file__, os.O_RDONLY), os.open(os.path.dirname(os.__file__), os.O_RDONLY)]
for file in files:
    for step in (
        lambda: fcntl.fcntl(file, 1024, 1),
        lambda: fcntl.fcntl(file, 1024, 0),
        lambda: fcntl.fcntl(file, 1026, 1),
        lambda: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB),
        lambda: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB),
        lambda: fcntl.fcntl(file, 37, struct.pack('hhqqi4x', 0, 0, 0, 0, 0)),
    ):
        try: step()
        except OSError: continue
        print('BROKEN')
";

/// Memory that is written and then executed.
const MEMORY: &str = "
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
failed = ctypes.c_void_p(-1).value
for protection in (4, 5, 6, 7):
    if libc.mmap(None, 4096, protection, 0x22, -1, 0) != failed: print('BROKEN', protection)
place = libc.mmap(None, 4096, 3, 0x22, -1, 0)
if place == failed: print('BROKEN', 'no memory')
for protection in (4, 5, 7):
    if libc.mprotect(place, 4096, protection) == 0: print('BROKEN', protection)
";

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn no_call_of_a_script_reaches_another_one_or_the_warm_process() {
    let flags =
        ["--sessions", "--python-timeout", "20s", "--python-memory", "32M", "--max-total-memory", "100G"];
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &flags].concat());
    let mut canary = |session: &str, code: &str| {
        let arguments = json!({ "code": code, "session_id": session });
        let answer =
            server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
        text_of(&answer["result"])
    };
    let text = canary("new", "import os\nlives = 'canary'\nprint(os.getpid())");
    let lines: Vec<&str> = text.lines().collect();
    let session = lines[2].strip_prefix("[session_id: ").unwrap().strip_suffix(']').unwrap().to_owned();
    let process: u32 = lines[1].parse().unwrap();
    // The two halves of the warm process, and the spare one.
    let before = descendants(server.id());
    assert_eq!(before.len(), 3);
    let mut scripts: Vec<String> = (0..=MOST_CALLS)
        .filter(|number| !ENDING.contains(number))
        .map(|number| CALLS.replace("NUMBER", &number.to_string()))
        .collect();
    scripts.extend([COMMANDS, SIGNALS, FILES, MEMORY].map(str::to_owned));
    let tried = scripts.len();
    for some in scripts.chunks(16) {
        let began: Vec<u64> = some
            .iter()
            .map(|code| begin(&mut server, &code.replace("CANARY", &process.to_string())))
            .collect();
        for (id, text) in answers(&mut server, began.len()) {
            let script = &some[began.iter().position(|began| *began == id).unwrap()];
            assert!(!text.contains("BROKEN"), "{script}: {text}");
            assert!(!text.contains("engine_unavailable") && !text.contains("was lost"), "{script}: {text}");
        }
    }
    // These have run to their end and not been killed earlier.
    for script in [COMMANDS, FILES, MEMORY] {
        let text = run(&mut server, &script.replace("CANARY", &process.to_string()));
        assert_eq!(text, "[Script executed successfully]\n(no output)", "{script}");
    }
    eventually("every script has ended", || descendants(server.id()).len() == 3);
    assert_eq!(descendants(server.id()), before, "the same processes");
    let arguments = json!({ "code": "print(lives)", "session_id": session });
    let answer = server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
    assert_eq!(
        text_of(&answer["result"]),
        format!("[Script executed successfully]\ncanary\n[session_id: {session}]")
    );
    println!("{tried} scripts, 0 reached another process");
}

/// Descriptors that the parent of `ptc` has left open do not reach scripts.
#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn descriptors_that_were_inherited_end_with_this_process() {
    let file = tempfile::tempfile().unwrap();
    let inode = file.metadata().unwrap().ino();
    // SAFETY: the number is open; the call only makes a copy and sets its flags.
    let copies: Vec<i32> = [20, 29]
        .iter()
        .map(|least| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, *least) })
        .collect();
    assert!(copies.iter().all(|copy| *copy >= 20));
    let look = "import os\nfor n in range(64):\n    try: print(os.fstat(n).st_ino == INODE, end=' ')\n    except OSError: pass\n";
    for engine in [&[][..], &["--python-unsandboxed"][..]] {
        let command = ptc(&[&["serve"][..], &ONLY_SCRIPTS, engine].concat());
        let mut server = Server::from_command(command);
        let text = run(&mut server, &look.replace("INODE", &inode.to_string()));
        assert!(text.contains("False") && !text.contains("True"), "{text}");
    }
    // SAFETY: they were opened above, and are closed once.
    copies.iter().for_each(|copy| unsafe { assert_eq!(libc::close(*copy), 0) });
}
