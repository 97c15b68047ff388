//! Normalizes text by undoing escapes, quotes and line breaks, so that a secret is found however it was escaped, and
//! maps matches back to the original text.
//!
//! A secret may come back as it is, or inside a JSON string, a `pr-str` text, a URL, a text with its line breaks turned
//! to blanks, or several of these inside one another. Instead of listing all such forms, text and secret are both
//! brought into one form in which they are equal: escapes are decoded however often they were applied, and backslashes,
//! blanks, line breaks, other control characters, `+` and `'` are left out. Texts that differ only in these count as
//! equal, which hardly makes a secret match by chance.

/// Receives canonical bytes.
pub(super) trait Sink {
    /// One canonical byte, from `start..end` of the text.
    fn push(&mut self, byte: u8, start: usize, end: usize);

    /// Bytes that are canonical as they are, from `start` on.
    fn run(&mut self, bytes: &[u8], start: usize);
}

/// Collects the bytes alone.
impl Sink for Vec<u8> {
    fn push(&mut self, byte: u8, _: usize, _: usize) {
        Vec::push(self, byte);
    }

    fn run(&mut self, bytes: &[u8], _: usize) {
        self.extend_from_slice(bytes);
    }
}

/// Finds where some canonical bytes lie in the text. It is separate because few are wanted, and the text may
/// be long.
struct RangeFinder<'w> {
    /// Indices of the wanted canonical bytes, ascending.
    wanted: &'w [usize],
    /// Canonical bytes so far.
    count: usize,
    places: Vec<(usize, usize)>,
}

impl Sink for RangeFinder<'_> {
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

/// The ranges in a text of the canonical bytes with these ascending indices.
pub(super) fn ranges_of(text: &[u8], wanted: &[usize]) -> Vec<(usize, usize)> {
    let mut sink = RangeFinder { wanted, count: 0, places: Vec::with_capacity(wanted.len()) };
    write(text, &mut sink);
    sink.places
}

/// Bytes that are not canonical as they are.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_left_out(byte as u8) || matches!(byte as u8, b'\\' | b'%' | b'&');
        byte += 1;
    }
    table
};

/// Blanks and line breaks (joined or encoded), `+` (a blank in a URL), `'` (doubled or split by quoting).
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

/// Writes the unit that begins at a special byte; returns the position after it.
fn write_unit(text: &[u8], start: usize, sink: &mut impl Sink) -> usize {
    let DecodedUnit { bytes, length, end } = unit(text, start, DEEPEST);
    for &byte in &bytes[..length] {
        if !is_left_out(byte) {
            sink.push(byte, start, end);
        }
    }
    end
}

/// How many encodings inside the digits of another are followed: `%25%34%30` is `%40`, which is `@`.
const DEEPEST: u32 = 4;

/// A decoded unit of a text: the bytes of one character, or nothing, and the position after it.
#[derive(Clone, Copy)]
struct DecodedUnit {
    bytes: [u8; 4],
    length: usize,
    end: usize,
}

impl DecodedUnit {
    const fn nothing(end: usize) -> DecodedUnit {
        DecodedUnit { bytes: [0; 4], length: 0, end }
    }

    const fn byte(byte: u8, end: usize) -> DecodedUnit {
        DecodedUnit { bytes: [byte, 0, 0, 0], length: 1, end }
    }

    fn character(code: u32, end: usize) -> DecodedUnit {
        let mut unit = DecodedUnit::nothing(end);
        if let Some(character) = char::from_u32(code) {
            unit.length = character.encode_utf8(&mut unit.bytes).len();
        }
        unit
    }

    /// Its byte, if it is exactly one.
    fn single(&self) -> Option<u8> {
        (self.length == 1).then_some(self.bytes[0])
    }
}

