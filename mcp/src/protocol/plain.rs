//! The most frequent requests, read in one pass: a `tools/call` of `lisp_eval` with a program, and metadata
//! that changes nothing about the answer but its envelope.
//!
//! It says less than the general reader, never something else: whatever is not plain beyond doubt (other
//! members, log levels, escapes in names, repeated keys, malformed text) is left to [`super::frame`].

use super::frame::Id;
use super::version::{Era, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, Version};
use std::borrow::Cow;

/// A call without context or schema.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainCall<'a> {
    /// JSON text of the id: an integer, or a string without escapes.
    id: &'a [u8],
    /// Source text.
    pub program: Cow<'a, str>,
    /// What its metadata says.
    pub era: Era,
}

impl<'a> PlainCall<'a> {
    /// Reads a line; `None` means that the general reader has to look at it.
    pub fn read(line: &'a [u8]) -> Option<PlainCall<'a>> {
        let mut scanner = Scanner { rest: line };
        let call = scanner.request()?;
        scanner.blanks();
        scanner.rest.is_empty().then_some(call)
    }

    /// The JSON text of the id, to be echoed.
    pub fn id(&self) -> &'a [u8] {
        self.id
    }

    /// The id, to be kept.
    pub fn to_id(&self) -> Id {
        // Its text is ASCII.
        Id::from_plain(std::str::from_utf8(self.id).unwrap_or_default())
    }
}

/// A member as clients write it: its key, its value, and both without blanks, which is how most write it.
macro_rules! member {
    ($key:literal, $value:literal) => {
        (
            concat!("\"", $key, "\":\"", $value, "\"").as_bytes(),
            concat!("\"", $key, "\"").as_bytes(),
            concat!("\"", $value, "\"").as_bytes(),
        )
    };
}

/// [`member`] without blanks, with its key and with its value.
type Member = (&'static [u8], &'static [u8], &'static [u8]);

const JSONRPC: Member = member!("jsonrpc", "2.0");
const METHOD: Member = member!("method", "tools/call");
/// The value is [`crate::tool::LISP_EVAL`].
const NAME: Member = member!("name", "lisp_eval");

/// What is left to read.
struct Scanner<'a> {
    rest: &'a [u8],
}

/// How deep metadata that is skipped may nest.
const DEPTH: u32 = 8;

