//! Starts the worker processes of the Python interpreter Monty, and pools idle ones for later scripts.

use crate::functions::Functions;
use ptc_base::sync::Locked;
use ptc_upstream::{forget_companion, spawn_companion};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Mutex;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// Most scripts of one worker. Its end frees what they leave in its memory.
const SCRIPTS: u32 = 500;

/// Settings of mimalloc: no memory is reserved in advance, so that the limit of the process counts what is
/// used.
const ALLOCATOR: [(&str, &str); 2] =
    [("MIMALLOC_ARENA_EAGER_COMMIT", "0"), ("MIMALLOC_ARENA_RESERVE", "1MiB")];

/// A worker process. Dropping it ends the process.
pub(super) struct Worker {
    process: Child,
    /// The channel to the process.
    pub(super) channel: UnixStream,
    /// Version of the functions that were sent last.
    functions: Option<u64>,
    scripts: u32,
}

impl Worker {
    /// Starts a worker.
    pub(super) fn start(program: &[OsString], memory_bytes: u64) -> io::Result<Worker> {
        let (name, arguments) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (ours, theirs) = StdStream::pair()?;
        let mut command = Command::new(name);
        command.args(arguments).arg(memory_bytes.to_string()).env_clear().envs(ALLOCATOR);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let process = spawn_companion(|| command.spawn(), Child::id)?;
        ours.set_nonblocking(true)?;
        Ok(Worker { process, channel: UnixStream::from_std(ours)?, functions: None, scripts: 0 })
    }

    /// The lines that must precede the next script.
    pub(super) fn news(&mut self, functions: &Functions) -> String {
        if self.functions == Some(functions.version()) {
            return String::new();
        }
        self.functions = Some(functions.version());
        format!("{}\n", functions.table())
    }

    /// Ends the worker. Returns the signal that it had died of, if any.
    pub(super) async fn end(mut self) -> Option<i32> {
        // A worker that has closed its socket is about to exit, and its status says why.
        let grace = std::time::Duration::from_millis(200);
        let ended = match tokio::time::timeout(grace, self.process.wait()).await {
            Ok(ended) => ended.ok(),
            Err(_) => {
                let _ = self.process.kill().await;
                None
            }
        };
        ended.and_then(|status| status.signal())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(id) = self.process.id() {
            forget_companion(id);
        }
    }
}

/// The idle workers.
pub(super) struct Pool {
    program: Vec<OsString>,
    memory_bytes: u64,
    idle: Mutex<Vec<Worker>>,
    most_idle: usize,
}

impl Pool {
    pub(super) fn new(program: Vec<OsString>, memory_bytes: u64) -> Pool {
        let most_idle = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        Pool { program, memory_bytes, idle: Mutex::default(), most_idle }
    }

    /// Takes an idle worker, or starts one.
    pub(super) fn take(&self) -> io::Result<Worker> {
        let mut idle = self.idle.locked();
        while let Some(mut worker) = idle.pop() {
            // The process may have been killed while it was idle.
            if matches!(worker.process.try_wait(), Ok(None)) {
                return Ok(worker);
            }
        }
        drop(idle);
        Worker::start(&self.program, self.memory_bytes)
    }

    /// Returns a worker after an orderly end.
    pub(super) fn put(&self, mut worker: Worker) {
        worker.scripts += 1;
        let mut idle = self.idle.locked();
        if worker.scripts < SCRIPTS && idle.len() < self.most_idle {
            idle.push(worker);
        }
    }
}
