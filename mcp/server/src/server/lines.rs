//! Reads newline-delimited input, such as the JSON-RPC messages on standard input, on a thread of its own, and discards
//! lines over a length limit.
//!
//! The reader thread hands over batches of whole lines, so the cost of a thread switch is paid per read and not
//! per line. A line over the cap is discarded as it arrives and never held in memory.

use std::io::{self, ErrorKind, Read};
use tokio::sync::{mpsc, oneshot};

/// Bytes requested in one read.
const READ_BYTES: usize = 64 << 10;
/// Batches that may wait before the reader stops reading. A batch may be as long as the longest line.
const BATCHES: usize = 4;

/// What the reader found: whole lines that were read together, each with its newline except perhaps the last one of the
/// input.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// Lines of text, which mostly all lines are. They are validated as UTF-8 once.
    Text(String),
    /// Lines of which at least one is no text.
    Bytes(Vec<u8>),
    /// A line over the cap was discarded.
    Oversize,
}

/// The end of an input.
#[derive(Debug)]
pub struct InputEnd(oneshot::Receiver<io::Result<()>>);

impl InputEnd {
    /// Says whether the input was read to its end, once its channel is closed.
    ///
    /// # Errors
    /// It could not be read to its end.
    pub fn result(mut self) -> io::Result<()> {
        self.0.try_recv().unwrap_or(Ok(()))
    }
}

/// Starts the reader thread. The channel closes at the end of the input.
pub fn spawn_reader(
    input: impl Read + Send + 'static,
    cap: usize,
) -> io::Result<(mpsc::Receiver<Input>, InputEnd)> {
    let (sender, receiver) = mpsc::channel(BATCHES);
    let (done, end) = oneshot::channel();
    std::thread::Builder::new().name("ptc-stdin".into()).spawn(move || {
        let read = read_all(input, cap, |batch| sender.blocking_send(batch).is_ok());
        // The receiver may not ask. It is there before the channel closes.
        let _ = done.send(read);
        drop(sender);
    })?;
    Ok((receiver, InputEnd(end)))
}

/// Reads to the end. `send` returns false when the receiver is gone.
fn read_all(mut input: impl Read, cap: usize, mut send: impl FnMut(Input) -> bool) -> io::Result<()> {
    let mut pending: Vec<u8> = Vec::new();
    let mut discarding = false;
    let mut ended = Ok(());
    // Allocated once: most requests are far shorter.
    let mut part = vec![0; READ_BYTES];
    loop {
        let old = pending.len();
        let read = match input.read(&mut part) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                ended = Err(error);
                0
            }
        };
        pending.extend_from_slice(&part[..read]);
        if read == 0 {
            // The last line need not end with a newline. After an error it may have been cut.
            if ended.is_ok() && !discarding && !pending.is_empty() {
                send(pending.into());
            }
            return ended;
        }
        let newline = memchr::memrchr(b'\n', &pending[old..]).map(|index| old + index);
        let Some(last) = newline else {
            if discarding {
                pending.clear();
            } else if pending.len() > cap {
                discarding = true;
                pending = Vec::new();
                if !send(Input::Oversize) {
                    return Ok(());
                }
            }
            continue;
        };
        let rest = pending.split_off(last + 1);
        let mut lines = std::mem::replace(&mut pending, rest);
        if discarding {
            let end = lines.iter().position(|&byte| byte == b'\n').map_or(lines.len(), |index| index + 1);
            lines.drain(..end);
            discarding = false;
        }
        if !lines.is_empty() && !send(lines.into()) {
            return Ok(());
        }
    }
}

impl From<Vec<u8>> for Input {
    fn from(lines: Vec<u8>) -> Input {
        String::from_utf8(lines).map_or_else(|error| Input::Bytes(error.into_bytes()), Input::Text)
    }
}

