//! A faster parser for messages of the usual shape, in one pass over their bytes.
//!
//! It leaves everything else, and all error messages, to serde in [`super::frame`].

use super::arguments::GivenArguments;
use super::borrowed::{Raw, Text};
use super::frame::Members;
use super::known_meta::KnownMeta;
use super::params::{Meta, Params};
use super::scan::Scanner;
use super::version::META_LOG_LEVEL;

/// Reads the members of a message. When it returns false, serde has to read the message, and `found` is
/// invalid.
pub(super) fn read<'a>(text: &'a str, found: &mut Members<'a, Params<'a>>, known: &mut KnownMeta) -> bool {
    members(text, found, known).is_some()
}

#[inline]
fn members<'a>(text: &'a str, found: &mut Members<'a, Params<'a>>, known: &mut KnownMeta) -> Option<()> {
    let mut scanner = Scanner::new(text);
    scanner.object(|scanner| {
        if scanner.is_at(b"\"jsonrpc\":") {
            fill(&mut found.jsonrpc, scanner.takes(b"\"2.0\"").then(|| Text::plain("2.0"))?)
        } else if scanner.is_at(b"\"id\":") {
            fill(&mut found.id, scanner.value()?)
        } else if scanner.is_at(b"\"method\":") {
            fill(&mut found.method, Text::plain(scanner.plain()?))
        } else if scanner.is_at(b"\"params\":") {
            // Filled in place, because it is large.
            fill(&mut found.params, Params::default())?;
            params(scanner, found.params.as_mut()?, known)
        } else {
            match scanner.any_key()? {
                // Answers are rare.
                b"result" | b"error" => None,
                _ => scanner.skip_value(),
            }
        }
    })?;
    scanner.is_at_end().then_some(())
}

fn params<'a>(scanner: &mut Scanner<'a>, params: &mut Params<'a>, known: &mut KnownMeta) -> Option<()> {
    scanner.object(|scanner| {
        if scanner.is_at(b"\"name\":") {
            return fill(&mut params.name, Text::plain(scanner.plain()?));
        } else if scanner.is_at(b"\"arguments\":") {
            // Filled in place, because they are large.
            fill(&mut params.arguments, GivenArguments::whole(Raw::scanned("")))?;
            let (arguments, start) = (params.arguments.as_mut()?, scanner.here());
            if arguments.scan(scanner).is_none() {
                scanner.go_to(start);
                *arguments = GivenArguments::whole(present(scanner)?);
            }
            return Some(());
        } else if scanner.is_at(b"\"_meta\":") {
            fill(&mut params.meta, Meta::default())?;
            return meta(scanner, params.meta.as_mut()?, known);
        }
        match scanner.any_key()? {
            b"requestId" => fill(&mut params.request_id, present(scanner)?),
            b"cursor" => fill(&mut params.cursor, present(scanner)?),
            b"capabilities" => fill(&mut params.capabilities, present(scanner)?),
            b"protocolVersion" => fill(&mut params.protocol_version, present(scanner)?),
            b"uri" => fill(&mut params.uri, present(scanner)?),
            b"inputResponses" => fill(&mut params.input_responses, present(scanner)?),
            b"task" => fill(&mut params.task, present(scanner)?),
            b"taskId" => fill(&mut params.task_id, present(scanner)?),
            b"requestState" => fill(&mut params.request_state, present(scanner)?),
            b"level" | b"notifications" => None,
            _ => scanner.skip_value(),
        }
    })
}

const LOG_LEVEL: &[u8] = META_LOG_LEVEL.as_bytes();

fn meta<'a>(scanner: &mut Scanner<'a>, meta: &mut Meta<'a>, known: &mut KnownMeta) -> Option<()> {
    // Start and end of the first consecutive members other than token and trace.
    let (mut repeated, mut is_known, mut is_over) = (None, false, false);
    scanner.object(|scanner| {
        if scanner.is_at(b"\"progressToken\":") {
            is_over |= repeated.is_some();
            return fill(&mut meta.progress_token, present(scanner)?);
        } else if scanner.is_at(b"\"traceparent\":") {
            is_over |= repeated.is_some();
            return fill(&mut meta.traceparent, present(scanner)?);
        } else if scanner.is_at(b"\"tracestate\":") {
            is_over |= repeated.is_some();
            return fill(&mut meta.tracestate, present(scanner)?);
        }
        let start = scanner.here();
        if repeated.is_none() && known.take(scanner, meta).is_some() {
            is_known = true;
        } else {
            meta_member(scanner, meta)?;
        }
        if !is_over {
            repeated = Some((repeated.map_or(start, |(start, _)| start), scanner.here()));
        }
        Some(())
    })?;
    if let (Some((start, end)), false) = (repeated, is_known) {
        known.note(scanner.between(start, end)?, meta);
    }
    Some(())
}

fn meta_member<'a>(scanner: &mut Scanner<'a>, meta: &mut Meta<'a>) -> Option<()> {
    if scanner.is_at(b"\"io.modelcontextprotocol/protocolVersion\":") {
        return fill(&mut meta.protocol_version, Text::plain(scanner.plain()?));
    } else if scanner.is_at(b"\"io.modelcontextprotocol/clientCapabilities\":") {
        return fill(&mut meta.client_capabilities, present(scanner)?);
    }
    match scanner.any_key()? {
        LOG_LEVEL => fill(&mut meta.log_level, Text::plain(scanner.plain()?)),
        _ => scanner.skip_value(),
    }
}

/// A value other than null, which counts as absent.
#[inline]
fn present<'a>(scanner: &mut Scanner<'a>) -> Option<Raw<'a>> {
    scanner.value().filter(|value| value.get() != "null")
}

