//! The main loop of a process that runs Python scripts in Monty (an interpreter of a subset of Python): it confines
//! itself, then runs each script that arrives on its standard input. It speaks the protocol of `conversation`.

use super::script::{NAME_TOOL_ERROR, Script};
use crate::engine::filter::{self, ProcessKind};
use monty::MontyRepl;
use monty_types::{AssertMessageAnnotations, CompileOptions, PrintWriter, ResourceTracker};
use ptc_base::{files, process};
use ptc_vm::fault::nearest;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Stack size of scripts, for the deepest recursion that they may use.
const STACK: usize = 64 << 20;

/// Sockets, and descriptors that a library may open.
const DESCRIPTORS: u64 = 16;

/// A line from the parent process.
#[derive(Deserialize)]
#[serde(untagged)]
enum ParentLine {
    Task {
        code: String,
        output_bytes: usize,
        keep: bool,
    },
    Reply {
        reply: u64,
        value: Option<Value>,
        content: Option<Value>,
        kept: Option<Value>,
        error: Option<String>,
    },
    Functions(FunctionSet),
}

/// The result of a call.
pub(super) enum Answer {
    /// A value.
    Value(Value),
    /// The description of a spilled result.
    Spilled(Value),
}

/// The functions that scripts can call.
#[derive(Default, Deserialize)]
pub(super) struct FunctionSet {
    functions: Vec<Known>,
    unavailable: BTreeSet<String>,
    #[serde(skip)]
    by_name: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Known {
    name: String,
    params: Vec<String>,
}

impl FunctionSet {
    fn indexed(mut self) -> FunctionSet {
        self.by_name = self.functions.drain(..).map(|known| (known.name, known.params)).collect();
        self
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn is_unavailable(&self, name: &str) -> bool {
        self.unavailable.contains(name)
    }

    /// The parameters of a function, required ones first.
    pub(super) fn params(&self, name: &str) -> Option<&[String]> {
        self.by_name.get(name).map(Vec::as_slice)
    }

    pub(super) fn docstring(&self, name: &str) -> Option<String> {
        Some(format!("await {name}({}); help({name}) explains it", self.params(name)?.join(", ")))
    }

    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.by_name.keys().map(String::as_str))
    }
}

/// The channel to the parent process.
pub(super) struct Channel {
    socket: UnixStream,
    inbox: Receiver<ParentLine>,
}

impl Channel {
    /// Sends a line. If the parent has gone, the process exits, because nothing could receive an error.
    pub(super) fn send(&self, message: &Value) {
        if (&self.socket).write_all(format!("{message}\n").as_bytes()).is_err() {
            exit(0);
        }
    }

    fn receive(&self) -> ParentLine {
        self.inbox.recv().unwrap_or_else(|_| exit(0))
    }

    /// Waits for the next reply to a call.
    pub(super) fn reply(&self) -> (u64, Result<Answer, String>) {
        loop {
            if let ParentLine::Reply { reply, value, content, kept, error } = self.receive() {
                // A result that has nothing but other content is this content.
                let value = value.or(content).unwrap_or_default();
                let answer = kept.map_or(Answer::Value(value), Answer::Spilled);
                return (reply, error.map_or(Ok(answer), Err));
            }
        }
    }
}

/// Runs scripts until the parent closes the socket. A script may use this many bytes beyond those that the
/// process has now.
///
/// # Errors
/// The process cannot be confined.
pub fn serve(memory_bytes: u64) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let lines = BufReader::new(socket.try_clone()?);
    let (sender, inbox) = channel();
    let channel = Channel { socket, inbox };
    // Done before other files and threads exist: the confinement of a thread also applies to threads that it
    // starts.
    let pages = files::open("/proc/self/statm".as_ref()).ok();
    process::give_up_files()?;
    std::thread::Builder::new().stack_size(STACK).spawn(move || run_scripts(&channel))?;
    confine(memory_bytes, pages)?;
    listen(lines, &sender);
    // When the socket ends, the process ends, even while a script runs.
    exit(0)
}

fn listen(mut lines: BufReader<UnixStream>, sender: &Sender<ParentLine>) {
    let mut line = String::new();
    while let Ok(1..) = lines.read_line(&mut line) {
        let Ok(message) = serde_json::from_str(&line) else { return };
        if sender.send(message).is_err() {
            return;
        }
        line.clear();
    }
}

fn run_scripts(channel: &Channel) {
    let mut functions = FunctionSet::default();
    let mut kept = None;
    loop {
        match channel.receive() {
            ParentLine::Functions(set) => functions = set.indexed(),
            ParentLine::Task { code, output_bytes, keep } => {
                let namespace = kept.take().filter(|_| keep).unwrap_or_else(fresh);
                let (namespace, last) = Script::new(channel, &functions, output_bytes).run(namespace, &code);
                kept = keep.then_some(namespace);
                channel.send(&last);
            }
            // A reply to a call of an earlier script.
            ParentLine::Reply { .. } => {}
        }
    }
}

/// A namespace that contains only `ToolError`.
fn fresh() -> MontyRepl {
    let options = CompileOptions { assert_message_annotations: AssertMessageAnnotations::Off };
    let mut repl = MontyRepl::new("<program>", ResourceTracker::default(), options);
    // This import cannot fail.
    let _ = repl.feed_run(NAME_TOOL_ERROR, Vec::new(), PrintWriter::Disabled);
    repl
}

/// Sets the limits of the process, and the filter of system calls where the system supports it.
fn confine(memory_bytes: u64, pages: Option<File>) -> io::Result<()> {
    let most = |what, limit| setrlimit(what, Rlimit { current: Some(limit), maximum: Some(limit) });
    most(Resource::Core, 0)?;
    most(Resource::Fsize, 0)?;
    most(Resource::Nofile, DESCRIPTORS)?;
    if let Some(base) = pages.and_then(mapped_bytes) {
        most(Resource::As, base.saturating_add(memory_bytes))?;
    }
    #[cfg(target_os = "linux")]
    seccompiler::apply_filter_all_threads(&filter::program(ProcessKind::Worker).map_err(io::Error::other)?)
        .map_err(io::Error::other)?;
    Ok(())
}

/// The address space of this process; `None` where it is unknown.
fn mapped_bytes(mut statm: File) -> Option<u64> {
    let mut pages = String::new();
    statm.read_to_string(&mut pages).ok()?;
    let pages: u64 = pages.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