/// The unit at a position. A decoded character may begin another encoding: that is followed, with the text
/// after it.
///
/// `escaped`: one or more backslashes come before; `pending`: a backslash that was itself encoded, so what
/// follows it counts as escaped.
fn unit(text: &[u8], at: usize, depth: u32) -> DecodedUnit {
    let (mut lead, mut at) = (text[at], at + 1);
    let (mut escaped, mut pending) = (false, false);
    loop {
        if lead == b'\\' {
            let Some(&next) = text.get(at) else { return DecodedUnit::nothing(at) };
            (escaped, lead, at) = (true, next, at + 1);
            continue;
        }
        let by_escape = escaped && matches!(lead, b'u' | b'U' | b'x' | b'0'..=b'3');
        let decoded = match lead {
            b'%' if depth > 0 => percent(text, at, depth),
            b'&' => entity(text, at),
            b'u' if escaped => code_point(text, at, depth),
            b'U' if escaped => {
                digits(text, at, 8, 16, depth).map(|(code, end)| DecodedUnit::character(code, end))
            }
            _ if by_escape => bytes(text, lead, at, depth),
            _ => None,
        };
        let Some(unit) = decoded else { return last(lead, at, escaped) };
        let counts_as_escaped = if by_escape { std::mem::take(&mut pending) } else { escaped };
        match unit.single() {
            Some(b'\\') => (pending, escaped, lead, at) = (true, true, b'\\', unit.end),
            Some(byte) if counts_as_escaped || matches!(byte, b'%' | b'&') => {
                (escaped, lead, at) = (counts_as_escaped, byte, unit.end);
            }
            _ => return unit,
        }
    }
}

/// A byte that begins no encoding.
fn last(byte: u8, end: usize, escaped: bool) -> DecodedUnit {
    match byte {
        b'n' | b't' | b'r' | b'b' | b'f' if escaped => DecodedUnit::nothing(end),
        byte => DecodedUnit::byte(byte, end),
    }
}

/// The number with `count` digits, each of which may itself be encoded, and the position after them.
fn digits(text: &[u8], mut at: usize, count: usize, radix: u32, depth: u32) -> Option<(u32, usize)> {
    let mut value = 0;
    for _ in 0..count {
        let digit = match *text.get(at)? {
            b'%' | b'&' | b'\\' if depth > 0 => unit(text, at, depth - 1),
            byte => DecodedUnit::byte(byte, at + 1),
        };
        // Eight hexadecimal digits are 32 bits.
        value = value * radix + char::from(digit.single()?).to_digit(radix)?;
        at = digit.end;
    }
    Some((value, at))
}

/// What follows a percent sign: two hexadecimal digits of a byte, or `u` and four digits of a UTF-16 unit.
fn percent(text: &[u8], at: usize, depth: u32) -> Option<DecodedUnit> {
    if text.get(at) == Some(&b'u') {
        return utf16(text, at + 1, depth, percent_unit);
    }
    let (byte, end) = digits(text, at, 2, 16, depth)?;
    Some(DecodedUnit::byte(byte as u8, end))
}

/// Where the digits of `%uXXXX` begin. The percent sign may be percent-encoded itself, any number of times.
fn percent_unit(text: &[u8]) -> Option<usize> {
    let encoded = text.strip_prefix(b"%")?.chunks_exact(2).take_while(|pair| *pair == b"25").count();
    let unit = 1 + 2 * encoded;
    (text.get(unit) == Some(&b'u')).then_some(unit + 1)
}

/// Length of the longest name in [`named`].
pub(super) const LONGEST_NAME: usize = 16;

