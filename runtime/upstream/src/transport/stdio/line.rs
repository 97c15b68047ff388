//! Splits a byte stream into lines, with a size limit that holds while a line is read; a longer one is cut, or goes to
//! a file.

use crate::jsonrpc::scan;
use ptc_base::spill::{RawSpill, SpillStore};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// How long to wait for the rest of a text that has begun. Then it counts as cut short, unless only the end of its line
/// is missing.
pub(super) const REST: Duration = Duration::from_secs(1);

/// Bytes kept from each end of an over-long line: enough to find its `id` at either end.
pub(super) const KEPT: usize = 4096;

/// Room asked for before each read.
const CHUNK: usize = 64 * 1024;

/// Lines up to this size are copied out of the read buffer; longer ones take the buffer along.
const COPY: usize = 16 * 1024;

/// One frame.
#[derive(Debug)]
pub(super) enum ReadLine {
    /// The line without its newline.
    Whole(Vec<u8>),
    /// The line was longer than the cap; its middle is gone.
    Oversize(Oversize),
}

/// What is left of an over-long line.
#[derive(Debug, Default)]
pub(super) struct Oversize {
    /// Length of the whole line.
    pub(super) bytes: u64,
    /// Its first bytes.
    pub(super) head: Vec<u8>,
    /// Its last bytes.
    pub(super) tail: Vec<u8>,
    /// The whole line, where a request allows that.
    pub(super) file: Option<RawSpill>,
}

impl Oversize {
    /// What is left of a whole text.
    pub(super) fn of(text: &[u8], overflow: Option<SpillStore>) -> Oversize {
        let mut oversize = Oversize::begin(overflow);
        oversize.push(text);
        oversize
    }

    fn begin(overflow: Option<SpillStore>) -> Oversize {
        Oversize { file: overflow.and_then(|store| store.raw().ok()), ..Oversize::default() }
    }

    fn push(&mut self, part: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.push(part).is_err()) {
            self.file = None;
        }
        self.bytes += part.len() as u64;
        let room = KEPT - self.head.len();
        self.head.extend_from_slice(&part[..room.min(part.len())]);
        let part = &part[part.len().saturating_sub(KEPT)..];
        let surplus = (self.tail.len() + part.len()).saturating_sub(KEPT);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(part);
    }
}

