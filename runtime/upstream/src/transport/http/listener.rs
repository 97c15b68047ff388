//! Listens to the stream in which a Streamable HTTP server sends messages that were not requested: opens it with GET,
//! and resumes it when it breaks.

use super::events::{EventStream, ServerSentEvent};
use super::incoming;
use super::metadata::MessageHeaders;
use super::session::HttpSession;
use super::streamable::{RESUME_PAUSE, Streamable, is_events};
use super::wire::SendFault;
use crate::jsonrpc::message;
use ptc_base::net::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The largest message that is read.
const LARGEST: usize = 1 << 20;

/// Listens for as long as the server allows.
pub(super) async fn listen(channel: &Arc<Streamable>) {
    let mut before: Option<EventStream> = None;
    let (mut pause, mut is_first) = (RESUME_PAUSE, true);
    loop {
        let session = channel.sessions.current();
        let from = before.as_ref().and_then(EventStream::last_id);
        let metadata = MessageHeaders::events(&channel.wire.headers, from).session(&session);
        let is_gap = !is_first && from.is_none();
        let sent = channel.wire.send(Method::GET, metadata, None).await;
        match sent.map(|(response, _)| response) {
            Ok(response) if is_events(&response) => {
                let mut stream = match before.take() {
                    Some(before) => EventStream::resumed(response.body, before),
                    None => EventStream::new(response.body),
                };
                if is_gap {
                    // Messages sent in between are lost.
                    channel.events.notification("notifications/tools/list_changed");
                }
                is_first = false;
                tokio::select! {
                    () = hear(channel, &session, &mut stream) => {}
                    () = channel.sessions.changed(session.generation) => continue,
                }
                pause = stream.retry().unwrap_or(RESUME_PAUSE);
                before = Some(stream);
            }
            Ok(response) if response.status == StatusCode::NOT_FOUND && session.id.is_some() && !is_first => {
                // The next call finds out whether the session is lost.
                before = None;
                channel.sessions.changed(session.generation).await;
                continue;
            }
            Ok(response) if response.status.is_server_error() && !is_first => pause = longer(pause),
            Ok(response) => {
                tracing::debug!(upstream = channel.events.server(), status = %response.status, "no stream of events");
                return;
            }
            Err(SendFault::OtherLogin) => {
                // The next call begins another session, unless the earlier login comes back.
                before = None;
                let _ = timeout(LONGEST_PAUSE, channel.sessions.changed(session.generation)).await;
                continue;
            }
            Err(SendFault::Net(_)) => pause = longer(pause),
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = channel.sessions.changed(session.generation) => before = None,
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// Handles messages until the stream ends.
async fn hear(channel: &Arc<Streamable>, session: &HttpSession, stream: &mut EventStream) {
    while let Ok(Some(parsed)) = stream.next(|| LARGEST, || None).await {
        let bytes = match parsed {
            ServerSentEvent::Event { data, .. } => {
                let bytes = data.len();
                let incoming = message::parse(data);
                incoming::handle(incoming, &channel.events, &mut |_, _| (), &|| channel.reply(Some(session)));
                bytes
            }
            ServerSentEvent::TooLarge { head, .. } => head.len(),
            // There is no place for it.
            ServerSentEvent::Spilled(_) => 0,
        };
        stream.unasked(bytes).await;
    }
}
