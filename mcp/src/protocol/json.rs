//! JSON text read in one pass and without copies: what is looked for is found, the rest is checked and left behind.
//!
//! The reader accepts what serde_json accepts, to any depth, and nests on no stack but its own.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A value as text that is known to be JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a> {
    text: &'a str,
    /// A string with escapes.
    escaped: bool,
}

impl<'a> Json<'a> {
    /// Checks a whole text.
    ///
    /// # Errors
    /// No JSON, or more than one value.
    pub fn parse(text: &'a str) -> Result<Json<'a>, Malformed> {
        let mut reader = Reader::new(text);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Its text, without blanks around it.
    pub fn get(self) -> &'a str {
        self.text
    }

    /// True for `null`.
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// The string that it is; `None` for another type.
    ///
    /// # Errors
    /// An escape that stands for no character.
    pub fn string(self) -> Option<serde_json::Result<Cow<'a, str>>> {
        let inside = self.text.strip_prefix('"')?;
        Some(match self.escaped {
            false => Ok(Cow::Borrowed(inside.strip_suffix('"').unwrap_or(inside))),
            true => serde_json::from_str::<String>(self.text).map(Cow::Owned),
        })
    }

    /// The value as a type of ours.
    ///
    /// # Errors
    /// Another type.
    pub fn decode<T: Deserialize<'a>>(self) -> serde_json::Result<T> {
        serde_json::from_str(self.text)
    }

    /// Its type, as messages name it.
    pub fn type_name(self) -> &'static str {
        match self.text.as_bytes().first() {
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b't' | b'f') => "boolean",
            Some(b'n') => "null",
            _ if self.text.contains(['.', 'e', 'E']) => "number",
            _ => "integer",
        }
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Json<'a> {
        let text = raw.get();
        Json { text, escaped: text.starts_with('"') && text.contains('\\') }
    }
}

