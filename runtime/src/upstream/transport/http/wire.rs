//! Requests to one server, with the headers that it gets each time.

use crate::net::{Headers, HttpClient, Method, NetError, NetFault, Payload, Request, Response, Url};
use crate::upstream::transport::RequestFault;

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

/// What a request without an answer means for its caller.
pub(super) fn fault(error: &NetError) -> RequestFault {
    RequestFault::Upstream(error.into())
}

/// True when nobody is there any more: whoever is there next knows nothing of us.
pub(super) fn is_gone(error: &NetError) -> bool {
    matches!(error.fault, NetFault::Refused | NetFault::Dns | NetFault::Tls)
}
