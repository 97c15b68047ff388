//! The HTTP connection to an OpenAPI service: sends requests, and ends all of them when it is closed.

use super::spec::OpenApiSpec;
use crate::net::{
    HeaderName, HttpClient, Method, Payload, Request, Response, StatusCode, Url, excerpt, explain_challenges,
};
use crate::run::trace::TraceContext;
use crate::tasks::{self, TaskOwner};
use crate::upstream::UpstreamFault;
use crate::upstream::transport::{Line, Link, LinkEnd, PeerEvents, Transport};
use std::sync::Arc;
use tokio::sync::watch;

/// Length limit of a header in a message, in characters.
const SHOWN: usize = 200;

/// Connects to one service.
pub(in crate::upstream) struct OpenApiTransport {
    spec: Arc<OpenApiSpec>,
}

/// A connected service, for its session.
pub struct OpenApiService {
    pub(super) spec: Arc<OpenApiSpec>,
    client: HttpClient,
    events: Arc<PeerEvents>,
    /// Why the connection was closed; `None` while it is open.
    closed: watch::Sender<Option<Arc<str>>>,
}

struct OpenApiLink {
    service: Arc<OpenApiService>,
}

/// One request.
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) url: Url,
    /// JSON text.
    pub(super) body: Option<String>,
    /// The trace that is sent to the service.
    pub(super) trace: Option<TraceContext>,
}

impl OpenApiTransport {
    pub(in crate::upstream) fn new(spec: OpenApiSpec) -> OpenApiTransport {
        OpenApiTransport { spec: Arc::new(spec) }
    }
}

#[async_trait::async_trait]
impl Transport for OpenApiTransport {
    async fn open(&self, events: Arc<PeerEvents>) -> Result<Box<dyn Link>, String> {
        let options = self.spec.client.clone();
        // Reads certificate files, so it runs on a blocking thread.
        let made = tasks::blocking(TaskOwner::Connection, move |_| HttpClient::new(&options)).await;
        let client = made.ok_or("the client could not be made")?.map_err(|error| error.to_string())?;
        let closed = watch::Sender::new(None);
        let service = Arc::new(OpenApiService { spec: self.spec.clone(), client, events, closed });
        Ok(Box::new(OpenApiLink { service }))
    }

    fn describe(&self) -> String {
        self.spec.base_url.to_string()
    }
}

#[async_trait::async_trait]
impl Link for OpenApiLink {
    fn line(&self) -> Line {
        Line::OpenApi(self.service.clone())
    }

    /// HTTP has no lasting connection that could end.
    async fn gone(&mut self) -> LinkEnd {
        std::future::pending().await
    }

    fn close(&mut self, why: &str) {
        self.service.closed.send_replace(Some(why.into()));
    }

    async fn discard(&mut self) {}

    async fn shut_down(&mut self) {
        self.close("upstream is stopped");
    }
}

impl OpenApiService {
    /// Sends a request and waits for the headers of its response. Any response shows that the service works.
    pub(super) async fn send(&self, exchange: Exchange) -> Result<Response, UpstreamFault> {
        let Exchange { method, url, body, trace } = exchange;
        let mut headers = self.spec.headers.clone();
        if !headers.contains("accept") {
            // Cannot fail: configured headers exclude these names, and the values are constants.
            let _ = headers.plain("accept", "application/json");
        }
        if body.is_some() {
            let _ = headers.plain("content-type", "application/json");
        }
        for (name, text) in trace.iter().flat_map(|trace| trace.parts()) {
            // Cannot fail: a parsed trace context is valid in headers.
            let _ = headers.set(HeaderName::from_static(name), text);
        }
        let request = Request { method, url, headers: &headers, body: body.map(Payload::from) };
        let response = self.client.send(request).await?;
        self.events.answered();
        Ok(response)
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&self) -> UpstreamFault {
        let mut closed = self.closed.subscribe();
        // `self` owns the sender, so it is not closed.
        let why = closed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        UpstreamFault::Unavailable(why.as_deref().unwrap_or("upstream is stopped").to_owned())
    }

    pub(super) fn events(&self) -> &PeerEvents {
        &self.events
    }

    /// Advice about a refused request, as the end of a sentence.
    pub(super) fn advice(&self, response: &Response) -> String {
        let after = |name: &str| response.header(name).map(|text| excerpt(text, SHOWN));
        match response.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let asked = explain_challenges(response.headers("www-authenticate"));
                let asked = asked.map(|asked| format!("; it asks for {asked}"));
                format!("{}; check auth and the credential it names", asked.unwrap_or_default())
            }
            _ => after("retry-after").map(|after| format!("; Retry-After: {after}")).unwrap_or_default(),
        }
    }
}
