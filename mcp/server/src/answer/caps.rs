//! Defines the response profiles, which say how much of a run's result the client gets, by size limits on each part of
//! the answer.

use crate::redact;
use ptc_base::secrets::Cut;
use ptc_vm::print::brief;
use std::borrow::Cow;

/// Most bytes of an answer that are counted when it is too large to be shown.
pub const COUNTED_BYTES: usize = 4 << 20;

/// Most bytes of images and sounds in an answer, in base64, not counting its text.
pub const MEDIA_BYTES: usize = 4 << 20;

/// The response profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// Text only: the result, or the reason and the message.
    #[default]
    Slim,
    /// Text, and the same as data: status, result, value, prints, `error_kind`.
    Structured,
    /// Everything, upstream calls and metrics included, mirrored into the text.
    Debug,
}

impl Profile {
    /// All profiles, each at the index of its discriminant.
    pub const ALL: [Profile; 3] = [Profile::Slim, Profile::Structured, Profile::Debug];

    /// The name in flags and descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Slim => "slim",
            Profile::Structured => "structured",
            Profile::Debug => "debug",
        }
    }

    /// The limits of this profile.
    pub const fn caps(self) -> Caps {
        match self {
            Profile::Slim => SLIM,
            Profile::Structured => Caps { result_bytes: 24 << 10, ..SLIM },
            Profile::Debug => Caps {
                result_bytes: 128 << 10,
                value_bytes: 128 << 10,
                answer_bytes: 192 << 10,
                message_bytes: 16 << 10,
                calls: 200,
            },
        }
    }
}

/// Limits of one profile. Bytes are UTF-8 bytes before JSON escaping.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// `result` text.
    pub result_bytes: usize,
    /// `value` and `validated` JSON. A longer text is left out, and its size is reported.
    pub value_bytes: usize,
    /// Result and printed lines together. Prints get what the result leaves, and at least a quarter.
    pub answer_bytes: usize,
    /// Message and rendered diagnostic.
    pub message_bytes: usize,
    /// Upstream calls listed.
    pub calls: usize,
}

const SLIM: Caps = Caps {
    result_bytes: 32 << 10,
    value_bytes: 32 << 10,
    answer_bytes: 32 << 10,
    message_bytes: 8 << 10,
    calls: 0,
};

/// Cuts a text to at most `bytes` bytes; true when something was cut.
pub fn cut(text: &str, bytes: usize) -> (Cow<'_, str>, bool) {
    match text.len() <= bytes {
        true => (Cow::Borrowed(text), false),
        false => (redact::excerpt(text, Cut::Bytes(bytes)), true),
    }
}

/// Printed lines, with base64 shortened, in the room that an answer has for them.
#[derive(Debug)]
pub struct Prints<'a> {
    lines: Vec<Cow<'a, str>>,
    bytes: usize,
}

impl<'a> Prints<'a> {
    /// All of these lines.
    pub fn of_run(lines: &'a [String]) -> Prints<'a> {
        let brief = |line: &'a String| brief(line).map_or(Cow::Borrowed(line.as_str()), Cow::Owned);
        let lines: Vec<Cow<'_, str>> = lines.iter().map(brief).collect();
        let bytes = lines.iter().map(|line| line.len() + 1).sum();
        Prints { lines, bytes }
    }

    /// Bytes that the result may have next to these lines.
    pub fn room_of_result(&self, caps: &Caps) -> usize {
        caps.result_bytes.min(caps.answer_bytes - self.bytes.min(caps.answer_bytes / 4))
    }

    /// The lines that fit next to a result of this size, the last of them cut, and what to say about the rest.
    pub fn shown(self, result: usize, caps: &Caps) -> (Vec<Cow<'a, str>>, Option<String>) {
        let room = caps.answer_bytes.saturating_sub(result).max(caps.answer_bytes / 4);
        let Prints { lines, bytes: all } = self;
        if all <= room {
            return (lines, None);
        }
        let mut left = room;
        let mut shown = Vec::new();
        for line in lines {
            if line.len() < left {
                left -= line.len() + 1;
                shown.push(line);
                continue;
            }
            let end = line.floor_char_boundary(left);
            if end > 0 {
                left -= end;
                shown.push(Cow::Owned(redact::excerpt(&line, Cut::Bytes(end)).into_owned()));
            }
            break;
        }
        (shown, Some(format!("{} of {all} bytes shown; return it as the value", room - left)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_respects_characters_and_whole_lines() {
        assert_eq!(cut("aé", 2), ("a".into(), true));
        assert_eq!(cut("aé", 3), ("aé".into(), false));
        let lines = ["x".repeat(8_000), "y".repeat(30_000), "z".into()];
        let caps = Profile::Slim.caps();
        let (shown, note) = Prints::of_run(&lines[..1]).shown(24_000, &caps);
        assert_eq!((shown[0].len(), note), (8_000, None));
        let (shown, note) = Prints::of_run(&lines).shown(0, &caps);
        assert_eq!((shown.len(), shown[1].len()), (2, (32 << 10) - 8_001));
        assert_eq!(note.as_deref(), Some("32768 of 38004 bytes shown; return it as the value"));
        // Neither takes all the room of the other.
        assert_eq!(Prints::of_run(&lines).room_of_result(&caps), 24 << 10);
        let (shown, _) = Prints::of_run(&lines).shown(1 << 20, &caps);
        assert_eq!(shown.iter().map(|line| line.len() + 1).sum::<usize>(), (8 << 10) + 1);
    }
}
