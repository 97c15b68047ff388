//! Starts and controls the warm Python process that forks a child for each script.
//!
//! Its control socket carries lines, none of which a script wrote.

use super::Options;
use super::control::{Order, Orders};
use super::memory::{self, MemoryWatch, SharedTotal};
use crate::engine::filter::{self, ProcessKind};
use crate::functions::Functions;
use ptc_base::digest::hex;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_upstream::{forget_companion, spawn_companion};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, oneshot};

/// The program of the warm process, as one text.
const SOURCES: [&str; 9] = [
    include_str!("jail.py"),
    include_str!("zygote.py"),
    include_str!("program.py"),
    include_str!("output.py"),
    include_str!("module.py"),
    include_str!("channel.py"),
    include_str!("event_loop.py"),
    include_str!("results.py"),
    include_str!("main.py"),
];

/// Reads that text and the settings from the first line, so that lists of processes do not show them.
const BOOT: &str = "import json,os\n_line=b''\nwhile not _line.endswith(b'\\n'): _line+=os.read(0,65536) or os._exit(1)\n\
    settings=json.loads(_line)\nexec(compile(settings.pop('source'),'<ptc>','exec'),{'__name__':'<ptc>','settings':settings})";

/// Most time for its start.
const START: Duration = Duration::from_secs(20);

/// Longest line that it may send.
const LINE_BYTES: u64 = 4096;

/// The status of a script that was killed before its start.
const KILLED: i32 = -9;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    Ready(Ready),
    Refused(String),
    #[serde(untagged)]
    Ended {
        ended: u64,
        status: i32,
    },
}

/// The first message, sent when the process can fork.
#[derive(Deserialize)]
pub(super) struct Ready {
    /// Version of the interpreter.
    pub(super) version: String,
    /// The layers of the jail; each is enforced.
    pub(super) layers: Vec<String>,
}

/// The warm process.
pub(super) struct Zygote {
    pub(super) ready: Ready,
    control: Arc<Control>,
    process: Child,
}

struct Control {
    scripts: Mutex<Scripts>,
    /// Notified when there are new orders.
    ordered: Notify,
    /// Notified when a script may run, or when there will be none.
    awake: Notify,
}

#[derive(Default)]
struct Scripts {
    last: u64,
    running: HashMap<u64, Running>,
    orders: Orders,
    /// Version of the functions that were sent last.
    functions: Option<u64>,
    lost: bool,
}

/// A script that has not ended.
struct Running {
    /// Receives the exit status.
    end: oneshot::Sender<i32>,
    /// Whether its process is stopped, so that its memory cannot grow.
    is_paused: bool,
}

/// The process of one script. Dropping it ends the process.
pub(super) struct Process {
    number: u64,
    end: Option<oneshot::Receiver<i32>>,
    control: Arc<Control>,
}

impl Zygote {
    /// Starts the process and waits until it can fork.
    pub(super) async fn start(options: &Options, total: Arc<SharedTotal>) -> Result<Zygote, String> {
        let failed = |error: io::Error| format!("python: {error}");
        let filter = filter::bytes(ProcessKind::Script)?;
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        let mut command = Command::new(&options.python);
        command.args(["-I", "-S", "-c", BOOT]).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = spawn_companion(|| command.spawn(), Child::id)
            .map_err(|error| format!("{}: {error}", options.python.display()))?;
        // Closes this side's copy of the child's end.
        drop(command);
        ours.set_nonblocking(true).map_err(failed)?;
        let (reader, mut writer) = UnixStream::from_std(ours).map_err(failed)?.into_split();
        let mut lines = BufReader::new(reader);
        let first_line = json!({
            "source": SOURCES.concat(),
            "jail": options.jail,
            "filter": hex(&filter),
            "memory_bytes": options.memory_bytes,
            "cpu_seconds": options.cpu_seconds,
        });
        writer.write_all(format!("{first_line}\n").as_bytes()).await.map_err(failed)?;
        let first = tokio::time::timeout(START, receive(&mut lines)).await;
        let ready = match first.map_err(|_| "python did not start in time".to_owned())? {
            Some(Message::Ready(ready)) => ready,
            Some(Message::Refused(why)) => return Err(format!("scripts cannot be jailed here: {why}")),
            _ => return Err("python ended at its start (3.10 or later is needed)".to_owned()),
        };
        let control =
            Arc::new(Control { scripts: Mutex::default(), ordered: Notify::new(), awake: Notify::new() });
        tasks::spawn(TaskOwner::Connection, control.clone().listen(lines));
        tasks::spawn(TaskOwner::Connection, control.clone().order(writer));
        if let Some(id) = process.id() {
            let (is_jailed, each) = (options.jail, options.memory_bytes);
            let watch = MemoryWatch { started: id, is_jailed, each, total, counted: 0 };
            tasks::spawn(TaskOwner::Connection, control.clone().watch(watch));
        }
        Ok(Zygote { ready, control, process })
    }