impl Input {
    /// The lines; `None` for a line that was discarded.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Input::Text(text) => Some(text.into_bytes()),
            Input::Bytes(bytes) => Some(bytes),
            Input::Oversize => None,
        }
    }

    /// The lines from byte `start` on, which must begin a line: each as text, with the offset of the next. A line that is
    /// no UTF-8, or was discarded, is `None`.
    pub fn lines_from(&self, start: usize) -> impl Iterator<Item = (Option<&str>, usize)> {
        let (text, bytes) = match self {
            Input::Text(text) => (Some(&text[start..]), &text.as_bytes()[start..]),
            Input::Bytes(bytes) => (None, &bytes[start..]),
            // One line that is no text.
            Input::Oversize => (None, &b"\xff"[start..]),
        };
        let mut begin = 0;
        split_ends(bytes).map(move |(line, end)| {
            let read = match text {
                Some(text) => text.get(begin..begin + line.len()),
                None => std::str::from_utf8(line).ok(),
            };
            begin = end;
            (read, start + end)
        })
    }
}

/// The lines of a batch, without newline and carriage return.
pub fn split(batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    split_ends(batch).map(|(line, _)| line)
}

/// [`split`], each with the offset of the next line.
pub fn split_ends(batch: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let body = batch.strip_suffix(b"\n").unwrap_or(batch);
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', body).chain([body.len()]);
    ends.map(move |end| {
        let line = &body[start..end];
        start = end + 1;
        (line.strip_suffix(b"\r").unwrap_or(line), start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out its pieces one read at a time.
    struct Pieces(std::collections::VecDeque<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some(piece) = self.0.pop_front() else { return Ok(0) };
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    fn read(pieces: &[&str], cap: usize) -> Vec<String> {
        let mut found = Vec::new();
        read_all(Pieces(pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect()), cap, |input| {
            match input.into_bytes() {
                Some(lines) => {
                    found.extend(split(&lines).map(|line| String::from_utf8_lossy(line).into_owned()));
                }
                None => found.push("<oversize>".into()),
            }
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(read(&["a\nb", "c\r\n", "d"], 100), ["a", "bc", "d"]);
        assert_eq!(read(&["\n", "x\n"], 100), ["", "x"]);
        assert_eq!(read(&[], 100), Vec::<String>::new());
    }

    /// Half of a program could be another program.
    #[test]
    fn a_line_that_an_error_has_cut_is_not_handed_over() {
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("gone"));
                }
                buffer[..6].copy_from_slice(b"one\ntw");
                Ok(6)
            }
        }
        let mut lines = Vec::new();
        let read = read_all(Failing(false), 100, |input| {
            lines.push(input);
            true
        });
        assert_eq!((lines, read.is_err()), (vec![Input::Text("one\n".to_owned())], true));
    }

    #[test]
    fn a_line_that_is_no_text_costs_only_itself() {
        let read = |bytes: &[u8], start| {
            let batch = Input::from(bytes.to_vec());
            batch.lines_from(start).map(|(text, end)| (text.map(str::to_owned), end)).collect::<Vec<_>>()
        };
        let text = |text: &str, end| (Some(text.to_owned()), end);
        assert_eq!(read("ä\r\nb\n".as_bytes(), 0), [text("ä", 4), text("b", 6)]);
        assert_eq!(read("ä\r\nb\n".as_bytes(), 4), [text("b", 6)]);
        assert_eq!(read(b"a\n\xff\nc", 0), [text("a", 2), (None, 4), text("c", 6)]);
        assert_eq!(read(b"a\n\xff\nc", 4), [text("c", 6)]);
    }

    #[test]
    fn an_oversize_line_is_reported_once_and_skipped() {
        let long = "x".repeat(30);
        assert_eq!(read(&["a\n", &long, &long, "y\nb\n"], 20), ["a", "<oversize>", "b"]);
        assert_eq!(read(&[&long, &long], 20), ["<oversize>"]);
    }
}
