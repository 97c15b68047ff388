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

/// The first run of base64. Any run that is long enough has a letter at each multiple of [`LEAST`], so most of a text
/// is not looked at.
fn first_run(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut at = LEAST - 1;
    while at < bytes.len() {
        if !is_letter(bytes[at]) {
            at += LEAST;
            continue;
        }
        let start = bytes[..at].iter().rposition(|&byte| !is_letter(byte)).map_or(0, |before| before + 1);
        let run = bytes[start..].iter().take_while(|&&byte| is_letter(byte)).count();
        let end = start + run;
        if run >= LEAST && is_data(&bytes[start..end]) {
            let filling = bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
            return Some((start, end + filling));
        }
        at = end + LEAST;
    }
    None
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

fn is_data(run: &[u8]) -> bool {
    let seen = run.iter().fold(0_u128, |seen, &byte| seen | 1 << (byte & 127));
    let of = |from: u8, to: u8| (from..=to).any(|byte| seen >> byte & 1 == 1);
    seen.count_ones() >= VARIED && of(b'A', b'Z') && of(b'a', b'z') && of(b'0', b'9')
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
