//! Abbreviates base64 data inside printed text, since thousands of its letters are of no use to a reader.

/// Shortest run of base64 letters that counts as data: names and words are shorter.
pub(super) const LEAST: usize = 256;

/// Letters that are shown: enough to recognise an image or a sound.
const SHOWN: usize = 24;

/// Least number of distinct letters in data: `(repeat 1000 "Ab1")` has three.
const VARIED: u32 = 16;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// Other text.
    Plain(&'t str),
    /// Base64.
    Data(&'t str),
}

/// The parts of a text in their order.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let (mut rest, mut data) = (text, None);
    std::iter::from_fn(move || {
        if let Some(data) = data.take() {
            return Some(Part::Data(data));
        }
        let Some((start, end)) = first_run(rest.as_bytes()) else {
            let plain = std::mem::take(&mut rest);
            return (!plain.is_empty()).then_some(Part::Plain(plain));
        };
        // Base64 is ASCII, so both ends are character boundaries.
        let (plain, run, after) = (&rest[..start], &rest[start..end], &rest[end..]);
        rest = after;
        if plain.is_empty() {
            return Some(Part::Data(run));
        }
        data = Some(run);
        Some(Part::Plain(plain))
    })
}

/// The text with its base64 runs abbreviated to their beginning and size; `None` if there are none.
pub fn brief(text: &str) -> Option<String> {
    first_run(text.as_bytes())?;
    let mut short = String::new();
    for part in parts(text) {
        match part {
            Part::Plain(plain) => short.push_str(plain),
            Part::Data(data) => short.push_str(&shortened(data)),
        }
    }
    Some(short)
}

/// The abbreviation of base64.
pub(super) fn shortened(data: &str) -> String {
    format!("{}…[{} bytes of base64]", &data[..SHOWN.min(data.len())], data.len())
}

/// The beginnings of image and sound files: they count as data however little variety they have.
const BEGINNINGS: [&[u8]; 10] =
    [b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR", b"Qk0", b"Qk1", b"Qk2", b"Qk3", b"SUQz", b"T2dnUw"];

/// Line lengths of wrapped base64: 64 and 76 by the rules of PEM and MIME (RFC 7468, RFC 2045).
const WRAPPED: std::ops::RangeInclusive<usize> = 60..=128;

/// The first run of base64, which may be wrapped. A run that is long enough has a letter at a multiple of [`LEAST`],
/// or next to it, so most of a text is not read.
fn first_run(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut floor) = (LEAST - 1, 0);
    while at < bytes.len() {
        if is_break(bytes[at]) {
            at += 1;
            continue;
        }
        if !is_letter(bytes[at]) {
            at += LEAST;
            continue;
        }
        let (start, end) = (run_start(bytes, floor, at), run_end(bytes, at));
        let run = &bytes[start..end];
        if run.len() >= LEAST && is_data(run) {
            let filling = bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
            return Some((start, end + filling));
        }
        floor = end;
        at = end + LEAST;
    }
    None
}

/// The start of the run around `at`, not before `floor`.
fn run_start(bytes: &[u8], floor: usize, at: usize) -> usize {
    let line = |end: usize| {
        bytes[floor..end]
            .iter()
            .rposition(|&byte| !is_letter(byte))
            .map_or(floor, |before| floor + before + 1)
    };
    let mut start = line(at);
    loop {
        let before = &bytes[floor..start];
        let text = before.strip_suffix(b"\n").map(|text| text.strip_suffix(b"\r").unwrap_or(text));
        let Some(end) = text.map(|text| floor + text.len()) else { return start };
        let earlier = line(end);
        if !WRAPPED.contains(&(end - earlier)) {
            return start;
        }
        start = earlier;
    }
}

/// The end of the run around `at`.
fn run_end(bytes: &[u8], at: usize) -> usize {
    let letters = |from: usize| bytes[from..].iter().take_while(|&&byte| is_letter(byte)).count();
    let line_start =
        bytes[..at].iter().rev().take(*WRAPPED.end()).take_while(|&&byte| is_letter(byte)).count();
    let mut end = at + letters(at);
    let mut line = line_start + end - at;
    loop {
        let breaks = bytes[end..].iter().take(2).take_while(|&&byte| is_break(byte)).count();
        let more = letters(end + breaks);
        if breaks == 0 || more == 0 || !WRAPPED.contains(&line) {
            return end;
        }
        (line, end) = (more, end + breaks + more);
    }
}

const fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

fn is_data(run: &[u8]) -> bool {
    let seen = run.iter().fold(0_u128, |seen, &byte| seen | 1 << (byte & 127));
    let of = |from: u8, to: u8| (from..=to).any(|byte| seen >> byte & 1 == 1);
    let is_file = || BEGINNINGS.iter().any(|beginning| run.starts_with(beginning));
    is_file() || seen.count_ones() >= VARIED && of(b'A', b'Z') && of(b'a', b'z') && of(b'0', b'9')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data as varied as the bytes of images.
    fn data(bytes: usize) -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..bytes).map(|n| char::from(letters[n * 37 % 64])).collect()
    }

    #[test]
    fn base64_is_shortened_wherever_it_stands() {
        let data = data(1_000);
        let short = format!("{}…[1000 bytes of base64]", &data[..24]);
        assert_eq!(brief(&data), Some(short.clone()));
        for (before, after) in
            [("", "é"), ("data:image/png;base64,", ""), ("größe \"", "\" and more"), ("a b ", " c d")]
        {
            assert_eq!(brief(&format!("{before}{data}{after}")), Some(format!("{before}{short}{after}")));
        }
        assert_eq!(brief(&format!("{data} {data}==")).map(|text| text.matches("bytes of").count()), Some(2));
    }

    #[test]
    fn wrapped_lines_and_uniform_files_are_data() {
        let data = data(1_000);
        for (width, line_end) in [(76, "\n"), (64, "\r\n")] {
            let lines: Vec<&str> =
                data.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
            let wrapped = lines.join(line_end);
            let short = brief(&format!("begin\n{wrapped}\nthe end")).expect("base64");
            assert!(short.starts_with("begin\n") && short.ends_with("bytes of base64]\nthe end"), "{short}");
            assert_eq!(short.matches("bytes of").count(), 1, "{short}");
        }
        let silence = format!("UklGRiQA{}", "A".repeat(5_000));
        assert!(brief(&silence).is_some_and(|short| short.len() < 100));
    }

    #[test]
    fn what_people_write_stays() {
        let plain = [
            "a".repeat(5_000),
            "Ab1".repeat(5_000),
            "0123456789abcdef".repeat(100),
            "The quick brown fox, 17 times. ".repeat(100),
            "äöü".repeat(1_000),
            data(LEAST - 1),
            String::new(),
        ];
        for text in plain {
            assert_eq!(brief(&text), None, "{text}");
        }
    }
}
