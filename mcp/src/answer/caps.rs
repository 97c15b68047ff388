//! Size limits of the response profiles: how much of each part of a run a profile shows.

use crate::redact;
use ptc_runtime::secrets::Cut;
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
            Profile::Slim => Caps {
                result_bytes: 32 << 10,
                value_bytes: 32 << 10,
                print_lines: 20,
                print_bytes: 8 << 10,
                message_bytes: 8 << 10,
                calls: 0,
            },
            Profile::Structured => Caps {
                result_bytes: 24 << 10,
                value_bytes: 32 << 10,
                print_lines: 50,
                print_bytes: 16 << 10,
                message_bytes: 8 << 10,
                calls: 0,
            },
            Profile::Debug => Caps {
                result_bytes: 128 << 10,
                value_bytes: 128 << 10,
                print_lines: 200,
                print_bytes: 64 << 10,
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
    /// Printed lines; only whole lines from the start are shown.
    pub print_lines: usize,
    /// Bytes of those lines together.
    pub print_bytes: usize,
    /// Message and rendered diagnostic.
    pub message_bytes: usize,
    /// Upstream calls listed.
    pub calls: usize,
}

/// Cuts a text to at most `bytes` bytes; true when something was cut.
pub fn cut(text: &str, bytes: usize) -> (Cow<'_, str>, bool) {
    match text.len() <= bytes {
        true => (Cow::Borrowed(text), false),
        false => (redact::excerpt(text, Cut::Bytes(bytes)), true),
    }
}

/// The longest prefix of whole lines within the limits, with base64 shortened; true when lines are missing.
pub fn cut_lines<'a>(lines: &'a [String], caps: &Caps) -> (Vec<Cow<'a, str>>, bool) {
    if lines.is_empty() {
        return (Vec::new(), false);
    }
    let mut bytes = 0;
    let fitting: Vec<Cow<'_, str>> = lines
        .iter()
        .take(caps.print_lines)
        .map(|line| brief(line).map_or(Cow::Borrowed(line.as_str()), Cow::Owned))
        .take_while(|line| {
            bytes += line.len() + 1;
            bytes <= caps.print_bytes
        })
        .collect();
    let is_cut = fitting.len() < lines.len();
    (fitting, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_respects_characters_and_whole_lines() {
        assert_eq!(cut("aé", 2), ("a".into(), true));
        assert_eq!(cut("aé", 3), ("aé".into(), false));
        let lines = ["x".repeat(8_000), "y".repeat(300), "z".into()];
        assert_eq!(cut_lines(&lines, &Profile::Slim.caps()), (vec![Cow::Borrowed(lines[0].as_str())], true));
    }
}