/// Sets a member that may occur only once.
#[inline]
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
    use crate::protocol::frame::Frame;

    /// Parses a message with the scanner and with serde, after others of the same client, and compares. False
    /// when the scanner leaves it to serde.
    fn agrees(text: &str, known: &mut KnownMeta) -> bool {
        if !read(text, &mut Members::default(), &mut KnownMeta::default()) {
            return false;
        }
        let (mut scanned, mut general) = (Frame::default(), Frame::default());
        // The cache must not change the result, whatever it holds.
        let scanned = format!("{:?}", scanned.read_next(text, known));
        assert_eq!(scanned, format!("{:?}", general.read_any(text)), "{text}");
        true
    }

    #[test]
    fn usual_messages_are_scanned() {
        let long = "ä ".repeat(100);
        let messages = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#,
            r#" { "method": "ping" , "id":	"a\u00e4" , "jsonrpc":"2.0", "x": { "y" : [ ] } } "#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-1.5e+3,"why":[[],{},[1,true,{"a\n":null}]]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"x":"\\"},"name":"é","arguments":[]}}"#,
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{long}","params":{{"arguments":"{long}\"{long}"}}}}"#
            ),
        ];
        for message in messages {
            assert!(agrees(message, &mut KnownMeta::default()), "{message}");
        }
    }

    #[test]
    fn known_metadata_are_taken_as_they_are_and_no_others() {
        let mut known = KnownMeta::default();
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let metas = [
            format!(r#"{version},"x":1"#),
            format!(r#"{version},"x":12"#),
            format!(r#"{version},"x":1"#),
            format!(r#""progressToken":1,{version},"x":1"#),
            format!(r#""progressToken":2,{version},"x":1"#),
            format!(r#"{version},"x":1,"progressToken":3"#),
            format!(r#"{version},"x":1,"io.modelcontextprotocol/clientCapabilities":{{"a":{{}}}}"#),
            format!(r#"{version},"progressToken":3,"io.modelcontextprotocol/logLevel":"info""#),
            format!(r#"{version},"progressToken":4,"io.modelcontextprotocol/logLevel":"error""#),
            String::new(),
            r#""x":1"#.into(),
        ];
        for meta in metas.iter().chain(&metas) {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{{meta}}},"name":"n"}}}}"#
            );
            assert!(agrees(&text, &mut known), "{text}");
        }
        let twice = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"x":1,"progressToken":1,{version},{version}}}}}}}"#
        );
        assert!(
            !read(&twice, &mut Members::default(), &mut known),
            "a key that comes twice is said to be wrong by serde"
        );
    }

    #[test]
    fn unusual_messages_are_left_to_serde() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":{}1{}}}"#, "[".repeat(80), "]".repeat(80));
        let messages = [
            "",
            "{",
            "[]",
            r#"{"id":1,"id":2}"#,
            r#"{"\u0069d":1}"#,
            r#"{"id" :1}"#,
            r#"{"id":1} x"#,
            r#"{"id":01}"#,
            r#"{"id":1.}"#,
            r#"{"id":1,}"#,
            r#"{"id":[1,]}"#,
            r#"{"id":{"a"}}"#,
            r#"{"id":"\x"}"#,
            "{\"id\":\"\n\"}",
            "{\"method\":\"01234567890123456789012345678901234567890123456789012345678901234567890123\n\"}",
            r#"{"result":1}"#,
            r#"{"params":null}"#,
            r#"{"params":{"name":7}}"#,
            r#"{"params":{"arguments":null}}"#,
            &deep,
        ];
        for message in messages {
            assert!(!read(message, &mut Members::default(), &mut KnownMeta::default()), "{message}");
        }
    }

    #[test]
    fn random_messages_are_read_alike() {
        const PARTS: [&str; 45] = [
            "{",
            "}",
            "{",
            "}",
            "[",
            "]",
            ",",
            ",",
            ",",
            ":",
            ":",
            " ",
            "\n",
            "\"jsonrpc\":\"2.0\",",
            "\"id\":1",
            "\"id\":",
            "\"method\":\"m\"",
            "\"method\":",
            "\"params\":{",
            "\"name\":\"n\"",
            "\"name\":",
            "\"arguments\":",
            "\"_meta\":{",
            "\"progressToken\":",
            "\"traceparent\":",
            "\"requestId\":",
            "\"cursor\":",
            "\"other\":",
            "\"result\":1",
            "\"level\":\"info\"",
            "\"notifications\":{}",
            "null",
            "true",
            "-1.5e3",
            "0",
            "01",
            "1e",
            "\"a\"",
            "\"\\n\"",
            "\"\\ud800\"",
            "\"\\u12\"",
            "\"ä\"",
            "\"\t\"",
            "\"a longer text, of more than eight bytes\"",
            "\"",
        ];
        const USUAL: &str = r#"{"jsonrpc":"2.0","id":"a","x":[1,{"y":-0.5}],"method":"tools/call","params":{"name":"n","arguments":{"program":"\"é\" (+ 1 2)","context":{"k":[]}},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":12}}}"#;
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        let (mut scanned, mut known) = (0, KnownMeta::default());
        for _ in 0..60_000 {
            // A usual message with some pieces replaced.
            let mut text: Vec<char> = USUAL.chars().collect();
            for _ in 0..below(3) {
                let start = below(text.len());
                let end = start + below(4).min(text.len() - start);
                let piece = PARTS[below(PARTS.len())];
                text.splice(start..end, piece.chars());
            }
            scanned += usize::from(agrees(&text.iter().collect::<String>(), &mut known));
            let members: String = (0..below(9)).map(|_| PARTS[below(PARTS.len())]).collect();
            scanned += usize::from(agrees(&format!("{{\"jsonrpc\":\"2.0\",{members}}}"), &mut known));
        }
        assert!(scanned > 20_000, "{scanned}");
    }
}
