//! Speaks the line protocol with the process that runs one Python script: reads its tool calls and its output, and
//! sends replies.
//!
//! What the script writes is untrusted: lines are bounded, calls count against the run's budget, and replies
//! that it does not read are bounded. The bytes of a line and of all unanswered calls are bounded together, for
//! one script and for all scripts of the process.

use super::{Script, ScriptOutput};
use crate::host::{DiscoveryRequest, Host};
use crate::received::Output;
use crate::reply::{self, Reply};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Longest line. It also bounds the sum of a begun line and the lines of all unanswered calls; only a single
/// line may exceed that sum.
const LINE_BYTES: usize = 16 << 20;

/// Every script may have this much of a begun line and of unanswered calls. More takes a permit of [`LARGE`].
const SMALL_BYTES: usize = 1 << 20;

/// Permits to hold up to [`LINE_BYTES`], for all scripts of the process. A script waits for at most one of them
/// and holds nothing that another script waits for, so there is no deadlock.
static LARGE: Semaphore = Semaphore::const_new(2);

/// Most bytes of replies that the script has not read. Beyond it no call is polled and no line is read until
/// the script reads some.
const UNREAD_BYTES: usize = 4 << 20;

/// Most calls without an answer. Beyond it the script's lines are not read.
const CALLS: usize = 1_024;

/// Most notes of a script, and the sum of their bytes.
const NOTES: usize = 50;
const NOTES_BYTES: usize = 4 << 10;

/// Most bytes of the error of a script. Its process sends at most 65,536 characters.
const ERROR_BYTES: usize = 4 << 16;

/// How a script ended. After a proper end its process exits by itself. A script that forged the end is
/// stopped at the deadline of the run.
pub(super) enum ScriptEnd {
    /// It ended without an error.
    Printed(ScriptOutput),
    /// It raised an exception.
    Raised(String),
    /// Its process closed the channel without an end.
    Closed,
    /// It asked for more than it read: too many replies to discovery requests are unread.
    Unread,
    /// It sent an invalid line.
    InvalidLine,
}

/// A line of any kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    call: u64,
    look: Option<DiscoveryRequest>,
    tool: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    /// Whether a result that is too large is spilled.
    keep: bool,
    /// A function for resources or prompts.
    request: Option<String>,
    /// A spilled result; `method` is called on it.
    kept: Option<String>,
    method: Option<String>,
    /// More of the standard output; `warned` has more of the standard error.
    printed: Option<String>,
    warned: Option<String>,
    output: Option<String>,
    cut: bool,
    #[serde(deserialize_with = "few_notes")]
    notes: Vec<String>,
    error: Option<String>,
}

/// Reads notes within their limits. Later notes are ignored.
fn few_notes<'de, D: Deserializer<'de>>(notes: D) -> Result<Vec<String>, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of texts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut given: A) -> Result<Vec<String>, A::Error> {
            let (mut notes, mut room) = (Vec::new(), NOTES_BYTES);
            while notes.len() < NOTES && room > 0 {
                let Some(mut note) = given.next_element::<String>()? else { return Ok(notes) };
                note.truncate(note.floor_char_boundary(room));
                note.shrink_to_fit();
                room -= note.len();
                notes.push(note);
            }
            while given.next_element::<IgnoredAny>()?.is_some() {}
            Ok(notes)
        }
    }
    notes.deserialize_seq(Few)
}

/// What one script makes the host hold: its begun line, and the lines of its unanswered calls.
#[derive(Default)]
struct HeldLines {
    line: Vec<u8>,
    /// Bytes of the lines of unanswered calls.
    calls: usize,
    /// Held while more than [`SMALL_BYTES`] are held.
    permit: Option<SemaphorePermit<'static>>,
}

impl HeldLines {
    fn bytes(&self) -> usize {
        self.line.len() + self.calls
    }

    /// Whether more may be read.
    fn has_room(&self) -> bool {
        let is_single = self.calls == 0;
        !self.needs_permit() && (is_single || self.bytes() < LINE_BYTES)
    }

    fn needs_permit(&self) -> bool {
        self.permit.is_none() && self.bytes() >= SMALL_BYTES
    }

    /// Takes the line of a call, and leaves of it the text of its arguments. Returns the bytes that count until
    /// the call is answered.
    fn take_call(&mut self, arguments: Range<usize>) -> Option<(usize, String)> {
        let mut text = String::from_utf8(std::mem::take(&mut self.line)).ok()?;
        let bytes = text.len();
        self.calls += bytes;
        text.truncate(arguments.end);
        text.drain(..arguments.start);
        Some((bytes, text))
    }

    /// A call is answered.
    fn answered(&mut self, bytes: usize) {
        self.calls -= bytes;
        self.release();
    }

    /// Removes the line.
    fn clear_line(&mut self) {
        self.line.clear();
        self.line.shrink_to(SMALL_BYTES);
        self.release();
    }

    fn release(&mut self) {
        if self.bytes() < SMALL_BYTES {
            self.permit = None;
        }
    }
}

