//! Requests to one server, with the headers that it gets each time.

use crate::net::{Headers, HttpClient, Method, NetError, NetFault, Payload, Request, Response, Url};
use crate::upstream::request::MessageText;
use bytes::Bytes;

/// Where the server is, and what it is always sent.
#[derive(Clone)]
pub(super) struct HttpWire {
    pub(super) client: HttpClient,
    pub(super) url: Url,
    pub(super) headers: Headers,
}

impl HttpWire {
    pub(super) async fn send(
        &self,
        method: Method,
        headers: &Headers,
        body: Option<Payload>,
    ) -> Result<Response, NetError> {
        self.client.send(Request { method, url: self.url.clone(), headers, body }).await
    }
}

/// True when the server is gone: what answers next at its address knows nothing of this connection.
pub(super) fn is_gone(error: &NetError) -> bool {
    matches!(error.fault, NetFault::Refused | NetFault::Dns | NetFault::Tls)
}

impl From<MessageText> for Payload {
    fn from(MessageText { head, arguments, tail }: MessageText) -> Payload {
        Payload::new([head.into(), Bytes::from_owner(arguments), tail.into()])
    }
}
