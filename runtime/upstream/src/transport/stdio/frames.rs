//! Reads JSON-RPC messages from the standard output of an MCP server, where one message may span several lines.
//! Incomplete, malformed and oversized messages are returned as such, with the request that they answer if it is known.

use super::line::{LineReader, Oversize, REST, ReadLine};
use crate::jsonrpc::message::{self, Incoming, OversizeKind};
use crate::jsonrpc::scan::Balance;
use ptc_base::spill::{RawSpill, SpillStore};
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncRead;
use tokio::time::timeout;

/// Frames above this size are parsed off the I/O threads.
const PARSE_INLINE: usize = 256 * 1024;

/// Bytes of skipped text that are reported together.
const PASSED: usize = 64 * 1024;

/// The result of one read.
#[derive(Debug)]
pub(super) enum Received {
    /// A frame and its bytes.
    Frame(Incoming, usize),
    /// A line longer than any answer may be in memory; the whole line in a file, where a request allows that.
    Oversize(OversizeKind, u64, Option<RawSpill>),
}

/// How much of an incoming frame is read.
pub(super) struct Intake {
    /// Most bytes of a frame in memory.
    cap: AtomicUsize,
    /// Where longer ones go, while a request waits whose answer may go there.
    overflow: Mutex<Option<SpillStore>>,
}

impl Intake {
    pub(super) fn new(cap: usize) -> Intake {
        Intake { cap: AtomicUsize::new(cap), overflow: Mutex::default() }
    }

    pub(super) fn set(&self, cap: usize, overflow: Option<SpillStore>) {
        self.cap.store(cap, Ordering::Relaxed);
        *self.overflow.locked() = overflow;
    }

    fn cap(&self) -> usize {
        self.cap.load(Ordering::Relaxed)
    }

    fn overflow(&self) -> Option<SpillStore> {
        self.overflow.locked().clone()
    }
}

/// Reads frames.
pub(super) struct Frames<R, F> {
    source: LineReader<R>,
    open: Option<Open>,
    /// The rest of an answer that was too large is skipped.
    passing: Option<Passing>,
    /// A line that has interrupted an open text.
    next: Option<Vec<u8>>,
    /// Gets lines that begin no JSON.
    on_noise: F,
}

/// A text that has begun.
struct Open {
    text: Vec<u8>,
    balance: Balance,
}

/// What is left of a text that was too large.
struct Passing {
    balance: Balance,
    /// Bytes that were not reported yet.
    bytes: usize,
}

impl<R: AsyncRead + Unpin, F: Fn(&[u8])> Frames<R, F> {
    pub(super) fn new(source: R, on_noise: F) -> Frames<R, F> {
        Frames { source: LineReader::new(source), open: None, passing: None, next: None, on_noise }
    }

    /// The next frame; `None` at the end of the stream. A text that is still open then is dropped: the end of the stream
    /// says more.
    pub(super) async fn next(&mut self, intake: &Intake) -> std::io::Result<Option<Received>> {
        loop {
            let is_open = self.open.is_some() || self.passing.is_some();
            let line = match (self.next.take(), is_open) {
                (Some(line), _) => Some(ReadLine::Whole(line)),
                (None, false) => self.source.next(|| intake.cap(), || intake.overflow()).await?,
                (None, true) => {
                    match timeout(REST, self.source.next(|| intake.cap(), || intake.overflow())).await {
                        Ok(line) => line?,
                        Err(_) => match self.give_up() {
                            Some(received) => return Ok(Some(received)),
                            None => continue,
                        },
                    }
                }
            };
            let received = match line {
                None => return Ok(None),
                Some(ReadLine::Whole(line)) => self.line(line, intake.cap()).await,
                Some(ReadLine::Oversize(over)) => {
                    Some(Received::Oversize(message::identify(&over.head, &over.tail), over.bytes, over.file))
                }
            };
            if received.is_some() {
                return Ok(received);
            }
        }
    }

    async fn line(&mut self, line: Vec<u8>, cap: usize) -> Option<Received> {
        let is_open = self.open.is_some() || self.passing.is_some();
        if is_open && message::is_frame(&line) {
            self.next = Some(line);
            return self.give_up();
        }
        if let Some(passing) = &mut self.passing {
            passing.bytes += line.len() + 1;
            let is_over = passing.balance.feed(&line).is_some();
            return if is_over || passing.bytes > PASSED { self.report_passed(is_over) } else { None };
        }
        let text = match &mut self.open {
            None => line,
            Some(open) => {
                open.text.push(b'\n');
                open.text.extend_from_slice(&line);
                if open.balance.feed(&line).is_none() {
                    return self.check_size(cap);
                }
                self.open.take().map(|open| open.text).unwrap_or_default()
            }
        };
        let bytes = text.len();
        if !text.trim_ascii_start().starts_with(b"{") && !text.trim_ascii_start().starts_with(b"[") {
            (self.on_noise)(&text);
        }
        let incoming = if bytes > PARSE_INLINE {
            let parsed = tasks::blocking(TaskOwner::Connection, move |_| message::parse(text)).await;
            parsed.unwrap_or(Incoming::Noise)
        } else {
            message::parse(text)
        };
        if let Incoming::Open(text) = incoming {
            let mut balance = Balance::default();
            balance.feed(&text);
            self.open = Some(Open { text, balance });
            return None;
        }
        Some(Received::Frame(incoming, bytes))
    }