/// The ASCII character with this HTML name (WHATWG HTML, section 13.5). The hyphen of ASCII has no name, so the
/// names of U+2010 stand for it.
fn named(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"Tab" => b'\t',
        b"NewLine" => b'\n',
        b"excl" => b'!',
        b"quot" | b"QUOT" => b'"',
        b"num" => b'#',
        b"dollar" => b'$',
        b"percnt" => b'%',
        b"amp" | b"AMP" => b'&',
        b"apos" => b'\'',
        b"lpar" => b'(',
        b"rpar" => b')',
        b"ast" | b"midast" => b'*',
        b"plus" => b'+',
        b"comma" => b',',
        b"hyphen" | b"dash" => b'-',
        b"period" => b'.',
        b"sol" => b'/',
        b"colon" => b':',
        b"semi" => b';',
        b"lt" | b"LT" => b'<',
        b"equals" => b'=',
        b"gt" | b"GT" => b'>',
        b"quest" => b'?',
        b"commat" => b'@',
        b"lsqb" | b"lbrack" => b'[',
        b"bsol" => b'\\',
        b"rsqb" | b"rbrack" => b']',
        b"Hat" => b'^',
        b"lowbar" | b"UnderBar" => b'_',
        b"grave" | b"DiacriticalGrave" => b'`',
        b"lcub" | b"lbrace" => b'{',
        b"verbar" | b"vert" | b"VerticalLine" => b'|',
        b"rcub" | b"rbrace" => b'}',
        _ => return None,
    })
}

/// The HTML character after an ampersand, by name or number.
fn entity(text: &[u8], at: usize) -> Option<DecodedUnit> {
    let rest = &text[at..];
    let length = rest.iter().take(LONGEST_NAME + 1).position(|byte| !byte.is_ascii_alphanumeric())?;
    if rest[length] == b';' {
        return Some(DecodedUnit::byte(named(&rest[..length])?, at + length + 1));
    }
    let digits = rest.strip_prefix(b"#")?;
    let (digits, radix, before) = match digits {
        [b'x' | b'X', digits @ ..] => (digits, 16, 2),
        digits => (digits, 10, 1),
    };
    let length = digits.iter().take(8).position(|&byte| byte == b';').filter(|&length| length > 0)?;
    let digits = std::str::from_utf8(&digits[..length]).ok()?;
    let code = u32::from_str_radix(digits, radix).ok()?;
    Some(DecodedUnit::character(code, at + before + length + 1))
}

/// The bytes of a character that is escaped byte by byte, as in `\xc3\xa4` or `\303\244`; else the character
/// of this number.
fn bytes(text: &[u8], lead: u8, at: usize, depth: u32) -> Option<DecodedUnit> {
    let (first, mut end) = escaped_byte(text, lead, at, depth)?;
    let more = match first {
        0xC2..=0xDF => 1,
        0xE0..=0xEF => 2,
        0xF0..=0xF4 => 3,
        _ => return Some(DecodedUnit::character(u32::from(first), end)),
    };
    let alone = DecodedUnit::character(u32::from(first), end);
    let mut unit = DecodedUnit::byte(first, end);
    for place in 1..=more {
        let slashes = text[end..].iter().take_while(|&&byte| byte == b'\\').count();
        let lead = text.get(end + slashes).filter(|_| slashes > 0);
        let next = lead.and_then(|&lead| escaped_byte(text, lead, end + slashes + 1, depth));
        let Some((byte, after)) = next.filter(|(byte, _)| (0x80..0xC0).contains(byte)) else {
            return Some(alone);
        };
        unit.bytes[place] = byte;
        end = after;
    }
    Some(DecodedUnit { length: more + 1, end, ..unit })
}

/// A byte as `x` and two hexadecimal digits, or as three octal ones that begin with `lead`.
fn escaped_byte(text: &[u8], lead: u8, at: usize, depth: u32) -> Option<(u8, usize)> {
    let (value, end) = match lead {
        b'x' => digits(text, at, 2, 16, depth)?,
        b'0'..=b'3' => {
            let (rest, end) = digits(text, at, 2, 8, depth)?;
            (u32::from(lead - b'0') * 64 + rest, end)
        }
        _ => return None,
    };
    Some((value as u8, end))
}

/// The character after `\u`: four digits, two times four for a surrogate pair, or digits in braces.
fn code_point(text: &[u8], at: usize, depth: u32) -> Option<DecodedUnit> {
    if text.get(at) == Some(&b'{') {
        let length =
            text[at + 1..].iter().take(7).position(|&byte| byte == b'}').filter(|&length| length > 0)?;
        let (code, end) = digits(text, at + 1, length, 16, 0)?;
        return Some(DecodedUnit::character(code, end + 1));
    }
    utf16(text, at, depth, |text| {
        let slashes = text.iter().take_while(|&&byte| byte == b'\\').count();
        (slashes > 0 && text.get(slashes) == Some(&b'u')).then_some(slashes + 1)
    })
}