/// Where a part of a line is. The part was borrowed from it.
fn place(line: &[u8], part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr() as usize - line.as_ptr() as usize;
    start..start + part.get().len()
}

/// How a script ended, and whether the channel is still in step.
pub(super) struct Served {
    /// How the script ended.
    pub(super) end: ScriptEnd,
    /// Whether nothing followed the end, and no reply was sent in part. Then the channel can carry another
    /// script.
    pub(super) in_step: bool,
}

/// Sends the lines of `first`, then serves the script until its end.
pub(super) async fn serve_script(channel: &mut UnixStream, first: String, host: &Arc<Host>) -> Served {
    let (mut reader, mut writer) = channel.split();
    let mut unread = first.into_bytes();
    let mut unsent = 0;
    let mut held = HeldLines::default();
    let mut calls = FuturesUnordered::new();
    // Bytes of replies to discovery requests since everything was read. A script waits for each of these replies,
    // so they pile up only if it does not read.
    let mut discovery_bytes = 0;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let is_read = unread.len() - unsent < UNREAD_BYTES;
        let reads = is_read && calls.len() < CALLS && held.has_room();
        tokio::select! {
            written = writer.write(&unread[unsent..]), if unsent < unread.len() => {
                let Ok(bytes) = written else { return Served::broken(ScriptEnd::Closed) };
                unsent += bytes;
                if unsent == unread.len() {
                    (unread, unsent, discovery_bytes) = (Vec::new(), 0, 0);
                }
            }
            Some((number, bytes, result)) = calls.next(), if is_read => {
                held.answered(bytes);
                unread.extend_from_slice(reply::line(number, result).as_bytes());
            }
            permit = LARGE.acquire(), if held.needs_permit() => held.permit = permit.ok(),
            read = reader.read(&mut chunk), if reads => {
                let Some(bytes) = read.ok().filter(|&bytes| bytes > 0) else { return Served::broken(ScriptEnd::Closed) };
                let mut rest = &chunk[..bytes];
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    held.line.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    let in_step = rest.is_empty() && unsent == unread.len();
                    match serde_json::from_slice(&held.line) {
                        Ok(Line { call, tool, request, kept, method, arguments: Some(arguments), keep, .. })
                            if tool.is_some() || request.is_some() || (kept.is_some() && method.is_some()) =>
                        {
                            let arguments = place(&held.line, arguments);
                            let Some((bytes, arguments)) = held.take_call(arguments) else {
                                return Served::broken(ScriptEnd::InvalidLine);
                            };
                            let host = host.clone();
                            let given = async move {
                                let answer = match (tool, request) {
                                    (Some(tool), _) => host.call(&tool, arguments, keep).await,
                                    (None, Some(function)) => host.request(&function, &arguments).await,
                                    (None, None) => {
                                        let (kept, method) = (kept.unwrap_or_default(), method.unwrap_or_default());
                                        let found = host.retained.look(&host.account, &kept, &method, &arguments);
                                        found.await.map(Reply::value).map_err(Into::into)
                                    }
                                };
                                (call, bytes, answer)
                            };
                            calls.push(given.boxed());
                        }
                        Ok(Line { look: Some(_), .. }) if discovery_bytes > UNREAD_BYTES => {
                            return Served::broken(ScriptEnd::Unread);
                        }
                        Ok(Line { call, look: Some(request), .. }) => {
                            let found = host.discover(&request).map(Reply::value).map_err(Into::into);
                            let reply = reply::line(call, found);
                            discovery_bytes += reply.len();
                            unread.extend_from_slice(reply.as_bytes());
                        }
                        Ok(Line { printed: Some(text), cut, .. }) => host.received.add(Output::Stdout, &text, cut),
                        Ok(Line { warned: Some(text), cut, .. }) => host.received.add(Output::Stderr, &text, cut),
                        Ok(Line { output: Some(text), cut, notes, .. }) => {
                            return Served { end: ScriptEnd::Printed(ScriptOutput { text, cut, notes }), in_step };
                        }
                        Ok(Line { error: Some(mut error), cut, .. }) => {
                            if cut {
                                host.received.cut(Output::Stdout);
                            }
                            error.truncate(error.floor_char_boundary(ERROR_BYTES));
                            error.shrink_to_fit();
                            return Served { end: ScriptEnd::Raised(error), in_step };
                        }
                        _ => return Served::broken(ScriptEnd::InvalidLine),
                    }
                    held.clear_line();
                }
                held.line.extend_from_slice(rest);
                if held.line.len() > LINE_BYTES {
                    return Served::broken(ScriptEnd::InvalidLine);
                }
            }
        }
    }
}

impl Served {
    /// The result for a channel that cannot be used any more.
    fn broken(end: ScriptEnd) -> Served {
        Served { end, in_step: false }
    }
}

/// The line that starts a script. `keep` says whether its namespace is retained, `line_bytes` how long its lines may be.
pub(super) fn task(script: &Script, keep: bool) -> String {
    let task = json!({
        "code": &*script.code, "output_bytes": script.output_bytes, "keep": keep, "line_bytes": LINE_BYTES,
    });
    format!("{task}\n")
}
