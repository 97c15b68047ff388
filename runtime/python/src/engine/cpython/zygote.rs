//! The warm process. Its control socket carries lines; nothing that a script wrote passes it.

use super::Options;
use super::control::{Order, Orders};
use crate::engine::filter::{self, Held};
use crate::functions::Functions;
use ptc_runtime::tasks::{self, TaskOwner};
use ptc_runtime::upstream::{forget_companion, spawn_companion};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, oneshot};

/// What runs there, as one text.
const SOURCES: [&str; 4] =
    [include_str!("jail.py"), include_str!("zygote.py"), include_str!("program.py"), include_str!("main.py")];

/// Reads that text, and the settings, from the first line; so they do not stand in lists of processes.
const BOOT: &str = "import json,os\n_line=b''\nwhile not _line.endswith(b'\\n'): _line+=os.read(0,65536) or os._exit(1)\n\
    settings=json.loads(_line)\nexec(compile(settings.pop('source'),'<ptc>','exec'),{'__name__':'<ptc>','settings':settings})";

/// The time to start it.
const START: Duration = Duration::from_secs(20);

/// The longest line from it.
const LINE_BYTES: u64 = 4096;

/// How a script ended that was never begun.
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

/// What it says when it can fork.
#[derive(Deserialize)]
pub(super) struct Ready {
    /// Of the interpreter.
    pub(super) version: String,
    /// What holds scripts; each was enforced.
    pub(super) layers: Vec<String>,
}

/// The warm process.
pub(super) struct Zygote {
    ready: Ready,
    control: Arc<Control>,
    process: Child,
}

struct Control {
    scripts: Mutex<Scripts>,
    /// There are orders.
    ordered: Notify,
}

#[derive(Default)]
struct Scripts {
    last: u64,
    running: HashMap<u64, oneshot::Sender<i32>>,
    orders: Orders,
    /// The functions that were sent last, by version.
    functions: Option<u64>,
    lost: bool,
}

/// The process of one script. Dropping it ends the process.
pub(super) struct Process {
    number: u64,
    end: Option<oneshot::Receiver<i32>>,
    control: Arc<Control>,
}

impl Zygote {
    /// Starts one and waits until it can fork.
    pub(super) async fn start(options: &Options) -> Result<Zygote, String> {
        let failed = |error: io::Error| format!("python: {error}");
        let filter = filter::bytes(Held::Script)?;
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        let mut command = Command::new(&options.python);
        command.args(["-I", "-S", "-c", BOOT]).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = spawn_companion(|| command.spawn(), Child::id)
            .map_err(|error| format!("{}: {error}", options.python.display()))?;
        // The other end of the pair is the child's alone now.
        drop(command);
        ours.set_nonblocking(true).map_err(failed)?;
        let (reader, mut writer) = UnixStream::from_std(ours).map_err(failed)?.into_split();
        let mut lines = BufReader::new(reader);
        let first_line = json!({
            "source": SOURCES.concat(),
            "jail": options.jail,
            "filter": filter.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
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
        let control = Arc::new(Control { scripts: Mutex::default(), ordered: Notify::new() });
        tasks::spawn(TaskOwner::Connection, control.clone().listen(lines));
        tasks::spawn(TaskOwner::Connection, control.clone().order(writer));
        Ok(Zygote { ready, control, process })
    }

    pub(super) fn ready(&self) -> &Ready {
        &self.ready
    }

    /// It has ended: another one is needed.
    pub(super) fn is_lost(&self) -> bool {
        self.control.scripts().lost
    }

    /// A process for a script with these functions, and the channel to it.
    pub(super) fn fork(&self, functions: &Functions) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let channel = UnixStream::from_std(ours)?;
        let (sender, end) = oneshot::channel();
        let mut scripts = self.control.scripts();
        if scripts.lost {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if scripts.functions != Some(functions.version()) {
            scripts.functions = Some(functions.version());
            let table = json!({
                "functions": functions.iter().collect::<Vec<_>>(), "unavailable": functions.unavailable(),
            });
            scripts.orders.put(Order::Functions(format!("functions {table}\n")));
        }
        scripts.last += 1;
        let number = scripts.last;
        scripts.running.insert(number, sender);
        scripts.orders.put(Order::Run(number, theirs.into()));
        drop(scripts);
        self.control.ordered.notify_one();
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

/// The next message; `None` at the end, or when it is none of ours.
async fn receive(lines: &mut BufReader<OwnedReadHalf>) -> Option<Message> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

impl Control {
    fn scripts(&self) -> MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(self: Arc<Control>, mut lines: BufReader<OwnedReadHalf>) {
        while let Some(message) = receive(&mut lines).await {
            if let Message::Ended { ended, status } = message
                && let Some(waiting) = self.scripts().running.remove(&ended)
            {
                let _ = waiting.send(status);
            }
        }
        self.lose();
    }

    /// Sends orders as they are read there; nothing is lost by a socket that is full.
    async fn order(self: Arc<Control>, writer: OwnedWriteHalf) {
        loop {
            let order = self.scripts().orders.take();
            let Some(order) = order else {
                if self.scripts().lost {
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

    fn end(&self, number: u64) {
        let mut scripts = self.scripts();
        if !scripts.running.contains_key(&number) {
            return;
        }
        if scripts.orders.withdraw(number) {
            if let Some(waiting) = scripts.running.remove(&number) {
                let _ = waiting.send(KILLED);
            }
            return;
        }
        scripts.orders.put(Order::Kill(number));
        drop(scripts);
        self.ordered.notify_one();
    }

    fn put(&self, order: Order) {
        self.scripts().orders.put(order);
        self.ordered.notify_one();
    }

    fn lose(&self) {
        let mut scripts = self.scripts();
        scripts.lost = true;
        scripts.running.clear();
        scripts.orders = Orders::default();
        drop(scripts);
        self.ordered.notify_one();
    }
}

impl Process {
    /// Takes the processor from it, until it is resumed. Whatever it does beside its scripts, it does not do it now.
    pub(super) fn pause(&self) {
        self.control.put(Order::Pause(self.number));
    }

    /// Gives it back.
    pub(super) fn resume(&self) {
        self.control.put(Order::Resume(self.number));
    }

    /// Waits for its end: its exit status, or less than 0 for a signal. `None`: the warm process is gone.
    pub(super) async fn ended(mut self) -> Option<i32> {
        let status = self.end.as_mut()?.await.ok();
        self.end = None;
        status
    }

    /// Ends it.
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
