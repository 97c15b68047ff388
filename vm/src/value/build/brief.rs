//! Base64 inside texts: thousands of letters that nobody reads.

/// The shortest run of base64 letters that is taken for data: names and words are shorter.
pub(super) const LEAST: usize = 256;

/// Letters of it that are shown: enough to know an image or a sound by.
const SHOWN: usize = 24;

/// Different letters that data has at least, whatever it is: `(repeat 1000 "Ab1")` has three.
const VARIED: u32 = 16;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// As it is.
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
        // What is base64 is ASCII, and so is where it begins and ends.
        let (plain, run, after) = (&rest[..start], &rest[start..end], &rest[end..]);
        rest = after;
        if plain.is_empty() {
            return Some(Part::Data(run));
        }
        data = Some(run);
        Some(Part::Plain(plain))
    })
}

/// A text with what is base64 in it shortened to its beginning and its size; `None` when there is none.
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

/// What stands for base64.
pub(super) fn shortened(data: &str) -> String {
    format!("{}…[{} bytes of base64]", &data[..SHOWN.min(data.len())], data.len())
}

/// What files of pictures and sounds begin with: they are data however little is in them.
const BEGINNINGS: [&[u8]; 10] =
    [b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR", b"Qk0", b"Qk1", b"Qk2", b"Qk3", b"SUQz", b"T2dnUw"];

/// Letters in a line of base64 that is wrapped: 64 and 76 by the rules of PEM and MIME (RFC 7468, RFC 2045).
const WRAPPED: std::ops::RangeInclusive<usize> = 60..=128;

/// The first run of base64, which may be wrapped. Any run that is long enough has a letter at each multiple of [`LEAST`],
/// or beside it, so most of a text is not looked at.
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

/// Where the run around `at` begins, not before `floor`.
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

/// Where the run around `at` ends.
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

    /// As varied as what is in images.
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
