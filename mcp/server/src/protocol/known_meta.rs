//! Cache of the metadata that a client sent last. Stateless clients repeat it in each request, apart from a
//! progress token and a trace. Repeated metadata is compared instead of parsed.

use super::borrowed::{Raw, Text};
use super::params::Meta;
use super::scan::Scanner;
use std::borrow::Cow;
use std::ops::Range;

/// Longer metadata is parsed each time.
const LONGEST: usize = 4 << 10;

/// Consecutive members of `_meta`, as the last message with metadata had them.
#[derive(Debug, Default)]
pub struct KnownMeta {
    text: String,
    protocol_version: Option<Range<usize>>,
    client_capabilities: Option<Range<usize>>,
    log_level: Option<Range<usize>>,
}

impl KnownMeta {
    /// Takes the cached members, if the same text comes next.
    #[inline]
    pub(super) fn take<'a>(&self, scanner: &mut Scanner<'a>, meta: &mut Meta<'a>) -> Option<()> {
        let start = scanner.here();
        let rest = start.strip_prefix(self.text.as_bytes())?;
        // A number could go on after the cached text.
        if self.text.is_empty() || !matches!(rest.first(), Some(b',' | b'}')) {
            return None;
        }
        scanner.go_to(rest);
        let text = scanner.since(start)?;
        let part = |range: &Option<Range<usize>>| range.clone().and_then(|range| text.get(range));
        *meta = Meta {
            protocol_version: part(&self.protocol_version).map(Text::plain),
            client_capabilities: part(&self.client_capabilities).map(Raw::scanned),
            log_level: part(&self.log_level).map(Text::plain),
            progress_token: meta.progress_token,
            traceparent: meta.traceparent,
            tracestate: meta.tracestate,
        };
        Some(())
    }

    /// Caches members with their text and what was parsed from it.
    #[cold]
    pub(super) fn note(&mut self, text: &str, meta: &Meta<'_>) {
        // Token and trace change with each request.
        let Meta {
            protocol_version,
            client_capabilities,
            log_level,
            progress_token: _,
            traceparent: _,
            tracestate: _,
        } = meta;
        let place = |part: &str| {
            let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
            Some(start..start + part.len()).filter(|range| range.end <= text.len())
        };
        let plain = |part: &Option<Text<'_>>| match part {
            Some(Text(Cow::Borrowed(part))) => place(part),
            _ => None,
        };
        self.text.clear();
        if text.len() > LONGEST {
            return;
        }
        self.text.push_str(text);
        self.protocol_version = plain(protocol_version);
        self.client_capabilities = client_capabilities.and_then(|raw| place(raw.get()));
        self.log_level = plain(log_level);
    }
}