    /// Whether the process has ended, so that another one is needed.
    pub(super) fn is_lost(&self) -> bool {
        self.control.scripts.locked().lost
    }

    /// Forks a process for a script with these functions. Returns it with its channel.
    pub(super) fn fork(&self, functions: &Functions) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let channel = UnixStream::from_std(ours)?;
        let (sender, end) = oneshot::channel();
        let mut scripts = self.control.scripts.locked();
        if scripts.lost {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if scripts.functions != Some(functions.version()) {
            scripts.functions = Some(functions.version());
            scripts.orders.put(Order::Functions(format!("functions {}\n", functions.table())));
        }
        scripts.last += 1;
        let number = scripts.last;
        scripts.running.insert(number, Running { end: sender, is_paused: false });
        scripts.orders.put(Order::Run(number, theirs.into()));
        drop(scripts);
        self.control.notify();
        Ok((Process { number, end: Some(end), control: self.control.clone() }, channel))
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.control.lose();
        if let Some(id) = self.process.id() {
            forget_companion(id);
        }
    }
}

/// Reads the next message; `None` at the end, or for an invalid line.
async fn receive(lines: &mut BufReader<OwnedReadHalf>) -> Option<Message> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

impl Control {
    async fn listen(self: Arc<Control>, mut lines: BufReader<OwnedReadHalf>) {
        while let Some(message) = receive(&mut lines).await {
            if let Message::Ended { ended, status } = message
                && let Some(script) = self.scripts.locked().running.remove(&ended)
            {
                let _ = script.end.send(status);
            }
        }
        self.lose();
    }

    /// Sends orders as fast as the process reads them. A full socket loses none.
    async fn order(self: Arc<Control>, writer: OwnedWriteHalf) {
        loop {
            let order = self.scripts.locked().orders.take();
            let Some(order) = order else {
                if self.scripts.locked().lost {
                    return;
                }
                self.ordered.notified().await;
                continue;
            };
            if let Err(error) = order.send(&writer).await {
                tracing::warn!(%error, "the process of all scripts does not take orders");
                return self.lose();
            }
        }
    }

    /// Enforces the limits of memory while scripts run.
    async fn watch(self: Arc<Control>, mut watch: MemoryWatch) {
        loop {
            let (is_lost, may_grow) = {
                let scripts = self.scripts.locked();
                (scripts.lost, scripts.running.values().any(|script| !script.is_paused))
            };
            if is_lost {
                return;
            }
            if !may_grow {
                self.awake.notified().await;
            }
            tokio::time::sleep(memory::INTERVAL).await;
            watch.enforce();
        }
    }

    fn end(&self, number: u64) {
        let mut scripts = self.scripts.locked();
        if !scripts.running.contains_key(&number) {
            return;
        }
        if scripts.orders.withdraw(number) {
            if let Some(script) = scripts.running.remove(&number) {
                let _ = script.end.send(KILLED);
            }
            return;
        }
        scripts.orders.put(Order::Kill(number));
        drop(scripts);
        self.ordered.notify_one();
    }

    /// Stops a script, or lets it run again.
    fn set_paused(&self, number: u64, is_paused: bool) {
        let mut scripts = self.scripts.locked();
        if let Some(script) = scripts.running.get_mut(&number) {
            script.is_paused = is_paused;
        }
        scripts.orders.put(Order::SetPaused(number, is_paused));
        drop(scripts);
        self.notify();
    }

    fn lose(&self) {
        let mut scripts = self.scripts.locked();
        scripts.lost = true;
        scripts.running.clear();
        scripts.orders = Orders::default();
        drop(scripts);
        self.notify();
    }

    fn notify(&self) {
        self.ordered.notify_one();
        self.awake.notify_one();
    }
}

impl Process {
    /// Stops the process, including threads that the scripts left behind, or lets it run again.
    pub(super) fn set_paused(&self, is_paused: bool) {
        self.control.set_paused(self.number, is_paused);
    }

    /// Waits for the end. Returns the exit status, or a negative number for a signal. `None` when the warm
    /// process has ended.
    pub(super) async fn ended(mut self) -> Option<i32> {
        let status = self.end.as_mut()?.await.ok();
        self.end = None;
        status
    }

    /// Kills the process.
    pub(super) async fn kill(self) -> Option<i32> {
        self.control.end(self.number);
        self.ended().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end.is_some() {
            self.control.end(self.number);
        }
    }
}
