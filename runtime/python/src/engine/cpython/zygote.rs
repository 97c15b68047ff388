//! The warm process. Its control socket carries lines; nothing that a script wrote passes it.

use super::{Options, filter};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

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

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    Ready(String),
    Refused(String),
    #[serde(untagged)]
    Ended {
        ended: u64,
        status: i32,
    },
}

/// The warm process.
pub(super) struct Zygote {
    version: String,
    control: Arc<Control>,
    _process: Child,
}

struct Control {
    writer: OwnedWriteHalf,
    scripts: Mutex<Scripts>,
}

#[derive(Default)]
struct Scripts {
    last: u64,
    running: HashMap<u64, oneshot::Sender<i32>>,
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
        let filter = filter::program()?;
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        let mut command = Command::new(&options.python);
        command.args(["-I", "-S", "-c", BOOT]).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().map_err(|error| format!("{}: {error}", options.python.display()))?;
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
        let version = match first.map_err(|_| "python did not start in time".to_owned())? {
            Some(Message::Ready(version)) => version,
            Some(Message::Refused(why)) => return Err(format!("scripts cannot be jailed here: {why}")),
            _ => return Err("python ended at its start (3.10 or later is needed)".to_owned()),
        };
        let control = Control { writer, scripts: Mutex::default() };
        let control = Arc::new(control);
        tokio::spawn(control.clone().listen(lines));
        Ok(Zygote { version, control, _process: process })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// It has ended: another one is needed.
    pub(super) fn is_lost(&self) -> bool {
        self.control.scripts().lost
    }

    /// A process for a script, and the channel to it.
    pub(super) fn fork(&self) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let channel = UnixStream::from_std(ours)?;
        let (sender, end) = oneshot::channel();
        // Both in one step: numbers are given in the order of the messages.
        let mut scripts = self.control.scripts();
        self.control.send("run\n", Some(&theirs.into()))?;
        scripts.last += 1;
        let number = scripts.last;
        scripts.running.insert(number, sender);
        drop(scripts);
        Ok((Process { number, end: Some(end), control: self.control.clone() }, channel))
    }
}

/// The next message; `None` at the end, or when it is none of ours.
async fn receive(lines: &mut BufReader<OwnedReadHalf>) -> Option<Message> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

impl Control {
    fn scripts(&self) -> std::sync::MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines are short, and read as fast as they come: one that does not fit at once is a failure.
    fn send(&self, line: &str, descriptor: Option<&OwnedFd>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(AsFd::as_fd);
        if let Some(descriptor) = &descriptors {
            ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let socket: &UnixStream = self.writer.as_ref();
        sendmsg(socket, &[IoSlice::new(line.as_bytes())], &mut ancillary, flags)?;
        Ok(())
    }

    async fn listen(self: Arc<Control>, mut lines: BufReader<OwnedReadHalf>) {
        let control = self;
        while let Some(message) = receive(&mut lines).await {
            if let Message::Ended { ended, status } = message
                && let Some(waiting) = control.scripts().running.remove(&ended)
            {
                let _ = waiting.send(status);
            }
        }
        let mut scripts = control.scripts();
        scripts.lost = true;
        scripts.running.clear();
    }
}

impl Process {
    /// Waits for its end: its exit status, or less than 0 for a signal. `None`: the warm process is gone.
    pub(super) async fn ended(mut self) -> Option<i32> {
        let status = self.end.as_mut()?.await.ok();
        self.end = None;
        status
    }

    /// Ends it.
    pub(super) async fn kill(self) -> Option<i32> {
        self.end_it();
        self.ended().await
    }

    fn end_it(&self) {
        if let Err(error) = self.control.send(&format!("kill {}\n", self.number), None) {
            tracing::warn!(%error, "the process of a script could not be ended");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end.is_some() {
            self.end_it();
        }
    }
}
