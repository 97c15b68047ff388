//! The processes of the workers.

use crate::functions::Functions;
use ptc_runtime::upstream::{forget_companion, spawn_companion};
use serde_json::json;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// Scripts of one worker. Whatever they leave behind in its memory goes with it.
const SCRIPTS: u32 = 500;

/// Settings of the allocator, where it is mimalloc: no room is reserved beforehand, so that the limit of the process
/// counts what is used.
const ALLOCATOR: [(&str, &str); 2] =
    [("MIMALLOC_ARENA_EAGER_COMMIT", "0"), ("MIMALLOC_ARENA_RESERVE", "1MiB")];

/// A worker. Dropping it ends its process.
pub(super) struct Worker {
    process: Child,
    /// The channel of its scripts.
    pub(super) channel: UnixStream,
    /// The functions that it was told last, by version.
    functions: Option<u64>,
    scripts: u32,
}

impl Worker {
    /// Starts one.
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

    /// What it has to be told before its next script.
    pub(super) fn news(&mut self, functions: &Functions) -> String {
        if self.functions == Some(functions.version()) {
            return String::new();
        }
        self.functions = Some(functions.version());
        let table = json!({ "functions": functions.iter().collect::<Vec<_>>(), "unavailable": functions.unavailable() });
        format!("{table}\n")
    }

    /// Ends it: the signal that it had ended by, if that was not this end.
    pub(super) async fn end(mut self) -> Option<i32> {
        // One that has closed its socket is about to end by itself, and says why.
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

/// Workers that have nothing to do.
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

    /// A worker, which is started if none is idle.
    pub(super) fn take(&self) -> io::Result<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut worker) = idle.pop() {
            // Somebody may have ended it meanwhile.
            if matches!(worker.process.try_wait(), Ok(None)) {
                return Ok(worker);
            }
        }
        drop(idle);
        Worker::start(&self.program, self.memory_bytes)
    }

    /// Takes back one that has ended its script in order.
    pub(super) fn put(&self, mut worker: Worker) {
        worker.scripts += 1;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.scripts < SCRIPTS && idle.len() < self.most_idle {
            idle.push(worker);
        }
    }
}
