//! Reads server-sent events from the body of an HTTP response: data beyond a size limit goes to a file or is skipped,
//! and a broken stream can be resumed.

use super::super::pace::Pace;
use bytes::Bytes;
use ptc_base::net::{Body, NetError};
use ptc_base::spill::{RawSpill, SpillStore};
use serde::de::IgnoredAny;
use std::time::Duration;

/// Bytes of an oversized event that are retained to find its id.
const HEAD: usize = 4_096;

/// The longest id that is sent back.
const LONGEST_ID: usize = 1_024;

/// Bounds of the pause that a server may ask for. Without the lower one it could make us ask all the time.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// One item of a stream.
#[derive(Debug)]
pub enum ServerSentEvent {
    /// An event with data.
    Event {
        /// `message` if it has no name.
        name: String,
        /// Its data, lines joined.
        data: Vec<u8>,
    },
    /// An event has more data than the cap; the rest of it is not kept.
    TooLarge {
        /// The beginning of its data.
        head: Vec<u8>,
        /// Bytes seen.
        bytes: u64,
    },
    /// An event whose data is too large went to a file.
    Spilled(RawSpill),
}

/// Splits a stream into events, independent of its chunks.
#[derive(Default)]
pub struct EventParser {
    /// Bytes that are not parsed yet.
    chunk: Bytes,
    /// A line that has not ended.
    line: Vec<u8>,
    /// The data of the event so far.
    data: Vec<u8>,
    has_data: bool,
    name: String,
    /// The last line ended with a carriage return, to which a newline may belong.
    after_return: bool,
    has_begun: bool,
    /// The rest of the event is not kept in memory.
    is_skipping: bool,
    /// The line of it that is being read.
    skipped: SkippedLine,
    /// The id of the last complete event; an empty one means none.
    last_id: String,
    /// The id that the next complete event has.
    next_id: String,
    retry: Option<Duration>,
    /// Bytes outside of events that were not counted yet.
    noise: usize,
    /// Data that is too large.
    spill: Option<RawSpill>,
}

/// A line of an event that is not kept in memory.
enum SkippedLine {
    /// Its beginning, which does not say yet what it is.
    Begun(Vec<u8>),
    /// More data.
    Data,
    Other,
}

impl Default for SkippedLine {
    fn default() -> SkippedLine {
        SkippedLine::Begun(Vec::new())
    }
}

