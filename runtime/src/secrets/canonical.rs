//! Text without what escaping, quoting and joining do to it.
//!
//! A secret comes back as it is, or inside a JSON string, a `pr-str` text, an URL, a line with its breaks made
//! blanks, or several of these around one another. Instead of listing all such forms, text and secret are both
//! brought into one form in which they are equal: escapes are decoded however often they were applied, and
//! backslashes, blanks, breaks, other control characters, `+` and `'` are left out. What differs only in these
//! counts as the same, which makes a secret no easier to meet by chance.

/// Where canonical bytes go.
pub(super) trait Sink {
    /// One byte that the text has at `start..end`.
    fn push(&mut self, byte: u8, start: usize, end: usize);

    /// Bytes that stand for themselves, from `start` on.
    fn run(&mut self, bytes: &[u8], start: usize);
}

/// The bytes alone.
impl Sink for Vec<u8> {
    fn push(&mut self, byte: u8, _: usize, _: usize) {
        Vec::push(self, byte);
    }

    fn run(&mut self, bytes: &[u8], _: usize) {
        self.extend_from_slice(bytes);
    }
}

/// Where some of the bytes stand in the text: what was found is little, and the text may be long.
struct Places<'w> {
    /// Indices of canonical bytes, rising.
    wanted: &'w [usize],
    /// Bytes so far.
    count: usize,
    places: Vec<(usize, usize)>,
}

impl Sink for Places<'_> {
    fn push(&mut self, _: u8, start: usize, end: usize) {
        if self.wanted.get(self.places.len()) == Some(&self.count) {
            self.places.push((start, end));
        }
        self.count += 1;
    }

    fn run(&mut self, bytes: &[u8], start: usize) {
        let end = self.count + bytes.len();
        while let Some(&wanted) = self.wanted.get(self.places.len()).filter(|&&wanted| wanted < end) {
            let at = start + (wanted - self.count);
            self.places.push((at, at + 1));
        }
        self.count = end;
    }
}

/// The canonical bytes of a text.
pub(super) fn canonical(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    write(text, &mut bytes);
    bytes
}

/// Where the canonical bytes with these rising indices stand in a text.
pub(super) fn places(text: &[u8], wanted: &[usize]) -> Vec<(usize, usize)> {
    let mut sink = Places { wanted, count: 0, places: Vec::with_capacity(wanted.len()) };
    write(text, &mut sink);
    sink.places
}

/// Bytes that do not simply stand for themselves.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_left_out(byte as u8) || byte as u8 == b'\\' || byte as u8 == b'%';
        byte += 1;
    }
    table
};

/// Blanks and breaks (joined or encoded), `+` (a blank in an URL), `'` (doubled and broken up by quoting).
const fn is_left_out(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || byte == b'+' || byte == b'\''
}

fn write(text: &[u8], sink: &mut impl Sink) {
    let mut at = 0;
    while at < text.len() {
        let run = text[at..].iter().position(|&byte| SPECIAL[byte as usize]).unwrap_or(text.len() - at);
        sink.run(&text[at..at + run], at);
        at += run;
        if at < text.len() {
            at = write_unit(text, at, sink);
        }
    }
}

/// Writes what begins at a special byte; gives the place after it.
fn write_unit(text: &[u8], start: usize, sink: &mut impl Sink) -> usize {
    let (byte, after) = decoded(text, start);
    match byte {
        b'\\' => write_escape(text, start, after, sink),
        byte => {
            put(byte, start, after, sink);
            after
        }
    }
}

fn put(byte: u8, start: usize, end: usize, sink: &mut impl Sink) {
    if !is_left_out(byte) {
        sink.push(byte, start, end);
    }
}

/// The byte at a place, percent-encoded any number of times or not at all, and the place after it.
fn decoded(text: &[u8], at: usize) -> (u8, usize) {
    match text[at] {
        b'%' => percent(text, at + 1),
        byte => (byte, at + 1),
    }
}

/// What a percent sign with this behind it stands for.
fn percent(text: &[u8], mut at: usize) -> (u8, usize) {
    while text[at..].starts_with(b"25") && hex(text, at + 2, 2).is_some() {
        at += 2;
    }
    match hex(text, at, 2) {
        // Two hexadecimal digits are a byte.
        Some(byte) => (byte as u8, at + 2),
        None => (b'%', at),
    }
}

