//! Passes the trace context of a run's caller on to the upstream servers that the run calls (W3C Trace Context,
//! <https://www.w3.org/TR/trace-context/>).
//!
//! A run without a trace passes none on. Where spans are exported, each call of an upstream has a span of its own,
//! which the upstream gets as its parent ([`RunSpan`]). Otherwise the caller's span is passed on.

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
    /// The span of the run, where each call has one of its own.
    run: Option<RunSpan>,
}

/// The exported span of a run. The spans of its calls follow from it, so that nothing has to be stored for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpan {
    /// The trace.
    pub trace_id: u128,
    /// The span of the run; not 0.
    pub span_id: u64,
    /// The trace is recorded.
    pub is_sampled: bool,
}

impl RunSpan {
    /// The span of a call: different ones for different calls of a run.
    pub fn call(self, number: u64) -> u64 {
        // An odd factor (2^64 divided by the golden ratio) maps different numbers to different sums.
        let span = self.span_id.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // 0 is no span.
        if span == 0 { u64::MAX } else { span }
    }

    fn parent(self, span_id: u64) -> String {
        format!("00-{:032x}-{span_id:016x}-0{}", self.trace_id, u8::from(self.is_sampled))
    }
}

impl TraceContext {
    /// Parses both fields. An invalid parent gives `None`, as if there were none; an invalid state is
    /// dropped.
    pub fn read(parent: &str, state: Option<&str>) -> Option<TraceContext> {
        let parent = parent.trim_matches([' ', '\t']);
        let state = state.map(|state| state.trim_matches([' ', '\t'])).filter(|state| is_state(state));
        is_parent(parent).then(|| TraceContext {
            parent: parent.into(),
            state: state.map(Into::into),
            run: None,
        })
    }

    /// The trace of a run whose calls have spans of their own. The state is that of the caller's trace.
    pub fn of_run(run: RunSpan, caller: Option<&TraceContext>) -> TraceContext {
        let state = caller.and_then(|caller| caller.state.clone());
        TraceContext { parent: run.parent(run.span_id).into(), state, run: Some(run) }
    }

    /// The trace that an upstream gets with a call of the run.
    #[must_use]
    pub fn for_call(&self, number: u64) -> TraceContext {
        match self.run {
            Some(run) => {
                let parent = run.parent(run.call(number)).into();
                TraceContext { parent, state: self.state.clone(), run: None }
            }
            None => self.clone(),
        }
    }

    /// The span of the caller, and whether the trace is recorded.
    pub fn span(&self) -> (u64, bool) {
        let hex = |from, to| u64::from_str_radix(self.parent.get(from..to).unwrap_or_default(), 16);
        // Checked when it was read.
        (hex(36, 52).unwrap_or_default(), hex(53, 55).is_ok_and(|flags| flags & 1 == 1))
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
    fn calls_have_spans_of_their_own_where_they_are_exported() {
        let run = RunSpan { trace_id: 0x4bf9 << 100, span_id: 7, is_sampled: true };
        let caller = TraceContext::read(PARENT, Some("a=b")).unwrap();
        let own = TraceContext::of_run(run, Some(&caller));
        let spans: std::collections::HashSet<String> =
            (0..1_000).map(|number| own.for_call(number).parent().to_owned()).collect();
        assert_eq!(spans.len(), 1_000);
        assert!(spans.iter().all(|parent| is_parent(parent) && parent.ends_with("-01")));
        let call = own.for_call(3);
        assert_eq!((call.trace_id(), call.state()), (own.trace_id(), Some("a=b")));
        assert_eq!(call.span(), (run.call(3), true));
        assert_eq!(caller.for_call(3), caller, "without export the caller's span is passed on");
        assert_eq!(RunSpan { span_id: 0x9E37_79B9_7F4A_7C15_u64.wrapping_neg(), ..run }.call(0), u64::MAX);
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