/// What is left to read of a text.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The beginning of a text.
    pub fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    /// The first byte of the next value.
    pub fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Nothing but blanks is left.
    ///
    /// # Errors
    /// Something else is.
    pub fn end(&mut self) -> Result<(), Malformed> {
        if self.peek().is_none() { Ok(()) } else { Err(Malformed) }
    }

    /// Reads an object; `member` reads the value of each key. Gives its text.
    ///
    /// # Errors
    /// Something else, or what `member` finds.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Reader<'a>, Cow<'a, str>) -> Result<(), Malformed>,
    ) -> Result<Json<'a>, Malformed> {
        self.blanks();
        let start = self.at;
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return self.since(start, false);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(Malformed);
            }
            let key = self.string()?.string().and_then(Result::ok).ok_or(Malformed)?;
            self.blanks();
            self.take(b':')?;
            member(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.since(start, false);
                }
                _ => return Err(Malformed),
            }
        }
    }

    /// Reads an object for its members of these names, each by `read`, which is told which one it is. Gives their
    /// values, those of other names left out, and the first name that was there twice.
    ///
    /// # Errors
    /// As [`Reader::object`].
    pub fn members<const N: usize>(
        &mut self,
        names: &[&'static str; N],
        mut read: impl FnMut(&mut Reader<'a>, usize) -> Result<Json<'a>, Malformed>,
    ) -> Result<Members<'a, N>, Malformed> {
        let mut members = Members { values: [None; N], twice: None };
        self.object(|reader, key| {
            let Some(place) = names.iter().position(|name| *name == key) else {
                return reader.value().map(|_| ());
            };
            if members.values[place].replace(read(reader, place)?).is_some() {
                members.twice.get_or_insert(names[place]);
            }
            Ok(())
        })?;
        Ok(members)
    }

    /// Reads any value.
    ///
    /// # Errors
    /// No JSON.
    pub fn value(&mut self) -> Result<Json<'a>, Malformed> {
        self.blanks();
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            // A value begins here.
            match self.peek().ok_or(Malformed)? {
                b'"' => {
                    let string = self.string()?;
                    if nesting.is_empty() {
                        return Ok(string);
                    }
                }
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = open == b'{';
                    if self.peek() != Some(if is_object { b'}' } else { b']' }) {
                        nesting.push(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // A value has ended here, and perhaps what it is in.
            loop {
                let Some(is_object) = nesting.last() else { return self.since(start, false) };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(close) if close == if is_object { b'}' } else { b']' } => {
                        self.at += 1;
                        nesting.pop();
                    }
                    _ => return Err(Malformed),
                }
            }
        }
    }

    /// The value between here and where the other reader is.
    pub(super) fn until(&mut self, other: &Reader<'a>) -> Result<Json<'a>, Malformed> {
        self.blanks();
        other.since(self.at, false)
    }

    fn since(&self, start: usize, escaped: bool) -> Result<Json<'a>, Malformed> {
        // Values begin and end with ASCII.
        self.text.get(start..self.at).map(|text| Json { text, escaped }).ok_or(Malformed)
    }

    #[inline]
    fn blanks(&mut self) {
        // Every blank is below what may stand elsewhere between tokens, so one comparison says that there is none.
        while let Some(&byte) = self.text.as_bytes().get(self.at)
            && byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.text.as_bytes().get(self.at) != Some(&byte) {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }

    fn key(&mut self) -> Result<(), Malformed> {
        if self.peek() != Some(b'"') {
            return Err(Malformed);
        }
        self.string()?;
        self.blanks();
        self.take(b':')
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Malformed> {
        if !self.rest().starts_with(word) {
            return Err(Malformed);
        }
        self.at += word.len();
        Ok(())
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// The quote is next.
    #[inline]
    fn string(&mut self) -> Result<Json<'a>, Malformed> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at += plain_length(self.rest());
            match self.rest() {
                [b'"', ..] => {
                    self.at += 1;
                    return self.since(start, escaped);
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 2,
                [b'\\', b'u', hex @ ..]
                    if hex.iter().take(4).filter(|byte| byte.is_ascii_hexdigit()).count() == 4 =>
                {
                    self.at += 6;
                }
                _ => return Err(Malformed),
            }
            escaped = true;
        }
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count > 0 { Ok(()) } else { Err(Malformed) }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        if self.rest().first() == Some(&b'-') {
            self.at += 1;
        }
        if self.rest().first() == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.rest().first() == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest() {
            self.at += 1 + usize::from(matches!(rest.first(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }
}

/// Members of an object by the places of their names.
#[derive(Clone, Debug)]
pub struct Members<'a, const N: usize> {
    /// The last value of each name.
    pub values: [Option<Json<'a>>; N],
    /// A name that was there more than once.
    pub twice: Option<&'static str>,
}

/// What is open around a value: objects and arrays, a bit each, the innermost lowest.
#[derive(Default)]
struct Nesting {
    bits: u64,
    depth: usize,
    /// Full words of the outer levels.
    outer: Vec<u64>,
}

impl Nesting {
    const WORD: usize = u64::BITS as usize;

    fn is_empty(&self) -> bool {
        self.depth == 0
    }

    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(Self::WORD) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.depth += 1;
    }

    /// Whether the innermost is an object.
    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(Self::WORD) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }
}

/// How many bytes of a text are neither quote nor backslash nor control characters, eight at a time.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    /// The high bit of the lowest byte that is zero; bits above it mean nothing.
    fn zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let found = control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && !matches!(byte, b'"' | b'\\');
    at + text.get(at..).unwrap_or_default().iter().take_while(is_plain).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IgnoredAny;

    /// Flips, drops and doubles bytes of good texts, in a fixed sequence.
    #[test]
    fn it_accepts_what_serde_json_accepts() {
        let good = [
            r#"{"a":[1,-2.5e+3,0,{"b":null,"":[]}],"c\u0041\n":"x\"y\\","d":{} , "e":[true,false]}"#,
            "\"ä longer text with \\\\ escapes \\u12aB and é ends\"",
            " [ 0.5 , 1E9 , [[[[ ]]]] , {\"k\" : {\"k\":0}} ] ",
            "-0",
        ];
        let mut seed = 7_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below.max(1)
        };
        let mut accepted = 0;
        for round in 0..40_000 {
            let mut text = good[round % good.len()].as_bytes().to_vec();
            for _ in 0..random(4) {
                let place = random(text.len());
                match random(4) {
                    0 => text[place] = random(128) as u8,
                    1 if text.len() > 1 => drop(text.remove(place)),
                    2 => text.insert(place, b"{}[]\",:0-eE+.\\u1 \n"[random(18)]),
                    _ => text.truncate(place.max(1)),
                }
            }
            let Ok(text) = std::str::from_utf8(&text) else { continue };
            let expected = serde_json::from_str::<IgnoredAny>(text).is_ok();
            assert_eq!(Json::parse(text).is_ok(), expected, "{text:?}");
            if let (true, Ok(string)) = (expected, serde_json::from_str::<String>(text)) {
                let read = Json::parse(text).expect("JSON").string().expect("a string").expect("characters");
                assert_eq!(read, string);
            }
            accepted += usize::from(expected);
        }
        assert!(accepted > 1_000, "{accepted}");
    }

    #[test]
    fn nothing_nests_too_deeply() {
        for depth in [1, 63, 64, 65, 128, 129, 100_000] {
            let text = format!("{}{}", "[{\"a\":".repeat(depth) + "1", "}]".repeat(depth));
            assert_eq!(Json::parse(&text).map(Json::get), Ok(&*text));
            assert_eq!(Json::parse(&text[..text.len() - 1]), Err(Malformed));
            assert_eq!(Json::parse(&text.replacen("}]", "]}", 1)), Err(Malformed));
        }
    }

    #[test]
    fn members_are_found_and_others_left_behind() {
        let mut reader = Reader::new(r#" {"a":1,"x":{"a":[2]},"\u0062":"t","a":null} "#);
        let Members { values: [a, b, c], twice } =
            reader.members(&["a", "b", "c"], |reader, _| reader.value()).expect("an object");
        assert_eq!(
            (a.map(Json::get), b.map(Json::get), c, twice),
            (Some("null"), Some("\"t\""), None, Some("a"))
        );
        assert_eq!(reader.end(), Ok(()));
    }
}
