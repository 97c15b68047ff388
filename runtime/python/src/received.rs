//! Collects the output that a running script sends, up to a size limit, to show it if the script fails or is
//! interrupted.

use ptc_base::sync::Locked;
use std::sync::Mutex;

/// The last line of a truncated stream.
const MORE: &str = "... (truncated)";

/// The two output streams of a script. The process is untrusted, so each is bounded here too.
#[derive(Debug)]
pub struct ReceivedOutput {
    limit: usize,
    streams: Mutex<[Stream; 2]>,
}

#[derive(Debug, Default)]
struct Stream {
    text: String,
    cut: bool,
}

/// Which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl ReceivedOutput {
    /// Makes empty streams with at most `limit` bytes each.
    pub fn new(limit: usize) -> ReceivedOutput {
        ReceivedOutput { limit, streams: Mutex::default() }
    }

    /// Appends text to a stream; `cut` says that the process has truncated it there.
    pub(crate) fn add(&self, output: Output, text: &str, cut: bool) {
        let stream = &mut self.streams.locked()[output as usize];
        if stream.cut {
            return;
        }
        let fits = text.floor_char_boundary(self.limit.saturating_sub(stream.text.len()));
        stream.text.push_str(&text[..fits]);
        stream.cut = cut || fits < text.len();
    }

    /// Marks a stream as truncated by the process.
    pub(crate) fn cut(&self, output: Output) {
        self.streams.locked()[output as usize].cut = true;
    }

    /// The lines of a stream. The last one says whether it was truncated.
    pub fn lines(&self, output: Output) -> Vec<String> {
        let stream = &self.streams.locked()[output as usize];
        let mut lines: Vec<String> = stream.text.lines().map(str::to_owned).collect();
        if stream.cut {
            lines.push(MORE.to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_bounded_and_apart() {
        let heard = ReceivedOutput::new(4);
        heard.add(Output::Stdout, "a\n", false);
        heard.add(Output::Stdout, "b\u{e4}\n", false);
        heard.add(Output::Stdout, "c", false);
        heard.add(Output::Stderr, "w\n", false);
        heard.add(Output::Stderr, "x", true);
        assert_eq!(heard.lines(Output::Stdout), ["a", "b", "... (truncated)"]);
        assert_eq!(heard.lines(Output::Stderr), ["w", "x", "... (truncated)"]);
    }
}
