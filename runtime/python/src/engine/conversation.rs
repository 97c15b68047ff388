//! The protocol with the process of one script: it reads its calls and output, and sends replies.
//!
//! What the script writes is untrusted: lines are bounded, calls count against the run's budget, and replies
//! that it does not read are bounded.

use super::{Script, ScriptOutput};
use crate::host::{DiscoveryRequest, Host};
use crate::received::Output;
use crate::reply::{self, Reply};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Longest line, apart from the output and the memory for arguments.
const LINE_BYTES: usize = 16 << 20;

/// Most bytes of replies that the script has not read. Beyond it no call is polled until the script reads
/// some.
const UNREAD_BYTES: usize = 4 << 20;

/// Most calls without an answer. Beyond it the script's lines are not read.
const CALLS: usize = 1_024;

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
    notes: Vec<String>,
    error: Option<String>,
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
    let mut line = Vec::new();
    let mut calls = FuturesUnordered::new();
    // Bytes of replies to discovery requests since everything was read. A script waits for each of these replies,
    // so they pile up only if it does not read.
    let mut discovery_bytes = 0;
    let mut chunk = vec![0; 1 << 16];
    loop {
        tokio::select! {
            written = writer.write(&unread[unsent..]), if unsent < unread.len() => {
                let Ok(bytes) = written else { return Served::broken(ScriptEnd::Closed) };
                unsent += bytes;
                if unsent == unread.len() {
                    (unread, unsent, discovery_bytes) = (Vec::new(), 0, 0);
                }
            }
            Some((number, result)) = calls.next(), if unread.len() - unsent < UNREAD_BYTES => {
                unread.extend_from_slice(reply::line(number, result).as_bytes());
            }
            read = reader.read(&mut chunk), if calls.len() < CALLS => {
                let Some(bytes) = read.ok().filter(|&bytes| bytes > 0) else { return Served::broken(ScriptEnd::Closed) };
                let mut rest = &chunk[..bytes];
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    line.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    let in_step = rest.is_empty() && unsent == unread.len();
                    match serde_json::from_slice(&line) {
                        Ok(Line { call, tool: Some(tool), arguments: Some(arguments), keep, .. }) => {
                            let (host, arguments) = (host.clone(), arguments.to_owned());
                            let given = async move { (call, host.call(&tool, &arguments, keep).await) };
                            calls.push(given.boxed());
                        }
                        Ok(Line { call, request: Some(function), arguments: Some(arguments), .. }) => {
                            let (host, arguments) = (host.clone(), arguments.to_owned());
                            let given = async move { (call, host.request(&function, &arguments).await) };
                            calls.push(given.boxed());
                        }
                        Ok(Line { call, kept: Some(kept), method: Some(method), arguments: Some(arguments), .. }) => {
                            let (host, arguments) = (host.clone(), arguments.to_owned());
                            let looked = async move {
                                let found = host.retained.look(&host.account, &kept, &method, &arguments).await;
                                (call, found.map(Reply::value).map_err(Into::into))
                            };
                            calls.push(looked.boxed());
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
                        Ok(Line { printed: Some(text), .. }) => host.received.add(Output::Stdout, &text),
                        Ok(Line { warned: Some(text), .. }) => host.received.add(Output::Stderr, &text),
                        Ok(Line { output: Some(text), cut, notes, .. }) => {
                            return Served { end: ScriptEnd::Printed(ScriptOutput { text, cut, notes }), in_step };
                        }
                        Ok(Line { error: Some(error), cut, .. }) => {
                            if cut {
                                host.received.cut(Output::Stdout);
                            }
                            return Served { end: ScriptEnd::Raised(error), in_step };
                        }
                        _ => return Served::broken(ScriptEnd::InvalidLine),
                    }
                    line.clear();
                }
                line.extend_from_slice(rest);
                if line.len() > LINE_BYTES {
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

/// The line that starts a script. `keep` says whether its namespace is retained.
pub(super) fn task(script: &Script, keep: bool) -> String {
    let task = json!({ "code": &*script.code, "output_bytes": script.output_bytes, "keep": keep });
    format!("{task}\n")
}
