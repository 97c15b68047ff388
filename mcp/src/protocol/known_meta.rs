//! The metadata that a client sent last. Clients of the stateless era repeat theirs with each request, but for a
//! progress token and a trace, so they are compared with those before instead of being read again.

use super::borrowed::{Raw, Text};
use super::params::Meta;
use super::scan::Scanner;
use std::borrow::Cow;
use std::ops::Range;

/// Longer ones are read each time.
const LONGEST: usize = 4 << 10;

/// Some members of `_meta`, one after the other, as they stood in the last message that had any.
#[derive(Debug, Default)]
pub struct KnownMeta {
    text: String,
    protocol_version: Option<Range<usize>>,
    client_capabilities: Option<Range<usize>>,
    log_level: Option<Range<usize>>,
}

impl KnownMeta {
    /// Takes the same members from a message, if they come next.
    #[inline]
    pub(super) fn take<'a>(&self, scanner: &mut Scanner<'a>, meta: &mut Meta<'a>) -> Option<()> {
        let start = scanner.here();
        let rest = start.strip_prefix(self.text.as_bytes())?;
        // A number could go on.
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

    /// Remembers members as they stand in a message, and what was read from them.
    #[cold]
    pub(super) fn note(&mut self, text: &str, meta: &Meta<'_>) {
        // Token and trace are no part of what is repeated.
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