impl<'a> Scanner<'a> {
    fn request(&mut self) -> Option<PlainCall<'a>> {
        let (mut version, mut id, mut method, mut params) = (None, None, None, None);
        self.object(|scanner| {
            if scanner.member(JSONRPC)? {
                fill(&mut version, ())
            } else if scanner.takes(b"\"id\"") {
                fill(&mut id, scanner.id()?)
            } else if scanner.member(METHOD)? {
                fill(&mut method, ())
            } else if scanner.takes(b"\"params\"") {
                fill(&mut params, scanner.params()?)
            } else {
                None
            }
        })?;
        version.and(method)?;
        let (program, era) = params?;
        Some(PlainCall { id: id?, program, era })
    }

    fn params(&mut self) -> Option<(Cow<'a, str>, Era)> {
        let (mut name, mut program, mut era) = (None, None, None);
        self.token(b':')?;
        self.object(|scanner| {
            if scanner.member(NAME)? {
                fill(&mut name, ())
            } else if scanner.takes(b"\"arguments\"") {
                fill(&mut program, scanner.arguments()?)
            } else if scanner.takes(b"\"_meta\"") {
                fill(&mut era, scanner.meta()?)
            } else {
                None
            }
        })?;
        name?;
        Some((program?, era.unwrap_or(Era::Handshake)))
    }

    fn arguments(&mut self) -> Option<Cow<'a, str>> {
        let mut program = None;
        self.token(b':')?;
        self.object(
            |scanner| {
                if scanner.takes(b"\"program\"") { fill(&mut program, scanner.text()?) } else { None }
            },
        )?;
        program
    }

    /// Metadata. A progress token is only looked at: a program that ends at once has nothing to report.
    fn meta(&mut self) -> Option<Era> {
        let (mut version, mut capabilities, mut token) = (None, None, None);
        self.token(b':')?;
        if self.is_empty_object() {
            return Some(Era::Handshake);
        }
        self.object(|scanner| {
            let key = scanner.name()?;
            scanner.token(b':')?;
            scanner.blanks();
            match key {
                b"progressToken" => {
                    scanner.skip(0)?;
                    fill(&mut token, ())
                }
                key if key == META_VERSION.as_bytes() => {
                    let asked = scanner.name()?;
                    Version::STATELESS.iter().find(|version| version.name().as_bytes() == asked)?;
                    fill(&mut version, ())
                }
                key if key == META_CAPABILITIES.as_bytes() => {
                    // A null is as good as none.
                    (*scanner.rest.first()? == b'{').then_some(())?;
                    scanner.skip(0)?;
                    fill(&mut capabilities, ())
                }
                key if key == META_LOG_LEVEL.as_bytes() => None,
                _ => scanner.skip(0),
            }
        })?;
        match (version, capabilities) {
            (None, _) => Some(Era::Handshake),
            (Some(()), Some(())) => Some(Era::Stateless),
            (Some(()), None) => None,
        }
    }

    /// Reads an object, each of its members by `member`.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.token(b'{')?;
        loop {
            self.blanks();
            member(self)?;
            self.blanks();
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// True when `{}` comes next, and is taken.
    fn is_empty_object(&mut self) -> bool {
        self.blanks();
        let Some(inside) = self.rest.strip_prefix(b"{") else { return false };
        let Some(rest) = inside.trim_ascii_start().strip_prefix(b"}") else { return false };
        self.rest = rest;
        true
    }

    #[inline]
    fn blanks(&mut self) {
        // Every blank is below what may stand elsewhere between tokens, so one comparison says that there is none.
        while let [byte, rest @ ..] = self.rest
            && *byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.rest = rest;
        }
    }

    /// Blanks and this byte.
    #[inline]
    fn token(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (first == byte).then_some(())
    }

    /// True when these bytes come next, and are taken.
    #[inline]
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(bytes);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }

    /// True when this member comes next, and is taken; `None` when its key does with another value.
    #[inline]
    fn member(&mut self, (compact, key, value): Member) -> Option<bool> {
        if self.takes(compact) {
            return Some(true);
        }
        if !self.takes(key) {
            return Some(false);
        }
        self.token(b':')?;
        self.blanks();
        self.takes(value).then_some(true)
    }

    /// Gives the first bytes away.
    #[inline]
    fn split(&mut self, length: usize) -> Option<&'a [u8]> {
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    /// A colon and an id: an integer, or a string of printable ASCII characters without escapes.
    #[inline]
    fn id(&mut self) -> Option<&'a [u8]> {
        self.token(b':')?;
        self.blanks();
        let rest = self.rest;
        if *rest.first()? == b'"' {
            let inside = self.name()?;
            rest.get(..inside.len() + 2)
        } else {
            self.integer()
        }
    }

    #[inline]
    fn integer(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest;
        let sign = usize::from(*rest.first()? == b'-');
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits == 1 || (digits > 1 && rest[sign] != b'0');
        // A fraction or an exponent would go on after the digits.
        let ends = matches!(rest.get(sign + digits), Some(b',' | b'}' | b']' | b' ' | b'\t'));
        (whole && ends).then_some(())?;
        self.split(sign + digits)
    }

    /// A string of printable ASCII characters without escapes; what is between its quotes.
    #[inline]
    fn name(&mut self) -> Option<&'a [u8]> {
        let inside = self.rest.strip_prefix(b"\"")?;
        let end = plain_length(inside, usize::MAX);
        self.rest = inside[end..].strip_prefix(b"\"")?;
        Some(&inside[..end])
    }

    /// Any value without a surprise in it: names, integers, and what is made of them, within [`DEPTH`].
    fn skip(&mut self, depth: u32) -> Option<()> {
        match *self.rest.first()? {
            b'"' => self.name().map(|_| ()),
            b'-' | b'0'..=b'9' => self.integer().map(|_| ()),
            b'{' if depth < DEPTH => {
                if self.is_empty_object() {
                    return Some(());
                }
                self.object(|scanner| {
                    scanner.name()?;
                    scanner.token(b':')?;
                    scanner.blanks();
                    scanner.skip(depth + 1)
                })
            }
            b'[' if depth < DEPTH => {
                self.split(1)?;
                self.blanks();
                if self.takes(b"]") {
                    return Some(());
                }
                loop {
                    self.blanks();
                    self.skip(depth + 1)?;
                    self.blanks();
                    match self.split(1)? {
                        b"," => {}
                        b"]" => return Some(()),
                        _ => return None,
                    }
                }
            }
            _ => [&b"true"[..], b"false", b"null"].iter().any(|word| self.takes(word)).then_some(()),
        }
    }

    /// A colon and any string.
    #[inline]
    fn text(&mut self) -> Option<Cow<'a, str>> {
        self.token(b':')?;
        self.blanks();
        let quoted = self.rest;
        let inside = quoted.strip_prefix(b"\"")?;
        let end = plain_length(inside, SHORT);
        if inside.get(end) == Some(&b'"') {
            self.rest = &inside[end + 1..];
            return std::str::from_utf8(&inside[..end]).ok().map(Cow::Borrowed);
        }
        self.long_text(quoted)
    }

    /// A string that is long, or has characters that are not plain.
    #[cold]
    fn long_text(&mut self, quoted: &'a [u8]) -> Option<Cow<'a, str>> {
        let inside = &quoted[1..];
        let end = memchr::memchr2(b'"', b'\\', inside)?;
        if inside[end] == b'"' {
            self.rest = &inside[end + 1..];
            let text = std::str::from_utf8(&inside[..end]).ok()?;
            // Looks at every byte, so that the loop needs no branch.
            let controls = text.bytes().fold(false, |found, byte| found | (byte < 0x20));
            return (!controls).then_some(Cow::Borrowed(text));
        }
        let end = end + closing_quote(&inside[end..])?;
        self.rest = &inside[end + 1..];
        // With its quotes; malformed escapes and control characters end here.
        serde_json::from_slice::<String>(&quoted[..end + 2]).ok().map(Cow::Owned)
    }
}