    /// An open text may be as long as a line.
    fn check_size(&mut self, cap: usize) -> Option<Received> {
        let open = self.open.take_if(|open| open.text.len() > cap)?;
        let over = Oversize::of(&open.text, None);
        match message::identify(&over.head, &over.tail) {
            kind @ OversizeKind::Response(_) => {
                // Its other lines are not unsolicited frames.
                self.passing = Some(Passing { balance: open.balance, bytes: 0 });
                Some(Received::Oversize(kind, over.bytes, None))
            }
            // Lines that only look as if they were one text.
            OversizeKind::Other | OversizeKind::Unknown => {
                let bytes = open.text.len();
                Some(Received::Frame(message::cut_short(open.text), bytes))
            }
        }
    }

    /// Reports the bytes skipped since the last report.
    fn report_passed(&mut self, is_over: bool) -> Option<Received> {
        let bytes = std::mem::take(&mut self.passing.as_mut()?.bytes);
        self.passing.take_if(|_| is_over);
        Some(Received::Frame(Incoming::Noise, bytes))
    }

    /// Gives up the open text: which request it was about, as far as it says.
    fn give_up(&mut self) -> Option<Received> {
        if self.passing.is_some() {
            return self.report_passed(true);
        }
        let text = self.open.take()?.text;
        let bytes = text.len();
        Some(Received::Frame(message::cut_short(text), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a stream that stays open, as words.
    async fn read(input: &str) -> Vec<String> {
        let (mut client, server) = tokio::io::duplex(64);
        let input = input.to_owned();
        let writer = tasks::spawn(TaskOwner::Connection, async move {
            use tokio::io::AsyncWriteExt;
            client.write_all(input.as_bytes()).await.unwrap();
            // Longer than the reader waits for the rest of an open text; the paused clock advances.
            tokio::time::sleep(REST * 2).await;
        });
        let mut frames = Frames::new(server, |_: &[u8]| ());
        let mut words = Vec::new();
        while let Some(received) = frames.next(&Intake::new(1000)).await.unwrap() {
            words.push(match received {
                Received::Frame(Incoming::Response { id, body: Ok(_) }, _) => format!("{id} ok"),
                Received::Frame(Incoming::Response { id, body: Err(error) }, _) => {
                    format!("{id} {}", error.message)
                }
                Received::Frame(Incoming::Broken { ids, .. }, _) => format!("{ids:?} broken"),
                Received::Frame(Incoming::Noise, _) => "noise".to_owned(),
                Received::Frame(Incoming::Notification { method }, _) => method,
                other => format!("{other:?}"),
            });
        }
        writer.await.unwrap();
        words
    }

    #[tokio::test(start_paused = true)]
    async fn texts_over_several_lines_become_frames() {
        let pretty =
            "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {\n    \"a\": [\n {}\n]\n  }\n}\n";
        assert_eq!(read(pretty).await, ["7 ok"]);
        assert_eq!(read(&format!("{pretty}booting\n{pretty}")).await, ["7 ok", "noise", "7 ok"]);
        // A string with a raw line break: no JSON, but the frame around it is sound.
        assert_eq!(read("{\"id\":7,\"result\":\"one\ntwo\"}\n").await, ["7 ok"]);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_found_among_what_does_not_belong_to_them() {
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        for (before, after) in [
            ("", ""),
            ("", "\r"),
            ("\u{feff}", "\n"),
            ("\0", "\n"),
            ("\u{1b}[32m", "\u{1b}[0m\n"),
            ("INFO [main] ", "\n"),
            ("data: ", "\n\n"),
        ] {
            assert_eq!(read(&format!("{before}{answer}{after}")).await[0], "7 ok", "{before:?} {after:?}");
        }
        assert_eq!(read("{\"id\":7,\"method\":\"x\",\"result\":{}}\n").await, ["7 ok"]);
        let request = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}";
        assert_eq!(read(&format!("got {request}\n")).await, ["noise"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_that_does_not_go_on_is_cut_short() {
        assert_eq!(read("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\n").await, ["[7] broken"]);
        let next = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
        let cut = format!("{{\"id\":7,\"result\":{{\"a\":\n{next}{next}");
        assert_eq!(read(&cut).await, ["[7] broken", "m", "m"]);
        assert_eq!(read("{ booting\nstill\n").await, ["noise"]);
        let endless = format!("{{\"id\":7,\"result\":[\n{}", "1,\n".repeat(600));
        let words = read(&endless).await;
        assert_eq!(words[0], format!("Oversize(Response(7), {}, None)", 1002), "{words:?}");
        assert_eq!(words[1..], ["noise"], "the rest of it is one thing");
        let next = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
        assert_eq!(read(&format!("{endless}]}}\n{next}")).await[1..], ["noise", "m"]);
    }
}