impl EventParser {
    /// Adds bytes. All events of the bytes before must have been taken out.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty());
        self.chunk = chunk;
    }

    /// The next item; `None` when more bytes are needed. Data beyond the cap goes to `overflow`, if there is one.
    pub fn next(&mut self, cap: usize, overflow: &dyn Fn() -> Option<SpillStore>) -> Option<ServerSentEvent> {
        loop {
            if self.after_return && !self.chunk.is_empty() {
                self.after_return = false;
                if self.chunk[0] == b'\n' {
                    let _ = self.chunk.split_to(1);
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', &self.chunk) else {
                let rest = std::mem::take(&mut self.chunk);
                if self.is_skipping {
                    self.skip(&rest, false);
                    return None;
                }
                self.line.extend_from_slice(&rest);
                let is_data = self.line.starts_with(b"data:");
                let parsed = self.too_large(cap, overflow);
                if self.is_skipping {
                    self.skipped = if is_data { SkippedLine::Data } else { SkippedLine::Other };
                }
                return parsed;
            };
            let text = self.chunk.split_to(end);
            self.after_return = self.chunk[0] == b'\r';
            let _ = self.chunk.split_to(1);
            let is_blank =
                text.is_empty() && matches!(&self.skipped, SkippedLine::Begun(begun) if begun.is_empty());
            if self.is_skipping && !is_blank {
                self.skip(&text, true);
                continue;
            }
            let parsed = if self.line.is_empty() {
                self.line(&text, cap, overflow)
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&text);
                self.line(&line, cap, overflow)
            };
            if parsed.is_some() {
                return parsed;
            }
        }
    }

    /// What is left at the end of a stream that cannot go on in another one: an event without its blank line.
    pub fn finish(&mut self) -> Option<ServerSentEvent> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && !self.is_skipping {
            self.line(&line, usize::MAX, &|| None);
        }
        self.dispatch()
    }

    /// A part of a line of an event that is not kept in memory; `ends`: the last.
    fn skip(&mut self, part: &[u8], ends: bool) {
        const FIELD: &[u8] = b"data: ";
        let mut part = part;
        let begun;
        if let SkippedLine::Begun(beginning) = &mut self.skipped {
            beginning.extend_from_slice(part);
            if beginning.len() < FIELD.len() && !ends {
                return;
            }
            begun = std::mem::take(beginning);
            let value = begun.strip_prefix(b"data:").map(|value| value.strip_prefix(b" ").unwrap_or(value));
            let value = value.or((begun == b"data").then_some(&[][..]));
            self.skipped = if value.is_some() { SkippedLine::Data } else { SkippedLine::Other };
            if value.is_some() {
                self.keep(b"\n");
            }
            part = value.unwrap_or(&begun);
        }
        let is_kept = matches!(self.skipped, SkippedLine::Data) && self.keep(part);
        if !is_kept {
            self.noise += part.len() + 1;
        }
        if ends {
            self.skipped = SkippedLine::default();
        }
    }

    fn line(
        &mut self,
        mut line: &[u8],
        cap: usize,
        overflow: &dyn Fn() -> Option<SpillStore>,
    ) -> Option<ServerSentEvent> {
        if !self.has_begun {
            self.has_begun = true;
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.noise += 1;
            return self.dispatch();
        }
        if !line.starts_with(b"data") {
            self.noise += line.len() + 1;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
                return self.too_large(cap, overflow);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= LONGEST_ID && !value.contains(&0) => {
                self.next_id = String::from_utf8_lossy(value).into_owned();
            }
            b"retry" => {
                let digits =
                    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                if let Some(pause) = digits.and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(pause).clamp(SHORTEST_RETRY, LONGEST_RETRY));
                }
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<ServerSentEvent> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        self.is_skipping = false;
        self.skipped = SkippedLine::default();
        if self.last_id != self.next_id {
            self.last_id.clone_from(&self.next_id);
        }
        if let Some(spill) = self.spill.take() {
            return Some(ServerSentEvent::Spilled(spill));
        }
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(ServerSentEvent::Event { name, data })
    }

    /// More of data that goes to a file; false when none does.
    fn keep(&mut self, more: &[u8]) -> bool {
        let is_kept = self.spill.as_mut().is_some_and(|spill| spill.push(more).is_ok());
        if !is_kept {
            self.spill = None;
        }
        is_kept
    }

    fn too_large(
        &mut self,
        cap: usize,
        overflow: &dyn Fn() -> Option<SpillStore>,
    ) -> Option<ServerSentEvent> {
        let bytes = self.data.len() + self.line.len();
        // The name of the field and what else may stand in a line without being data.
        if bytes <= cap.saturating_add(LONGEST_ID + 16) {
            return None;
        }
        let mut head = std::mem::take(&mut self.data);
        if self.has_data && !self.line.is_empty() {
            head.push(b'\n');
        }
        head.extend_from_slice(self.line.strip_prefix(b"data:").unwrap_or(&self.line).trim_ascii_start());
        self.line = Vec::new();
        (self.has_data, self.is_skipping) = (false, true);
        if let Some(mut spill) = overflow().and_then(|store| store.raw().ok())
            && spill.push(&head).is_ok()
        {
            self.spill = Some(spill);
            return None;
        }
        head.truncate(HEAD);
        Some(ServerSentEvent::TooLarge { head, bytes: bytes as u64 })
    }
}

/// A body that is a stream of events.
pub(super) struct EventStream {
    body: Body,
    parser: EventParser,
    pace: Pace,
}

impl EventStream {
    pub(super) fn new(body: Body) -> EventStream {
        EventStream { body, parser: EventParser::default(), pace: Pace::new() }
    }

    /// Continues where another stream has ended.
    pub(super) fn resumed(body: Body, before: EventStream) -> EventStream {
        let EventParser { last_id, retry, .. } = before.parser;
        let parser = EventParser { next_id: last_id.clone(), last_id, retry, ..EventParser::default() };
        EventStream { body, parser, pace: before.pace }
    }

