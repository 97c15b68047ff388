//! The plainest and most frequent request, read in one pass: a `tools/call` of `lisp_eval` with a program and
//! nothing else.
//!
//! It says less than the general reader, never something else: whatever is not plain beyond doubt (other
//! members, metadata, escapes in names, repeated keys, malformed text) is left to [`super::frame`].

use super::frame::Id;
use std::borrow::Cow;

/// [`crate::tool::LISP_EVAL`] as JSON text.
const NAME: &[u8] = b"\"lisp_eval\"";

/// A call without context, schema or metadata.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainCall<'a> {
    /// JSON text of the id: an integer, or a string without escapes.
    id: &'a str,
    /// Source text.
    pub program: Cow<'a, str>,
}

impl<'a> PlainCall<'a> {
    /// Reads a line; `None` means that the general reader has to look at it.
    pub fn read(line: &'a [u8]) -> Option<PlainCall<'a>> {
        let mut scanner = Scanner { line, at: 0 };
        let call = scanner.request()?;
        scanner.blanks();
        (scanner.at == line.len()).then_some(call)
    }

    /// The JSON text of the id, to be echoed.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// The id, to be kept.
    pub fn to_id(&self) -> Id {
        Id::from_plain(self.id)
    }
}

struct Scanner<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn request(&mut self) -> Option<PlainCall<'a>> {
        let (mut version, mut id, mut method, mut program) = (None, None, None, None);
        self.object(|scanner| {
            if scanner.takes(b"\"jsonrpc\"") {
                fill(&mut version, scanner.value(b"\"2.0\"")?)
            } else if scanner.takes(b"\"id\"") {
                fill(&mut id, scanner.id()?)
            } else if scanner.takes(b"\"method\"") {
                fill(&mut method, scanner.value(b"\"tools/call\"")?)
            } else if scanner.takes(b"\"params\"") {
                fill(&mut program, scanner.params()?)
            } else {
                None
            }
        })?;
        version.and(method)?;
        Some(PlainCall { id: id?, program: program? })
    }

    fn params(&mut self) -> Option<Cow<'a, str>> {
        let (mut name, mut program) = (None, None);
        self.token(b':')?;
        self.object(|scanner| {
            if scanner.takes(b"\"name\"") {
                fill(&mut name, scanner.value(NAME)?)
            } else if scanner.takes(b"\"arguments\"") {
                fill(&mut program, scanner.arguments()?)
            } else {
                None
            }
        })?;
        name.and(program)
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

    /// Reads an object, each of its members by `member`.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.token(b'{')?;
        loop {
            self.blanks();
            member(self)?;
            self.blanks();
            let byte = *self.line.get(self.at)?;
            self.at += 1;
            match byte {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Blanks and this byte.
    #[inline]
    fn token(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (*self.line.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// True when these bytes come next, and are taken.
    #[inline]
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let comes = self.line.get(self.at..).is_some_and(|rest| rest.starts_with(bytes));
        self.at += if comes { bytes.len() } else { 0 };
        comes
    }

    /// A colon and this value.
    #[inline]
    fn value(&mut self, bytes: &[u8]) -> Option<()> {
        self.token(b':')?;
        self.blanks();
        self.takes(bytes).then_some(())
    }

    /// A colon and an id: an integer, or a string of printable ASCII characters without escapes.
    fn id(&mut self) -> Option<&'a str> {
        self.token(b':')?;
        self.blanks();
        let rest = self.line.get(self.at..)?;
        let length = if *rest.first()? == b'"' {
            let inside = &rest[1..];
            let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            let end = inside.iter().position(|byte| !plain(byte))?;
            (inside[end] == b'"').then_some(end + 2)?
        } else {
            let sign = usize::from(rest[0] == b'-');
            let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let whole = digits == 1 || (digits > 1 && rest[sign] != b'0');
            // A fraction or an exponent would go on after the digits.
            let ends = matches!(rest.get(sign + digits), Some(b',' | b'}' | b' ' | b'\t'));
            (whole && ends).then_some(sign + digits)?
        };
        self.at += length;
        std::str::from_utf8(&rest[..length]).ok()
    }

    /// A colon and any string.
    fn text(&mut self) -> Option<Cow<'a, str>> {
        self.token(b':')?;
        self.token(b'"')?;
        let start = self.at;
        let rest = self.line.get(start..)?;
        let end = memchr::memchr2(b'"', b'\\', rest)?;
        if rest[end] == b'"' {
            self.at += end + 1;
            let text = std::str::from_utf8(&rest[..end]).ok()?;
            // Looks at every byte, so that the loop needs no branch.
            let controls = text.bytes().fold(false, |found, byte| found | (byte < 0x20));
            return (!controls).then_some(Cow::Borrowed(text));
        }
        let end = end + closing_quote(&rest[end..])?;
        self.at += end + 1;
        // With its quotes; malformed escapes and control characters end here.
        let literal = &self.line[start - 1..self.at];
        serde_json::from_slice::<String>(literal).ok().map(Cow::Owned)
    }
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

    #[test]
    fn the_tool_is_ours() {
        assert_eq!(serde_json::to_vec(crate::tool::LISP_EVAL).expect("JSON"), NAME);
    }

    const USUAL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#;

    fn read(line: &str) -> Option<(String, String)> {
        let call = PlainCall::read(line.as_bytes())?;
        // Never something else than the general reader.
        match frame::parse(line.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                assert_eq!((id.as_json(), &*method), (call.id(), "tools/call"), "{line}");
                assert_eq!(id, call.to_id(), "{line}");
                let params: serde_json::Value =
                    serde_json::from_str(params.expect("params").get()).expect("JSON");
                let program = &*call.program;
                let expected = serde_json::json!({"name": "lisp_eval", "arguments": {"program": program}});
                assert_eq!(params, expected, "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
        Some((call.id().to_owned(), call.program.into_owned()))
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
            ("\"arguments\":", "\"_meta\":{},\"arguments\":"),
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