/// Splits a byte stream into lines. Holds at most the cap plus one chunk.
pub(super) struct LineReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Where the current line starts in `buffer`.
    start: usize,
    /// Up to where `buffer` was searched for a newline.
    scanned: usize,
    discarding: Option<Oversize>,
    /// Nothing came for a while since the current line began.
    has_waited: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(inner: R) -> LineReader<R> {
        LineReader {
            inner,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            discarding: None,
            has_waited: false,
            ended: false,
        }
    }

    /// The next line; `None` at the end of the stream. `cap` is read for each chunk, because calls with a larger cap may
    /// begin while a line arrives; `overflow` is read when a line turns out to be over-long. Cancel safe.
    pub(super) async fn next(
        &mut self,
        cap: impl Fn() -> usize,
        overflow: impl Fn() -> Option<SpillStore>,
    ) -> std::io::Result<Option<ReadLine>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + at;
                return Ok(Some(self.take(end, cap(), overflow)));
            }
            self.scanned = self.buffer.len();
            if self.ended {
                return Ok(self.take_rest(cap(), overflow));
            }
            self.shrink(cap(), &overflow);
            self.buffer.reserve(CHUNK);
            let read = self.inner.read_buf(&mut self.buffer);
            let read = if self.start == self.scanned || self.has_waited {
                read.await?
            } else {
                let Ok(read) = timeout(REST, read).await else {
                    self.has_waited = true;
                    if let Some(line) = self.take_unterminated() {
                        return Ok(Some(ReadLine::Whole(line)));
                    }
                    continue;
                };
                read?
            };
            self.has_waited = false;
            self.ended = read == 0;
        }
    }

    /// A complete object or list whose line does not end. Nothing more has come for a while, and a call may wait for it.
    fn take_unterminated(&mut self) -> Option<Vec<u8>> {
        let text = self.buffer[self.start..].trim_ascii();
        let is_whole = self.discarding.is_none()
            && matches!(text.first(), Some(b'{' | b'['))
            && scan::end(text) == Some(text.len());
        let line = is_whole.then(|| text.to_vec())?;
        self.advance(self.buffer.len());
        Some(line)
    }

    /// Takes the line that ends before the newline at `end`.
    fn take(&mut self, end: usize, cap: usize, overflow: impl Fn() -> Option<SpillStore>) -> ReadLine {
        let length = end - self.start;
        if let Some(mut oversize) = self.discarding.take() {
            oversize.push(&self.buffer[self.start..end]);
            self.advance(end + 1);
            return ReadLine::Oversize(oversize);
        }
        if length > cap {
            let oversize = Oversize::of(&self.buffer[self.start..end], overflow());
            self.advance(end + 1);
            return ReadLine::Oversize(oversize);
        }
        if length <= COPY || self.start != 0 {
            let line = self.buffer[self.start..end].to_vec();
            self.advance(end + 1);
            return ReadLine::Whole(line);
        }
        // The last line may have no newline behind it.
        let rest = self.buffer.split_off((end + 1).min(self.buffer.len()));
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        self.start = 0;
        self.scanned = 0;
        ReadLine::Whole(line)
    }

    /// The unterminated last line, if there is one.
    fn take_rest(&mut self, cap: usize, overflow: impl Fn() -> Option<SpillStore>) -> Option<ReadLine> {
        let end = self.buffer.len();
        if self.start == end && self.discarding.is_none() {
            return None;
        }
        let line = self.take(end, cap, overflow);
        self.buffer.clear();
        self.start = 0;
        self.scanned = 0;
        Some(line)
    }

    fn advance(&mut self, to: usize) {
        self.start = to.min(self.buffer.len());
        self.scanned = self.start;
    }

    /// Makes room: drops what was consumed, and the middle of a line over the cap.
    fn shrink(&mut self, cap: usize, overflow: impl Fn() -> Option<SpillStore>) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.discarding.is_none() && self.buffer.len() > cap {
            self.discarding = Some(Oversize::begin(overflow()));
        }
        if let Some(oversize) = &mut self.discarding {
            oversize.push(&self.buffer);
            self.buffer.clear();
        }
        if self.buffer.is_empty() {
            self.buffer.shrink_to(CHUNK);
        }
        self.scanned = self.buffer.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_base::tasks::{self, TaskOwner};

    impl PartialEq for ReadLine {
        fn eq(&self, other: &ReadLine) -> bool {
            matches!((self, other), (ReadLine::Whole(line), ReadLine::Whole(other)) if line == other)
        }
    }

    async fn lines(input: &[u8], cap: usize, chunk: usize) -> Vec<ReadLine> {
        let (mut client, server) = tokio::io::duplex(chunk);
        let input = input.to_vec();
        let writer = tasks::spawn(TaskOwner::Connection, async move {
            use tokio::io::AsyncWriteExt;
            client.write_all(&input).await.unwrap();
        });
        let mut reader = LineReader::new(server);
        let mut all = Vec::new();
        while let Some(line) = reader.next(|| cap, || None).await.unwrap() {
            all.push(line);
        }
        writer.await.unwrap();
        all
    }

    #[tokio::test]
    async fn splits_lines_at_any_chunk_size() {
        for chunk in [1, 2, 3, 7, 64] {
            let got = lines(b"one\n\ntwo\nlast", 100, chunk).await;
            let want: Vec<ReadLine> =
                ["one", "", "two", "last"].iter().map(|t| ReadLine::Whole(t.as_bytes().to_vec())).collect();
            assert_eq!(got, want, "chunk {chunk}");
        }
    }

    #[tokio::test]
    async fn an_over_long_line_keeps_both_ends_and_the_next_line_survives() {
        let mut input = b"HEAD".to_vec();
        input.extend(std::iter::repeat_n(b'x', 100_000));
        input.extend_from_slice(b"TAIL\nnext\n");
        for chunk in [1000, 65_536, 1 << 20] {
            let got = lines(&input, 50, chunk).await;
            let ReadLine::Oversize(over) = &got[0] else { panic!("{:?}", got[0]) };
            assert_eq!(over.bytes, 100_008);
            assert!(over.head.starts_with(b"HEADx") && over.head.len() == KEPT);
            assert!(over.tail.ends_with(b"xTAIL") && over.tail.len() == KEPT);
            assert_eq!(got[1], ReadLine::Whole(b"next".to_vec()));
            assert_eq!(got.len(), 2);
        }
    }

    #[tokio::test]
    async fn a_long_line_under_the_cap_is_whole() {
        let mut input = vec![b'y'; 300_000];
        input.extend_from_slice(b"\nz\n");
        let got = lines(&input, 400_000, 4096).await;
        assert_eq!(got, [ReadLine::Whole(vec![b'y'; 300_000]), ReadLine::Whole(b"z".to_vec())]);
    }

    #[tokio::test]
    async fn a_long_last_line_needs_no_newline() {
        let input = vec![b'y'; 2 * COPY];
        assert_eq!(lines(&input, 4 * COPY, 4096).await, [ReadLine::Whole(input)]);
    }
}