    /// The event whose blank line has not come at the end of a stream that does not go on, if its data is whole.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        match self.parser.finish()? {
            ServerSentEvent::Event { data, .. } => {
                serde_json::from_slice::<IgnoredAny>(&data).is_ok().then_some(data)
            }
            ServerSentEvent::Spilled(_) | ServerSentEvent::TooLarge { .. } => None,
        }
    }

    /// The next event; `None` at the end, where an event without its blank line is discarded: the server sends it again in
    /// the stream that goes on after this one. Data beyond the cap goes to `overflow`, if there is one when the event turns
    /// out to be too large. Bytes outside of events, such as comments, cost the server time. Cancel safe.
    pub(super) async fn next(
        &mut self,
        cap: impl Fn() -> usize,
        overflow: impl Fn() -> Option<SpillStore>,
    ) -> Result<Option<ServerSentEvent>, NetError> {
        loop {
            if let Some(parsed) = self.parser.next(cap(), &overflow) {
                return Ok(Some(parsed));
            }
            let noise = std::mem::take(&mut self.parser.noise);
            if noise > 0 {
                self.pace.unasked(noise as u64).await;
            }
            match self.body.chunk().await? {
                Some(chunk) => self.parser.push(chunk),
                None => return Ok(None),
            }
        }
    }

    /// Waits while the server is ahead of its rate, after an unsolicited message of this size.
    pub(super) async fn unasked(&mut self, bytes: usize) {
        self.pace.unasked(bytes as u64).await;
    }

    /// The id to resume from, if the server gave one.
    pub(super) fn last_id(&self) -> Option<&str> {
        Some(self.parser.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// How long the server wants us to wait before we ask again.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.parser.retry
    }

    /// Reads what follows the last event of interest, so that the connection is used again.
    pub(super) async fn drain(mut self) {
        let _ = self.body.beginning(HEAD).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name=data` of each event, `!head` of one that is too large.
    fn parse(text: &[u8], step: usize, cap: usize) -> (Vec<String>, EventParser) {
        let mut parser = EventParser::default();
        let mut all = Vec::new();
        let mut take = |parsed: ServerSentEvent| match parsed {
            ServerSentEvent::Event { name, data } => {
                all.push(format!("{name}={}", String::from_utf8_lossy(&data)))
            }
            ServerSentEvent::TooLarge { head, .. } => {
                all.push(format!("!{}", String::from_utf8_lossy(&head[..5])))
            }
            ServerSentEvent::Spilled(_) => unreachable!("there is no place for it"),
        };
        for chunk in text.chunks(step) {
            parser.push(Bytes::copy_from_slice(chunk));
            while let Some(parsed) = parser.next(cap, &|| None) {
                take(parsed);
            }
        }
        (all, parser)
    }

    #[test]
    fn events_are_the_same_in_any_chunks() {
        let table: &[(&str, &[&str])] = &[
            ("data: a\n\ndata:b\n\n", &["message=a", "message=b"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", &["message=a", "message=b", "message=c"]),
            ("event: endpoint\ndata: /m?x=1\n\n", &["endpoint=/m?x=1"]),
            (": comment\n\ndata\n\n\n\n", &["message="]),
            ("\u{feff}data:  two\ndata: lines\n\n", &["message= two\nlines"]),
            ("id: 1\nevent: x\n\ndata: y\n\n", &["message=y"]),
            ("data: whole\n\ndata: cut", &["message=whole"]),
            ("data: {\"half\":\n", &[]),
            ("other: x\nfield\n\n", &[]),
        ];
        for (text, want) in table {
            for step in [1, 2, 3, 1_000] {
                assert_eq!(parse(text.as_bytes(), step, 100).0, *want, "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn ids_and_pauses_are_remembered() {
        let (_, parser) = parse(b"id: 7\nretry: 250\ndata:\n\nretry: soon\nid: a\0b\n\n", 3, 100);
        assert_eq!((parser.last_id.as_str(), parser.retry), ("7", Some(Duration::from_millis(250))));
        let (_, parser) = parse(b"id: 7\ndata:\n\nid\n\nretry: 99999999999\n\n", 100, 100);
        assert_eq!((parser.last_id.as_str(), parser.retry), ("", Some(LONGEST_RETRY)));
        // An id holds from the end of its event.
        for cut in ["id: 8\ndata: cut", "id: 8\ndata: cut\n", "id: 8"] {
            let (_, parser) = parse(format!("id: 7\ndata:\n\n{cut}").as_bytes(), 4, 100);
            assert_eq!(parser.last_id, "7", "{cut:?}");
        }
    }

    #[test]
    fn what_belongs_to_no_event_is_counted_and_no_pause_is_none() {
        let noise = |text: &str, cap| parse(text.as_bytes(), 7, cap).1.noise;
        let comments = ": nothing\n\n".repeat(1_000);
        assert_eq!(noise(&comments, 100), comments.len());
        let endless = "x".repeat(10_000);
        assert!(noise(&format!("data: {endless}"), 100) > 8_000);
        assert_eq!(noise(&format!("data: {endless}\n\n"), 100_000), 1);
        let (_, parser) = parse(b"retry: 0\n\n", 100, 100);
        assert_eq!(parser.retry, Some(SHORTEST_RETRY));
    }

    #[test]
    fn too_much_is_told_at_once_and_the_rest_skipped() {
        let long = format!("data: start{}\n\ndata: next\n\n", "x".repeat(10_000));
        let lines = format!("data: start\n{}\ndata: next\n\n", "data: xxxxxxxxx\n".repeat(1_000));
        for text in [long, lines] {
            for step in [1, 7, 100_000] {
                assert_eq!(parse(text.as_bytes(), step, 100).0, ["!start", "message=next"], "by {step}");
            }
        }
    }
}
