//! Logs each line that a server writes to stderr, and keeps the last lines for error messages.

use super::line::{LineReader, ReadLine};
use super::said::SaidLines;
use crate::transport::throttle::{Throttle, Throttled};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::ServerText;
use std::sync::Arc;
use std::time::Instant;
use tokio::process::ChildStderr;

/// Longest line that is logged in full.
const LINE: usize = 4096;

/// Logs stderr until it ends.
pub(super) async fn log_lines(name: Arc<str>, stderr: ChildStderr, secrets: SecretRegistry, tail: SaidLines) {
    let mut reader = LineReader::new(stderr);
    let mut flood = Throttle::default();
    while let Ok(Some(line)) = reader.next(|| LINE, || None).await {
        let text = match &line {
            ReadLine::Whole(bytes) => secrets.scrub(String::from_utf8_lossy(bytes).trim_end()).into_owned(),
            // What is after its head is not known, and may be the rest of a secret.
            ReadLine::Oversize(oversize) => {
                let head = String::from_utf8_lossy(&oversize.head);
                // Neither is the character that was cut.
                secrets.scrub_cut(head.trim_end_matches('\u{fffd}').trim_end()).into_owned()
            }
        };
        if text.is_empty() {
            continue;
        }
        let text = ServerText::new(&text);
        match flood.admit(Instant::now()) {
            Throttled::Pass { suppressed: 0 } => tracing::info!(upstream = %name, "{text}"),
            Throttled::Pass { suppressed } => tracing::info!(upstream = %name, suppressed, "{text}"),
            Throttled::Suppress => {}
        }
        tail.push_last(text.to_string());
    }
}
