//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>): the trace of the caller that a run belongs to.
//! It is passed on to upstreams unchanged; a run without one has none.

use std::sync::Arc;

/// Name of the first field, in HTTP headers and in `_meta` of MCP.
pub const TRACEPARENT: &str = "traceparent";

/// Name of the second field.
pub const TRACESTATE: &str = "tracestate";

/// `00-<trace id>-<parent id>-<flags>`.
const PARENT_BYTES: usize = 55;

/// Size of `tracestate` that has to be passed on; a longer one is dropped, as an invalid one is.
const MOST_STATE_BYTES: usize = 512;

/// Limit of its members.
const MOST_MEMBERS: usize = 32;

/// Size limit of a key, and of a value.
const MOST_MEMBER_BYTES: usize = 256;

/// Both fields, as received. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Parses both fields. An invalid parent gives `None`, as if there were none; an invalid state is
    /// dropped.
    pub fn read(parent: &str, state: Option<&str>) -> Option<TraceContext> {
        let parent = parent.trim_matches([' ', '\t']);
        let state = state.map(|state| state.trim_matches([' ', '\t'])).filter(|state| is_state(state));
        is_parent(parent).then(|| TraceContext { parent: parent.into(), state: state.map(Into::into) })
    }

    /// The field `traceparent`.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The field `tracestate`, if present.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The trace id, 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.parent.get(3..35).unwrap_or_default()
    }

    /// Both fields with their names.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [(TRACEPARENT, Some(self.parent())), (TRACESTATE, self.state())]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
    }
}

fn is_parent(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_some = |part: &[u8]| is_hex(part) && part.iter().any(|byte| *byte != b'0');
    let Some((known, more)) = bytes.split_at_checked(PARENT_BYTES) else { return false };
    let version = &known[..2];
    let has_more = match version {
        b"00" => more.is_empty(),
        b"ff" => false,
        // Later versions may add fields; the part that they share with this one identifies the trace. Length
        // limit as for a state.
        _ => is_hex(version) && (more.is_empty() || is_later(more)),
    };
    has_more
        && [2, 35, 52].iter().all(|&at| known[at] == b'-')
        && is_some(&known[3..35])
        && is_some(&known[36..52])
        && is_hex(&known[53..])
}

fn is_later(more: &[u8]) -> bool {
    more[0] == b'-' && more.len() <= MOST_STATE_BYTES && more.iter().all(u8::is_ascii_graphic)
}

fn is_state(text: &str) -> bool {
    let members = || text.split(',').map(|member| member.trim_matches([' ', '\t']));
    text.len() <= MOST_STATE_BYTES
        && members().any(|member| !member.is_empty())
        && members().count() <= MOST_MEMBERS
        && members()
            .filter(|member| !member.is_empty())
            .all(|member| member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value)))
}

fn is_key(key: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    key.len() <= MOST_MEMBER_BYTES
        && key.bytes().next().is_some_and(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'))
        && key.bytes().all(is_inner)
        && key.bytes().filter(|byte| *byte == b'@').count() <= 1
}

fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= MOST_MEMBER_BYTES
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn parents_are_those_of_the_specification() {
        let read = |text: &str| TraceContext::read(text, None).is_some();
        assert!(read(PARENT) && read(&format!(" {PARENT}\t")));
        assert_eq!(TraceContext::read(PARENT, None).unwrap().trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(read(&PARENT.replacen("00", "cc", 1)), "a version to come");
        assert!(read(&(PARENT.replacen("00", "cc", 1) + "-what-it-adds")));
        let wrong = [
            String::new(),
            PARENT[..54].to_owned(),
            format!("{PARENT}-01"),
            format!("{PARENT}x"),
            PARENT.to_uppercase(),
            PARENT.replacen("00", "ff", 1),
            PARENT.replacen("00", "cc", 1) + "x",
            PARENT.replacen("00", "cc", 1) + "-\u{e9}",
            PARENT.replace('-', "_"),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            PARENT.replace("4bf9", "4bg9"),
            PARENT.replace("4bf9", "4b\u{e9}"),
            PARENT.replace("-01", "-0g"),
        ];
        for text in wrong {
            assert!(!read(&text), "{text:?}");
        }
    }

    #[test]
    fn an_ill_state_is_left_out() {
        let state = |text: &str| TraceContext::read(PARENT, Some(text)).unwrap().state().map(str::to_owned);
        let many = |count: usize| (0..count).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(",");
        for good in ["congo=t61rcWkgMzE", "rojo=00f067aa,congo=\"a\\b\"", "t@v=1, ,b=2", &many(32)] {
            assert_eq!(state(good).as_deref(), Some(good));
        }
        let long = format!("a={}", "b".repeat(300));
        for ill in
            ["", " , ", "a", "=b", "a=", "A=b", "a=b=c", "a=\u{e9}", "a@b@c=1", "a=b\n", &many(33), &long]
        {
            assert_eq!(state(ill), None, "{ill:?}");
        }
    }
}