/// The character whose UTF-16 unit has these four digits. `second` finds where the digits of the second unit of a
/// surrogate pair begin.
fn utf16(text: &[u8], at: usize, depth: u32, second: impl Fn(&[u8]) -> Option<usize>) -> Option<DecodedUnit> {
    let (high, end) = digits(text, at, 4, 16, depth)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some(DecodedUnit::character(high, end));
    }
    let low = second(&text[end..])
        .and_then(|start| digits(text, end + start, 4, 16, depth))
        .filter(|(code, _)| (0xDC00..0xE000).contains(code));
    Some(match low {
        Some((code, end)) => DecodedUnit::character(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00), end),
        None => DecodedUnit::character(high, end),
    })
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
        same("a<b>&\"c\"'", "a&lt;b&gt;&amp;&quot;c&quot;&#39;");
        same("a<b&c", "a&#60;b&#x26;c");
        same("pä-😀%", "p%u00e4%u002D%ud83d%uDE00%u0025");
        same("pä-😀", "p%25u00e4-%25ud83d%25uDE00");
        same("a/b:c=d@e.f_g-h", "a&sol;b&colon;c&equals;d&commat;e&period;f&lowbar;g&hyphen;h");
        same(
            "!#$%^()[]{}|`",
            "&excl;&num;&dollar;&percnt;&Hat;&lpar;&rpar;&lsqb;&rsqb;&lcub;&rcub;&vert;&grave;",
        );
        same("100%41", "100&percnt;4&#49;");
        same("a<b&c", "a&amp;lt;b&amp;amp;c");
        same("a<b", r"a\u0026lt;b");
        same("pä-😀", r"p\xc3\xa4-\xf0\x9f\x98\x80");
        same("pä-😀", r"p\303\244-\360\237\230\200");
        same("pä", r"p\\xc3\\xa4");
        same("pä", r"p\xe4");
        same("pä-😀", r"p\U000000e4-\U0001f600");
        same("p%40ss", "p%25%34%30ss");
        same("p%40ss", r"p\u0025\u0034\u0030ss");
        same("p%40ss", "p@ss");
        same("\\back\\nslash", "%5C%62%61%63%6B%5C%6E%73lash");
        same("\\back\\nslash", r"\u005c\u0062\u0061ck\u005c\u006eslash");
        same("\\\\\\\\\\\\nx", r"\u005c\u005c\u005c\u005c\u005c\u005c\u006ex");
        same("q\"\\%41", r"\x71\x22\x5c\x25\x34\x31");
    }

    #[test]
    fn places_cover_whole_escapes() {
        let text = r#"x\"\u00e9\ud83d\ude00%41"#;
        assert_eq!(String::from_utf8_lossy(&canonical(text.as_bytes())), "x\"é😀A");
        let all: Vec<usize> = (0..9).collect();
        let expected = [(0, 1), (1, 3), (3, 9), (3, 9), (9, 21), (9, 21), (9, 21), (9, 21), (21, 24)];
        assert_eq!(ranges_of(text.as_bytes(), &all), expected);
        assert_eq!(ranges_of(text.as_bytes(), &[1, 3, 8]), [expected[1], expected[3], expected[8]]);
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
            "%25%",
            "%%%%%%%%",
            "&",
            "&#",
            "&#x;",
            "&#x110000;",
            "&s",
            "&nosuchname;",
            "&;",
            "%u",
            "%u00e",
            "%ud83d%u",
            "%ud83d%25",
            "\\\\&",
            "\\U0001f60",
            "\\Uffffffff",
            "\\xc3",
            "\\xc3\\",
            "\\303\\2",
        ] {
            canonical(text.as_bytes());
        }
        same("100%25", "100%2525");
    }
}