/// Programs up to about this long are looked through in one pass.
const SHORT: usize = 64;

/// How many bytes of a text are ASCII without quote, backslash and control characters below the blank: eight at
/// a time, up to the first word beyond `most`.
#[inline]
fn plain_length(text: &[u8], most: usize) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    /// The high bit of the lowest byte that is zero; bits above it mean nothing.
    fn zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let mut at = 0;
    while at < most
        && let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk())
    {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        let found = control | quote | backslash | (word & HIGHS);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &&u8| matches!(byte, b' '..=0x7F) && !matches!(byte, b'"' | b'\\');
    at + text.get(at..).unwrap_or_default().iter().take(8).take_while(is_plain).count()
}

/// Where the string ends, seen from inside of it.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Takes the value of a key that comes once.
fn fill<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::{self, Message};
    use crate::protocol::params::Params;

    #[test]
    fn the_tool_is_ours() {
        assert_eq!(serde_json::to_vec(crate::tool::LISP_EVAL).expect("JSON"), NAME.2);
    }

    const USUAL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#;

    fn read(line: &str) -> Option<(String, String)> {
        let call = PlainCall::read(line.as_bytes())?;
        // Never something else than the general reader.
        match frame::parse(line.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                assert_eq!((id.as_json().as_bytes(), &*method), (call.id(), "tools/call"), "{line}");
                assert_eq!(id, call.to_id(), "{line}");
                let read = Params::read(params).expect("params");
                assert_eq!(Era::of(&read).expect("era"), call.era, "{line}");
                assert!(read.meta.is_none_or(|meta| meta.log_level.is_none()), "{line}");
                let mut params: serde_json::Value =
                    serde_json::from_str(params.expect("params").get()).expect("JSON");
                params.as_object_mut().expect("an object").remove("_meta");
                let program = &*call.program;
                let expected = serde_json::json!({"name": "lisp_eval", "arguments": {"program": program}});
                assert_eq!(params, expected, "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
        Some((call.to_id().as_json().to_owned(), call.program.into_owned()))
    }

    #[test]
    fn plain_calls_are_read_in_any_order_and_with_blanks() {
        let three = Some(("1".to_owned(), "(+ 1 2)".to_owned()));
        assert_eq!(read(USUAL), three);
        let turned = r#" { "params" : {"arguments":{ "program":"(+ 1 2)" } , "name":"lisp_eval"}, "method":"tools/call","id":1 ,"jsonrpc":"2.0"} "#;
        assert_eq!(read(turned), three);
        for (id, program) in [
            ("-7", r"(str \u00e9 \ud83d\ude00)"),
            ("\"a-1\"", r#"(println \"hi\")\n\\"#),
            ("0", "\u{e9} \u{1f600}"),
            ("123456789012345678901234567890", ""),
        ] {
            let line = USUAL.replace("\"id\":1", &format!("\"id\":{id}")).replace("(+ 1 2)", program);
            assert!(read(&line).is_some(), "{line}");
        }
    }

    fn with_meta(meta: &str) -> String {
        USUAL.replacen("\"arguments\":", &format!("\"_meta\":{meta},\"arguments\":"), 1)
    }

    const STATELESS: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;

    #[test]
    fn metadata_says_the_era_and_may_hold_what_nobody_reads() {
        let others = r#""a/b": [ 1 , -2,[ ],{ },"x"] ,"c":{"d":{"e":true},"f":null},"g":"(h)""#;
        for (meta, era) in [
            ("{}".to_owned(), Era::Handshake),
            (" { } ".to_owned(), Era::Handshake),
            (r#"{"progressToken":7}"#.to_owned(), Era::Handshake),
            (r#"{ "progressToken" : "a-1" }"#.to_owned(), Era::Handshake),
            (r#"{"progressToken":null}"#.to_owned(), Era::Handshake),
            (format!("{{{others}}}"), Era::Handshake),
            (format!("{{{CAPABILITIES}}}"), Era::Handshake),
            (format!("{{{STATELESS},{CAPABILITIES}}}"), Era::Stateless),
            (format!("{{{CAPABILITIES},\"progressToken\":1,{STATELESS},{others}}}"), Era::Stateless),
        ] {
            let line = with_meta(&meta);
            assert!(read(&line).is_some(), "{line}");
            assert_eq!(PlainCall::read(line.as_bytes()).map(|call| call.era), Some(era), "{line}");
        }
    }

    #[test]
    fn metadata_that_matters_or_may_be_wrong_is_left_to_the_general_reader() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&with_meta(&nested(DEPTH as usize))).is_some());
        for meta in [
            "null".to_owned(),
            "[]".to_owned(),
            nested(DEPTH as usize + 1),
            format!("{{{STATELESS}}}"),
            format!("{{{STATELESS},\"io.modelcontextprotocol/clientCapabilities\":null}}"),
            format!("{{{STATELESS},{STATELESS},{CAPABILITIES}}}"),
            r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#.to_owned(),
            r#"{"io.modelcontextprotocol/protocolVersion":null}"#.to_owned(),
            r#"{"io.modelcontextprotocol/logLevel":"debug"}"#.to_owned(),
            r#"{"progressToken":1,"progressToken":1}"#.to_owned(),
            r#"{"progressToken":01}"#.to_owned(),
            r#"{"progressToken":1.5}"#.to_owned(),
            r#"{"progress\u0054oken":1}"#.to_owned(),
            r#"{"a":"\u0061"}"#.to_owned(),
            r#"{"a":tru}"#.to_owned(),
            r#"{"a":[1,]}"#.to_owned(),
            r#"{"a":[1 2]}"#.to_owned(),
            r#"{"a":1,}"#.to_owned(),
            r#"{"a"}"#.to_owned(),
            r#"{"a":{"b":}}"#.to_owned(),
            "{\"\u{e9}\":1}".to_owned(),
        ] {
            assert_eq!(read(&with_meta(&meta)), None, "{meta}");
        }
        let twice = with_meta("{}").replacen("\"name\"", "\"_meta\":{},\"name\"", 1);
        assert_eq!(read(&twice), None);
    }

    #[test]
    fn programs_of_any_length_are_read_whole() {
        for special in ["", "\\n", "\\\"", "\u{e9}", "\u{7f}"] {
            for before in 0..90 {
                let program = format!("{}{special}{}", "a".repeat(before), "b".repeat(before % 11));
                let line = USUAL.replace("(+ 1 2)", &program);
                assert!(read(&line).is_some(), "{line}");
            }
        }
        for special in ["\t", "\u{0}"] {
            for before in 0..90 {
                let line = USUAL.replace("(+ 1 2)", &format!("{}{special}", "a".repeat(before)));
                assert_eq!(read(&line), None, "{line}");
            }
        }
    }

    #[test]
    fn everything_else_is_left_to_the_general_reader() {
        let changes = [
            ("\"2.0\"", "\"1.0\""),
            ("\"2.0\"", "2.0"),
            ("\"id\":1", "\"id\":1.5"),
            ("\"id\":1", "\"id\":01"),
            ("\"id\":1", "\"id\":1e3"),
            ("\"id\":1", "\"id\":-"),
            ("\"id\":1", "\"id\":null"),
            ("\"id\":1", "\"id\":\"\\u0061\""),
            ("\"id\":1,", ""),
            ("\"id\":1", "\"id\":1,\"id\":1"),
            ("tools/call", "tools/list"),
            ("lisp_eval", "other"),
            ("\"method\"", "\"m\\u0065thod\""),
            ("\"arguments\":", "\"task\":{},\"arguments\":"),
            ("{\"program\"", "{\"context\":{},\"program\""),
            ("{\"program\":\"(+ 1 2)\"}", "{}"),
            ("\"(+ 1 2)\"", "12"),
            ("(+ 1 2)", "\\x"),
            ("(+ 1 2)", "\\ud800"),
            ("(+ 1 2)", "\t"),
            ("(+ 1 2)\"", "(+ 1 2)"),
            ("}}}", "}}} x"),
            ("}}}", "}}"),
            ("}}}", "}},}"),
        ];
        for (from, to) in changes {
            let line = USUAL.replacen(from, to, 1);
            assert_ne!(line, USUAL);
            assert_eq!(PlainCall::read(line.as_bytes()), None, "{line}");
        }
        for end in 0..USUAL.len() {
            assert_eq!(PlainCall::read(&USUAL.as_bytes()[..end]), None);
        }
        let bytes = USUAL.replace("(+ 1 2)", "?").into_bytes();
        let invalid: Vec<u8> = bytes.iter().map(|&byte| if byte == b'?' { 0xFF } else { byte }).collect();
        assert_eq!(PlainCall::read(&invalid), None);
    }
}
