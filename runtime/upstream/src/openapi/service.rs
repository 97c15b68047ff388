//! The HTTP connection to an OpenAPI service: sends requests, and once the connection is closed, fails all that are
//! under way or come later.

use super::spec::OpenApiSpec;
use crate::UpstreamFault;
use crate::transport::ServerEvents;
use crate::transport::life::Life;
use ptc_base::net::{
    HeaderName, HttpClient, Method, Payload, Response, StatusCode, Url, excerpt, explain_challenges,
};
use ptc_calls::run::trace::TraceContext;
use std::sync::Arc;

/// Length limit of a header in a message, in characters.
const SHOWN: usize = 200;

/// One service that was reached.
pub(super) struct OpenApiService {
    pub(super) spec: OpenApiSpec,
    client: HttpClient,
    events: Arc<ServerEvents>,
    pub(super) life: Life,
}

/// One request.
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) url: Url,
    /// The media types of the answer.
    pub(super) accept: String,
    /// JSON text, and its media type.
    pub(super) body: Option<(String, String)>,
    /// The trace that is sent to the service.
    pub(super) trace: Option<TraceContext>,
}

impl OpenApiService {
    pub(super) fn new(spec: OpenApiSpec, client: HttpClient, events: Arc<ServerEvents>) -> OpenApiService {
        let client = client.finding_results();
        OpenApiService { spec, client, events, life: Life::new() }
    }

    /// Sends a request and waits for the headers of its response. Any response shows that the service works.
    pub(super) async fn send(&self, exchange: Exchange) -> Result<Response, UpstreamFault> {
        let Exchange { method, url, accept, body, trace } = exchange;
        let mut headers = self.spec.headers.clone();
        if !headers.contains("accept") {
            // Cannot fail: media types of the document are valid in headers.
            let _ = headers.plain("accept", &accept);
        }
        let body = body.map(|(text, media)| {
            // A configured one stays.
            let _ = headers.plain("content-type", &media);
            Payload::from(text)
        });
        if body.is_none() && matches!(method, Method::POST | Method::PUT | Method::PATCH) {
            // Some services refuse such a request that does not say that it has no body.
            let _ = headers.plain("content-length", "0");
        }
        for (name, text) in trace.iter().flat_map(|trace| trace.parts()) {
            // Cannot fail: a parsed trace context is valid in headers.
            let _ = headers.set(HeaderName::from_static(name), text);
        }
        let response = self.client.send(method, &url, &headers, body).await?;
        self.events.answered();
        Ok(response)
    }

    pub(super) fn events(&self) -> &ServerEvents {
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