/// Backslashes and the escape behind them: each level of escaping only makes them more.
fn write_escape(text: &[u8], start: usize, after: usize, sink: &mut impl Sink) -> usize {
    let mut at = after;
    loop {
        if at >= text.len() {
            return at;
        }
        let (byte, after) = decoded(text, at);
        let code = match byte {
            b'\\' => {
                at = after;
                continue;
            }
            b'n' | b't' | b'r' | b'b' | b'f' => return after,
            b'u' => code_point(text, after),
            b'x' => hex(text, after, 2).map(|code| (code, after + 2)),
            _ => None,
        };
        match code {
            // An escaped backslash is one more of them, and so is what an escaped percent sign makes of one.
            Some((0x5c, end)) => at = end,
            Some((0x25, end)) => match percent(text, end) {
                (b'\\', end) => at = end,
                (byte, end) => {
                    put(byte, start, end, sink);
                    return end;
                }
            },
            Some((code, end)) => {
                if let Some(character) = char::from_u32(code) {
                    let mut buffer = [0; 4];
                    for &byte in character.encode_utf8(&mut buffer).as_bytes() {
                        put(byte, start, end, sink);
                    }
                }
                return end;
            }
            None => {
                put(byte, start, after, sink);
                return after;
            }
        }
    }
}

/// The code point behind `\u`: four digits, two times four with a surrogate pair, or digits in braces.
fn code_point(text: &[u8], at: usize) -> Option<(u32, usize)> {
    if text.get(at) == Some(&b'{') {
        let length = text[at + 1..].iter().take(7).position(|&byte| byte == b'}')?;
        return Some((hex(text, at + 1, length)?, at + length + 2));
    }
    let (high, end) = (hex(text, at, 4)?, at + 4);
    if !(0xD800..0xDC00).contains(&high) {
        return Some((high, end));
    }
    let slashes = text[end..].iter().take_while(|&&byte| byte == b'\\').count();
    let low = end + slashes + 1;
    match hex(text, low, 4) {
        Some(code @ 0xDC00..0xE000) if slashes > 0 && text[low - 1] == b'u' => {
            Some((0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00), low + 4))
        }
        _ => Some((high, end)),
    }
}

fn hex(text: &[u8], at: usize, digits: usize) -> Option<u32> {
    let text = text.get(at..at + digits).filter(|text| !text.is_empty())?;
    text.iter().try_fold(0, |value, &byte| Some(value << 4 | (byte as char).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: &str, right: &str) {
        let text = |text: &str| String::from_utf8_lossy(&canonical(text.as_bytes())).into_owned();
        assert_eq!(text(left), text(right), "{left} and {right}");
    }

    #[test]
    fn escapes_of_any_depth_are_the_text_itself() {
        same("a\"b\\c\nd\té😀", r#"a\"b\\c\nd\té😀"#);
        same("a\"b\\c\nd\té😀", r#"a\\\"b\\\\c\\nd\\t\\u00e9\\uD83D\\ude00"#);
        same("a\"b\\c\nd\té😀", "a\"b\\c d é😀");
        same("a\"b\\c\nd\té😀", r#"a\"b\\c\nd\t\u{e9}\u{1f600}"#);
        same("C:\\new\\table", "C%3A%5Cnew%5ctable");
        same("C:\\new\\table", r"C:\\\\new\\\\table");
        same("a/b+c d%e", "a%2Fb%2bc+d%25e");
        same("a/b c d%41", "a\\/b%20c%2520d%2541");
        same("it's", "'it'\\''s'");
        same(r"a\u005cnb", r"a\nb");
        same("100%41%5Cnb", r"100\u002541\u00255Cnb");
    }

    #[test]
    fn places_cover_whole_escapes() {
        let text = r#"x\"\u00e9\ud83d\ude00%41"#;
        assert_eq!(String::from_utf8_lossy(&canonical(text.as_bytes())), "x\"é😀A");
        let all: Vec<usize> = (0..9).collect();
        let expected = [(0, 1), (1, 3), (3, 9), (3, 9), (9, 21), (9, 21), (9, 21), (9, 21), (21, 24)];
        assert_eq!(places(text.as_bytes(), &all), expected);
        assert_eq!(places(text.as_bytes(), &[1, 3, 8]), [expected[1], expected[3], expected[8]]);
    }

    #[test]
    fn what_ends_early_is_no_escape() {
        for text in [
            "\\",
            "%",
            "%4",
            "\\u",
            "\\u00e",
            "\\ud83d",
            "\\ud83d\\",
            "\\u{",
            "\\u{}",
            "\\x4",
            "%25",
            "%2",
            "%252",
        ] {
            canonical(text.as_bytes());
        }
        same("100%25", "100%2525");
    }
}
